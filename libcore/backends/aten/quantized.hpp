// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "decompositions.hpp"

namespace npu::aten {

/// The ops of PyTorch's library quantized_decomposed, which has no kernels in C++.
std::span<const Decomposition> quantized_decompositions();

}  // namespace npu::aten

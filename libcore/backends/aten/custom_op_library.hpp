// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/custom_op.hpp"

namespace npu::aten {

/// Loads a shared object of custom ops (npu/custom_op.hpp) and returns its rows, checked; they live
/// until the process ends, for code of libtorch's kind does not stand unloading. A name without a
/// slash is searched as dlopen does. Throws StatusError NPU_ERROR_INVALID that names the file.
std::vector<npu_custom_op> load_custom_ops(const std::string& path);

}  // namespace npu::aten

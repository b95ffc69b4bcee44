// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "seed.hpp"

namespace npu::test {

/// The least network and way that fail in the same manner, as far as they are found.
Failure shrink(const Failure& failure);

}  // namespace npu::test

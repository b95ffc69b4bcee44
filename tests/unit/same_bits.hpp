// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "npu/tensor/tensor.hpp"

namespace npu::test {

/// Of one dtype and shape, and the same bytes: a NaN equals itself, 0 does not equal -0.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace npu::test

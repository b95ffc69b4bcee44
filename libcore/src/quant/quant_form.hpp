// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "npu/tensor/dtype.hpp"

namespace npu {

/// The integers that a number becomes.
struct QuantForm {
  DType dtype = DType::kUInt8;
  std::int64_t low = 0;
  std::int64_t high = 255;
  bool symmetric = false;  ///< the zero point is the middle: 0 of int8, 128 of uint8

  std::int64_t middle() const noexcept { return (low + high + 1) / 2; }
};

}  // namespace npu

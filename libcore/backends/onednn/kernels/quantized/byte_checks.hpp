// SPDX-License-Identifier: Apache-2.0
#pragma once

// What footprints of kernels on quantized numbers check.

#include <cmath>
#include <cstdint>

#include "kernels/base/refuse.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// The range is of the type's numbers, which all vectors of it hold.
inline void require_range(std::int64_t least, std::int64_t most, DType type) {
  const auto [low, high] = range_of(type);
  require(low <= least && least <= most && most <= high, "'least' and 'most' are no range of 'to'");
}

inline void require_byte(std::int64_t number, const char* reason) {
  require(number >= -128 && number <= 255, reason);
}

/// What kernels have in common that make bytes of sums of bytes.
template <typename Kernel>
void require_bytes_of(const Kernel& kernel) {
  require(is_byte(kernel.from) && is_byte(kernel.to), "a type is not uint8 or int8");
  require_range(kernel.least, kernel.most, kernel.to);
  require_byte(kernel.source_zero, "'source_zero' is no byte");
  require_byte(kernel.zero, "'zero' is no byte");
  require(std::isfinite(kernel.factor), "'factor' is not finite");
}

}  // namespace npu::onednn

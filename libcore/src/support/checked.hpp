// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace npu {

/// a * b, or nothing on overflow.
inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Number of elements of a shape (1 for a scalar, 0 if a dimension is 0); nothing if a dimension is
/// negative or the product of those that are not 0 does not fit in 63 bits.
inline std::optional<std::int64_t> checked_element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
      continue;
    }
    const auto product = checked_multiply(count, dimension);
    if (!product) return std::nullopt;
    count = *product;
  }
  return empty ? 0 : count;
}

/// a + b for counts; an overflow gives the largest value.
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

/// Converts a count that was summed as a double to an integer; one that
/// does not fit becomes the largest value.
inline std::int64_t saturating_integer(double count) {
  return count < 0x1p63 ? static_cast<std::int64_t>(count)
                        : std::numeric_limits<std::int64_t>::max();
}

}  // namespace npu

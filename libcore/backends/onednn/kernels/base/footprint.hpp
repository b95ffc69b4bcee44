// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npu::onednn {

/// More than any tensor has, and so little that products of two sizes of elements do not overflow.
inline constexpr std::int64_t kMaxOperandBytes = std::int64_t{1} << 46;
/// Dimensions of an iteration space: twice the largest rank, since it may follow two shapes.
inline constexpr std::size_t kMostDimensions = 16;

/// What a kernel may touch of one operand: bytes [0, bytes) from its address on.
struct Access {
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  bool may_be_target =
      false;  ///< it may lie where the result lies: elements are read, then written
};

/// What a kernel touches, in the order in which its step lists operands.
struct Footprint {
  std::vector<Access> reads;
  Access write;
  std::size_t scratch_bytes = 0;  ///< 0: the step has no such operand
};

}  // namespace npu::onednn

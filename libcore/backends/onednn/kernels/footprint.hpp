// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"

namespace npu::onednn {

/// More than any tensor has, and so little that products of two sizes of elements do not overflow.
inline constexpr std::int64_t kMaxOperandBytes = std::int64_t{1} << 46;

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

/// Whatever the numbers in a kernel are, it stays inside this footprint when it runs, or Error
/// kInvalidGraph is thrown that names the field: a kernel may come from a hostile file. It is
/// refused, too, if this CPU lacks the instruction set that it asks for.
Footprint footprint_of(const Kernel& kernel);

/// Why a kernel with these numbers runs on no CPU that has its instruction set; empty if it does.
std::string kernel_refusal(const Kernel& kernel);

/// Sets on how many threads a kernel runs, which scratch_bytes depends on.
void set_threads(Kernel& kernel, int threads);

}  // namespace npu::onednn

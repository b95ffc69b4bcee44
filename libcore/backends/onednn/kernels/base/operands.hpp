// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/base/epilogue.hpp"

namespace npu::onednn {

/// The addresses of a step's operands: what it reads, what it writes, and scratch memory.
using Addresses = std::span<std::byte* const>;

/// Operands that an epilogue adds or multiplies with, in its order.
constexpr std::size_t kMaxEpilogueOperands = 8;
using EpilogueOperands = std::array<const float*, kMaxEpilogueOperands>;

/// Hands out the addresses of a step one after the other.
class OperandReader {
 public:
  explicit OperandReader(Addresses addresses) : addresses_(addresses) {}

  template <typename T>
  T* next() {
    return static_cast<T*>(static_cast<void*>(addresses_[next_++]));
  }
  /// Null where the step has no such operand.
  template <typename T>
  T* next_if(bool exists) {
    return exists ? next<T>() : nullptr;
  }
  EpilogueOperands epilogue(std::span<const EpilogueStep> steps) {
    EpilogueOperands result{};
    std::size_t count = 0;
    for (const EpilogueStep& step : steps) {
      if (step.reads_operand()) result[count++] = next<const float>();
    }
    return result;
  }

 private:
  Addresses addresses_;
  std::size_t next_ = 0;
};

/// What a kernel reads and writes that has one operand.
struct UnaryOperands {
  const std::byte* source;
  std::byte* target;
};
inline UnaryOperands bind_unary(Addresses addresses) { return {addresses[0], addresses[1]}; }

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/copies.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Functions of one operand that oneDNN does not have, or whose primitives lose NaN or leave their
/// range; computed in float32. NaN gives NaN.
struct Elementwise {
  static constexpr std::string_view kName = "elementwise";
  enum class Function : std::uint8_t {
    kExp,          ///< 0 below the smallest normal number
    kHardSigmoid,  ///< clip(x / 6 + 1 / 2, 0, 1)
    kSoftplus,     ///< log(1 + exp(x)), never negative
    kLogSigmoid,   ///< -log(1 + exp(-x)), never positive
    kReciprocal,
    kReciprocalRoot,  ///< 1 / sqrt(x)
    kSine,
    kCosine,
    kErf,
    kFloor,
    kCeil,
    kRound,  ///< halves to the even number
    kTruncate,
    kSign,  ///< of NaN 0, as in PyTorch
  };
  Function function = Function::kExp;
  DType type = DType::kFloat32;  ///< float32 or bfloat16
  std::int64_t count = 0;
  VectorIsa isa = VectorIsa::kAny;

  using Operands = UnaryOperands;  ///< the target may be the source
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

}  // namespace npu::onednn

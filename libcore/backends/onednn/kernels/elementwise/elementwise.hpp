// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Functions of one operand that oneDNN does not have, or that its primitives compute with larger
/// errors (npu-onednn(7) has both), without NaN or beyond their range; computed in float32. NaN
/// gives NaN.
struct Elementwise {
  static constexpr std::string_view kName = "elementwise";
  enum class Function : std::uint8_t {
    kExp,
    kLog,
    kSigmoid,
    kTanh,
    kSwish,       ///< x times its sigmoid
    kElu,         ///< below 0 alpha (exp(x) - 1)
    kSelu,        ///< kElu for one alpha, times one number
    kCelu,        ///< below 0 alpha (exp(x / alpha) - 1)
    kGelu,        ///< x times the normal distribution
    kGeluTanh,    ///< the same by its approximation with tanh
    kMish,        ///< x tanh(log(1 + exp(x)))
    kSoftplus,    ///< log(1 + exp(x)), never negative
    kLogSigmoid,  ///< -log(1 + exp(-x)), never positive
    kErf,
    kHardSigmoid,  ///< clip((x + 3) / 6, 0, 1)
    kReciprocal,
    kReciprocalRoot,  ///< 1 / sqrt(x)
    kSine,
    kCosine,
    kFloor,
    kCeil,
    kRound,  ///< halves to the even number
    kTruncate,
    kSign,  ///< of NaN 0, as in PyTorch
  };
  static constexpr int kFunctions = 24;
  /// True if 0 gives 0.
  static bool keeps_zero(Function function) noexcept;

  Function function = Function::kExp;
  DType type = DType::kFloat32;  ///< float32 or bfloat16
  std::int64_t count = 0;
  VectorIsa isa = VectorIsa::kAny;
  float alpha = 1.0F;  ///< of kElu and kCelu

  using Operands = UnaryOperands;  ///< the target may be the source
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<Elementwise::Function> = Elementwise::kFunctions;

NPU_FIELDS(Elementwise, function, type, count, isa, alpha);
Footprint footprint(const Elementwise& kernel);

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/simd.hpp"

namespace npu::onednn {

/// One thing that a kernel of this backend's own does to a result before it stores it.
struct EpilogueStep {
  enum class Kind : std::uint8_t {
    kAccumulate,  ///< + alpha * what the target holds
    kAdd,         ///< + operand, element by element
    kMultiply,    ///< * operand
    kRelu,        ///< negative: * alpha
    kClip,        ///< to [alpha, beta]; NaN stays
    kLinear,      ///< alpha * x + beta
    kSwish,       ///< x * sigmoid(alpha * x)
    kHardSwish,   ///< x * clip(x / 6 + 1 / 2, 0, 1)
  };
  Kind kind = Kind::kRelu;
  float alpha = 0.0F;
  float beta = 0.0F;

  bool has_operand() const noexcept { return kind <= Kind::kMultiply; }
  /// One of its own, beside the target.
  bool reads_operand() const noexcept { return kind == Kind::kAdd || kind == Kind::kMultiply; }
  bool is_plain_relu() const noexcept { return kind == Kind::kRelu && alpha == 0.0F; }
};

/// A step without operands. `kAvx512`: compiled for that.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V apply_step(const EpilogueStep& step, V value) {
  switch (step.kind) {
    case EpilogueStep::Kind::kRelu:
      // 0 times minus infinity would be NaN.
      return value < 0.0F ? (step.is_plain_relu() ? V{} : value * step.alpha) : value;
    case EpilogueStep::Kind::kClip:
      return clamp_vector<kAvx512>(value, step.alpha, step.beta);
    case EpilogueStep::Kind::kLinear:
      return value * step.alpha + step.beta;
    case EpilogueStep::Kind::kSwish:
      return value * sigmoid_vector<kAvx512>(value * step.alpha);
    case EpilogueStep::Kind::kHardSwish:
      return value * clamp_vector<kAvx512>(value * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F);
    default:
      return value;
  }
}

/// All steps on the value that comes to `place` of the target; operands lie like the target.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V apply_steps(std::span<const EpilogueStep> steps, V value,
                                            const float* target, const float* const* operands,
                                            std::int64_t place) {
  std::size_t operand = 0;
  for (const EpilogueStep& step : steps) {
    switch (step.kind) {
      case EpilogueStep::Kind::kAccumulate:
        value += load_vector<V>(target + place) * step.alpha;
        break;
      case EpilogueStep::Kind::kAdd:
        value += load_vector<V>(operands[operand++] + place);
        break;
      case EpilogueStep::Kind::kMultiply:
        value *= load_vector<V>(operands[operand++] + place);
        break;
      default:
        value = apply_step<kAvx512>(step, value);
    }
  }
  return value;
}

}  // namespace npu::onednn

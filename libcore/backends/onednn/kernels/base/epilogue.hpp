// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/exponentials.hpp"
#include "kernels/base/fields.hpp"

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
    kHardSwish,   ///< x * clip((x + 3) / 6, 0, 1)
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
      return swish_of_sum<kAvx512>(value, value * step.alpha);
    case EpilogueStep::Kind::kHardSwish:
      return value * hard_sigmoid_vector<kAvx512>(value);
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

/// value[i] = each(value[i], i) for `count` vectors that are `apart` floats apart.
template <typename V, typename Each>
[[gnu::always_inline]] inline void apply_each(float* values, std::int64_t apart, std::int64_t count,
                                              const Each& each) {
  for (std::int64_t i = 0; i < count; ++i) {
    store_vector(values + i * apart, each(load_vector<V>(values + i * apart), i));
  }
}

/// A step without operands, whose kind is looked at once: the loop has nothing else in it.
template <typename V>
[[gnu::always_inline]] inline void apply_to_all(EpilogueStep step, float* values,
                                                std::int64_t apart, std::int64_t count) {
  using Kind = EpilogueStep::Kind;
  const auto apply = [&](Kind kind) __attribute__((always_inline)) {
    step.kind = kind;
    apply_each<V>(
        values, apart, count, [&](V value, std::int64_t) __attribute__((always_inline)) {
          return apply_step<kIsWide<V>>(step, value);
        });
  };
  switch (step.kind) {
    case Kind::kRelu:
      return apply(Kind::kRelu);
    case Kind::kClip:
      return apply(Kind::kClip);
    case Kind::kLinear:
      return apply(Kind::kLinear);
    case Kind::kSwish:
      return apply(Kind::kSwish);
    case Kind::kHardSwish:
      return apply(Kind::kHardSwish);
    default:
      return;
  }
}

/// bias + sums[i * apart], then all steps, for `count` vectors side by side in the target from
/// `place` on. The sums, which should be in the L1, are overwritten.
template <typename V>
[[gnu::always_inline]] inline void store_with_steps(std::span<const EpilogueStep> steps,
                                                    const float* const* operands, float* sums,
                                                    std::int64_t apart, V bias, std::int64_t count,
                                                    float* target, std::int64_t place) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const auto with = [&](const float* operand, const auto& combine) __attribute__((always_inline)) {
    apply_each<V>(
        sums, apart, count, [&](V value, std::int64_t i) __attribute__((always_inline)) {
          return combine(value, load_vector<V>(operand + place + i * kLanes));
        });
  };
  using Kind = EpilogueStep::Kind;
  apply_each<V>(
      sums, apart,
      count, [&](V value, std::int64_t) __attribute__((always_inline)) { return value + bias; });
  std::size_t operand = 0;
  for (const EpilogueStep& step : steps) {
    switch (step.kind) {
      case Kind::kAccumulate:
        with(
            target, [&](V value, V other)
                        __attribute__((always_inline)) { return value + other * step.alpha; });
        break;
      case Kind::kAdd:
        with(
            operands[operand++],
            [](V value, V other) __attribute__((always_inline)) { return value + other; });
        break;
      case Kind::kMultiply:
        with(
            operands[operand++],
            [](V value, V other) __attribute__((always_inline)) { return value * other; });
        break;
      default:
        apply_to_all<V>(step, sums, apart, count);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    store_vector(target + place + i * kLanes, load_vector<V>(sums + i * apart));
  }
}

template <>
inline constexpr int kEnumerators<EpilogueStep::Kind> = 8;

NPU_FIELDS(EpilogueStep, kind, alpha, beta);

}  // namespace npu::onednn

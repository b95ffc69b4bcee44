// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of vectors of floats that are kernels of their own: to two units in the last place, all
// floats, subnormal ones and results included (npu-onednn(7) has a table, which
// scripts/check/function_ulps.sh measures). Everything is inlined into functions that are compiled
// once for each instruction set.
//
// Polynomials are minimax in the relative error of the result (E. Remez' exchange), their
// coefficients rounded one after the other. What rounding has taken from a sum is kept where it
// counts (T. J. Dekker: A Floating-Point Technique for Extending the Available Precision, 1971);
// nothing relies on a fused multiply-add, nor on its absence.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/base/exponentials.hpp"
#include "kernels/elementwise/logarithms.hpp"
#include "kernels/elementwise/vector_parts.hpp"

namespace npu::onednn {

/// 1 / sqrt(x) by Newton's method from the exponent's half, to about one unit in the last place.
template <typename V>
[[gnu::always_inline]] inline V reciprocal_root_vector(V x) {
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (kIsAvx512<V>) {
    return 1.0F / __builtin_ia32_sqrtps512_mask(x, V{}, std::uint16_t{0xFFFF}, 4);
  }
#endif
  using Int = typename IntegersOf<V>::Type;
  constexpr float kSmallest = 0x1p-100F;                 // half of it is a normal number, too
  const V normal = x < kSmallest ? x * 16777216.0F : x;  // 2^24
  Int bits;
  std::memcpy(&bits, &normal, sizeof bits);
  // Without the sign, which would overflow; what a negative x gives is replaced below.
  bits = 0x5F3759DF - ((bits >> 1) & 0x3FFFFFFF);
  V y;
  std::memcpy(&y, &bits, sizeof y);
  const V half = normal * 0.5F;
  for (int step = 0; step < 3; ++step) y = y * (1.5F - half * y * y);
  y = y + y * (0.5F - half * y * y);
  y = x < kSmallest ? y * 4096.0F : y;
  const V infinity = V{} + __builtin_inff();
  y = x == 0.0F ? with_sign_of(infinity, x) : y;
  y = x == infinity ? V{} : y;
  return x < 0.0F || x != x ? V{} + __builtin_nanf("") : y;
}

template <typename V>
[[gnu::always_inline]] inline V erf_vector(V x) {
  const V magnitude = magnitude_of(x);
  const V square = x * x;
  V p = V{} + 7.996350905e-5F;
  p = p * square - 8.048921009e-4F;
  p = p * square + 5.192281678e-3F;
  p = p * square - 2.68556755e-2F;
  p = p * square + 1.128362492e-1F;
  p = p * square - 3.761262894e-1F;
  p = p * square + 1.283791661e-1F;
  const V near = p * x + x;
  // 1 - exp(log(erfc)): erfc has all the places that its difference from 1 keeps.
  const V a = magnitude > 4.0F ? V{} + 4.0F : magnitude;
  V q = V{} + 1.924200333e-4F;
  q = q * a - 3.008489031e-3F;
  q = q * a + 2.208748832e-2F;
  q = q * a - 1.036400795e-1F;
  q = q * a - 6.375172138e-1F;
  q = q * a - 1.127474904F;
  q = q * a - 2.447247971e-4F;
  const Reduced<V> of = reduced(q);
  const V power = power_of_two<V>(of.exponent);
  const V far = (1.0F - power) - power * exp_less_one(of.rest);
  return magnitude < 0.95F ? near : with_sign_of(far, x);
}

/// factor (e^x - 1) of what a reduction of x has left, for x from -30 to 0.
template <typename V>
[[gnu::always_inline]] inline V exp_less_one_times(V rest, typename IntegersOf<V>::Type exponent,
                                                   float factor) {
  const V curve = exp_curve(rest);
  const V sum = rest + curve;
  const V power = power_of_two<V>(exponent);
  const V base = power - 1.0F;
  const V whole = base + power * sum;
  const V lost = (power * sum - (whole - base)) + power * (curve - (sum - rest));
  return whole * factor + lost * factor;
}

/// scale x, or below 0 factor (exp(x) - 1).
template <typename V>
[[gnu::always_inline]] inline V elu_vector(V x, float factor, float scale) {
  const Reduced<V> of = reduced(x < -30.0F ? V{} - 30.0F : x);
  return x > 0.0F ? x * scale : exp_less_one_times(of.rest, of.exponent, factor);
}

/// x, or below 0 alpha (exp(x / alpha) - 1).
template <typename V>
[[gnu::always_inline]] inline V celu_vector(V x, float alpha) {
  const double inverse = 1.0 / static_cast<double>(alpha);
  const V high = first_places(V{} + static_cast<float>(inverse));
  const auto low = static_cast<float>(inverse - static_cast<double>(high[0]));
  const V bounded = x < alpha * -30.0F ? V{} + alpha * -30.0F : x;
  const V first = first_places(bounded);
  const Reduced<V> of = reduced(first * high);
  const V rest = of.rest + ((bounded - first) * high + bounded * low);
  return x > 0.0F ? x : exp_less_one_times(rest, of.exponent, alpha);
}

/// x P(X < x) for a normal variable X. P is 1 / 2 + x / sqrt(2 pi) and more near 0. Further away
/// the result is |x| P(X < -|x|) below 0, and that less than x above: exp(-x^2 / 2) times a
/// function that rises slowly, |x| times Mills' ratio, a polynomial in (|x| - 2) / (|x| + 3.5). NaN
/// for minus infinity, by the definition, as in PyTorch.
template <typename V>
[[gnu::always_inline]] inline V gelu_vector(V x) {
  const V bounded = clamp_vector<kIsWide<V>>(x, -16.0F, 16.0F);
  const V first = first_places(bounded);
  const V second = bounded - first;
  const V square = bounded * bounded;
  // 1 / sqrt(2 pi) in two parts.
  const V line = first * 0.3989257812F;
  const V base = line + 0.5F;
  V near = V{} + 9.651268192e-5F;
  near = near * square - 1.172964694e-3F;
  near = near * square + 9.96897649e-3F;
  near = near * square - 6.648988277e-2F;
  near = near * square + 1.649915066e-5F;
  near = x * (base + (near * bounded + (second * 0.3989257812F + (line - (base - 0.5F)))));
  const V magnitude = magnitude_of(bounded);
  const V place = (magnitude - 2.00007248F) / (magnitude + 3.5F);
  V p = V{} + 2.180066193e-3F;
  p = p * place - 4.097834695e-3F;
  p = p * place - 6.414930802e-3F;
  p = p * place + 2.006566711e-2F;
  p = p * place + 2.195122838e-2F;
  p = p * place - 1.64052546e-1F;
  p = p * place + 3.326487839e-1F;
  p = p * place - 3.73950243e-1F;
  p = p * place + 2.344269902e-1F;
  p = p * place;
  const V ratio = p + 0.3362070918F;
  const V lost = p - (ratio - 0.3362070918F);
  const Reduced<V> of = reduced(first * first * -0.5F);  // exact
  const V less_one = exp_less_one(of.rest - second * (bounded + first) * 0.5F);
  const V tail = scaled(ratio + (less_one * ratio + lost), of.exponent);
  const V far = (x > 0.0F ? x : x * 0.0F) - tail;
  return magnitude < 0.9F ? near : far;
}

/// x / (1 + exp(-sqrt(8 / pi) (x + 0.044715 x^3))), which is x (1 + tanh(..)) / 2; as above at
/// minus infinity. What the exponent is rounded by would be seen in the result.
template <typename V>
[[gnu::always_inline]] inline V gelu_tanh_vector(V x) {
  using Doubles = typename HalvesOf<V>::Doubles;
  constexpr float kGone = -10.9F;
  const auto exponent_of = [](Doubles value) __attribute__((always_inline)) {
    return value * (value * value * -0.071354816272600249 - 1.5957691216057307);
  };
  const V bounded = clamp_vector<kIsWide<V>>(x, kGone, 10.0F);
  const Reduced<V> of = reduced(in_doubles(exponent_of, bounded));
  const auto rest_of = [&](Doubles value, Doubles n) __attribute__((always_inline)) {
    return exponent_of(value) - n * 0.69314718055994531;
  };
  const V rest = in_doubles(rest_of, bounded, of.count);
  return gated<false>(x, x < kGone, logistic(rest, of.exponent));
}

/// x tanh(log(1 + e^x)), which is x w / (w + 2) for w = e^x (e^x + 2); as above at minus infinity.
template <typename V>
[[gnu::always_inline]] inline V mish_vector(V x) {
  using Doubles = typename HalvesOf<V>::Doubles;
  constexpr float kGone = -112.0F;
  const Reduced<V> of = reduced(clamp_vector<kIsWide<V>>(x, kGone, 20.0F));
  const typename IntegersOf<V>::Type half = of.exponent >> 1;
  const auto mish =
      [](Doubles value, Doubles less_one, Doubles a, Doubles b) __attribute__((always_inline)) {
    const Doubles e = (less_one + 1.0) * a * b;
    const Doubles w = e * (e + 2.0);
    return value * w / (w + 2.0);
  };
  return in_doubles(mish, x < kGone ? x * 0.0F : x, exp_less_one(of.rest), power_of_two<V>(half),
                    power_of_two<V>(of.exponent - half));
}

/// Sine, or cosine: arguments are reduced in doubles, those above 131072 one by one.
template <bool kCosine, typename V>
[[gnu::always_inline]] inline V sine_vector(V x) {
  using Int = typename IntegersOf<V>::Type;
  using Doubles = typename HalvesOf<V>::Doubles;
  const Int is_large = ~(magnitude_of(x) <= 131072.0F);  // NaN, too
  const V small = is_large ? V{} : x;
  const V shifted = small * 0.636619772F + 12582912.0F;
  Int quadrant;
  std::memcpy(&quadrant, &shifted, sizeof quadrant);
  quadrant = quadrant - 0x4B400000 + (kCosine ? 1 : 0);
  // pi / 2 in two parts, of which multiples of the first are exact.
  const auto rest_of = [](Doubles value, Doubles n) __attribute__((always_inline)) {
    return (value - n * 1.5707963267341256) - n * 6.077100506506192e-11;
  };
  const V r = in_doubles(rest_of, small, shifted - 12582912.0F);
  const V square = r * r;
  V sine = V{} - 1.950744627e-4F;
  sine = sine * square + 8.332104422e-3F;
  sine = sine * square - 1.666665375e-1F;
  sine = sine * square * r + r;
  V cosine = V{} + 2.443020276e-5F;
  cosine = cosine * square - 1.388729899e-3F;
  cosine = cosine * square + 4.166664556e-2F;
  const V half = square * 0.5F;
  const V whole = 1.0F - half;
  cosine = whole + (((1.0F - whole) - half) + cosine * (square * square));
  V result = (quadrant & 1) == 0 ? sine : cosine;
  result = (quadrant & 2) == 0 ? result : -result;
  constexpr int kLanes = sizeof(V) / sizeof(float);
  std::uint64_t parts[kLanes / 2];
  std::memcpy(parts, &is_large, sizeof parts);
  std::uint64_t any_large = 0;
  for (const std::uint64_t part : parts) any_large |= part;
  if (any_large != 0) {
    for (int i = 0; i < kLanes; ++i) {
      if (is_large[i] != 0) result[i] = kCosine ? std::cos(x[i]) : std::sin(x[i]);
    }
  }
  return result;
}

}  // namespace npu::onednn

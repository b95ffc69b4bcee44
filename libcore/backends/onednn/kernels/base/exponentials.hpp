// SPDX-License-Identifier: Apache-2.0
#pragma once

// exp, and the functions that are made of it and stand in hot loops: sigmoid, swish, tanh. All that
// compute one of them include this file, so that it has one error in a model. They are compiled
// once for each instruction set, with fused multiply-adds or without: nothing here needs their
// exactness.
//
// e^x = 2^n e^r (W. J. Cody, W. Waite: Software Manual for the Elementary Functions, 1980), where
// e^r - 1 is a polynomial of degree 6, minimax in its relative error. The sums behind it add
// 2^n (e^r - 1), which is exact, to a number that is exact as well: one rounding, not two.

#include <cstdint>
#include <cstring>

#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// The magnitude of `value` with the sign of `sign`.
template <typename V>
[[gnu::always_inline]] inline V with_sign_of(V value, V sign) {
  using Unsigned = typename IntegersOf<V>::Unsigned;
  Unsigned bits;
  Unsigned signs;
  std::memcpy(&bits, &value, sizeof bits);
  std::memcpy(&signs, &sign, sizeof signs);
  bits = (bits & 0x7FFFFFFFU) | (signs & 0x80000000U);
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

template <typename V>
[[gnu::always_inline]] inline V magnitude_of(V value) {
  return with_sign_of(value, V{});
}

/// 2^n for n from -127, which gives 0, to 127.
template <typename V>
[[gnu::always_inline]] inline V power_of_two(typename IntegersOf<V>::Type n) {
  const typename IntegersOf<V>::Type bits = (n + 127) << 23;
  V result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// value * 2^n for n from -252 to 254, rounded once.
template <typename V>
[[gnu::always_inline]] inline V scaled(V value, typename IntegersOf<V>::Type n) {
  const typename IntegersOf<V>::Type half = n >> 1;
  return value * power_of_two<V>(half) * power_of_two<V>(n - half);
}

/// x - n log(2) and n, an integer.
template <typename V>
struct Reduced {
  V rest;
  V count;
  typename IntegersOf<V>::Type exponent;  ///< n
};

/// For |x| up to 175; n is nearest or next to it.
template <typename V>
[[gnu::always_inline]] inline Reduced<V> reduced(V x) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const V shifted = x * 1.44269504F + kShift;
  typename IntegersOf<V>::Type bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const V n = shifted - kShift;
  // log(2) in two parts, of which n times the first is exact.
  return {(x - n * 0.693359375F) + n * 2.12194440e-4F, n, bits - 0x4B400000};
}

/// e^r - 1 - r for |r| up to log(2) / 2.
template <typename V>
[[gnu::always_inline]] inline V exp_curve(V r) {
  V p = V{} + 1.394659746e-3F;
  p = p * r + 8.367029019e-3F;
  p = p * r + 4.166639596e-2F;
  p = p * r + 1.666653901e-1F;
  p = p * r + 0.5F;
  return p * (r * r);
}

/// e^r - 1, with an error of half a unit of the last place of 0.5.
template <typename V>
[[gnu::always_inline]] inline V exp_less_one(V r) {
  return exp_curve(r) + r;
}

/// x, but at least `low` and at most `high`; NaN stays. `kAvx512`: compiled for that, as below.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V clamp_vector(V x, float low, float high) {
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (kAvx512) {  // GCC makes four operations of the two selections
    constexpr std::uint16_t kAll = 0xFFFF;
    constexpr int kCurrentRounding = 4;
    x = __builtin_ia32_maxps512_mask(V{} + low, x, x, kAll, kCurrentRounding);
    return __builtin_ia32_minps512_mask(V{} + high, x, x, kAll, kCurrentRounding);
  } else
#endif
  {
    const V least = low - V{};  // the same vector in both places: one operation, not two
    const V most = high - V{};
    x = x < least ? least : x;
    return x > most ? most : x;
  }
}

/// exp; subnormal results have their last place, NaN stays.
template <typename V>
[[gnu::always_inline]] inline V exp_vector(V x) {
  // Beyond these bounds the product below is 0 or infinite.
  const Reduced<V> of = reduced(clamp_vector<kIsWide<V>>(x, -104.0F, 89.0F));
  return scaled(exp_less_one(of.rest) + 1.0F, of.exponent);
}

/// The same for arguments that are at most 0, or NaN, in two thirds of the time; results below the
/// smallest normal number are 0.
template <typename V>
[[gnu::always_inline]] inline V exp_vector_negative(V x) {
  constexpr float kLowest = -87.33654F;
  const Reduced<V> of = reduced(x < kLowest ? V{} + kLowest : x);
  const V result = (exp_less_one(of.rest) + 1.0F) * power_of_two<V>(of.exponent);
  return x < kLowest ? V{} : result;
}

/// 1 / x with an error of about half a unit in the last place, for x from 1 to 2^126; NaN for NaN.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V reciprocal_vector(V x) {
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (kAvx512) {  // where a division keeps the divider busy for ten cycles
    const V y = __builtin_ia32_rcp14ps512_mask(x, V{}, std::uint16_t{0xFFFF});
    return y + y * (1.0F - x * y);
  } else
#endif
  {
    return 1.0F / x;
  }
}

/// e^-t + 1 as a fraction: `unit` / `whole` is 1 / (1 + e^-t).
template <typename V>
struct Logistic {
  V unit;   ///< a power of two, so that its products are exact
  V whole;  ///< from 1 to 2^97
};

/// Of what a reduction of -t has left, for n from -127 to 160.
template <typename V>
[[gnu::always_inline]] inline Logistic<V> logistic(V rest, typename IntegersOf<V>::Type exponent) {
  // Where e^-t could overflow, both are 2^64 times as small.
  const typename IntegersOf<V>::Type is_far = exponent > 64;
  const V unit = is_far ? V{} + 0x1p-64F : V{} + 1.0F;
  const V power = power_of_two<V>(exponent - (is_far & 64));
  const V base = power + unit;  // exact but where one of them is too small to be seen
  return {unit, base + (power * exp_less_one(rest) + (unit - (base - power)))};
}

template <typename V>
[[gnu::always_inline]] inline Logistic<V> logistic(V x) {
  const Reduced<V> of = reduced(-clamp_vector<kIsWide<V>>(x, -110.0F, 88.0F));
  return logistic(of.rest, of.exponent);
}

/// 1 / (1 + exp(-x)).
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V sigmoid_vector(V x) {
  const Logistic<V> of = logistic(x);
  return of.unit * reciprocal_vector<kAvx512>(of.whole);
}

/// x unit / whole; where `is_gone` is true it is 0, so that the largest numbers vanish as well, and
/// for an infinity NaN, by the definition, as in PyTorch. `kAvx512` as above: it is rounded twice.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V gated(V x, typename IntegersOf<V>::Type is_gone,
                                      const Logistic<V>& gate) {
  const V factor = (is_gone ? x * 0.0F : x) * gate.unit;
  if constexpr (kAvx512) {
    return factor * reciprocal_vector<kAvx512>(gate.whole);
  } else {
    return factor / gate.whole;
  }
}

/// x / (1 + exp(-argument)). `kAvx512` as above.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V swish_vector(V x, V argument) {
  return gated<kAvx512>(x, argument < -110.0F, logistic(argument));
}

/// The same for a sum that was rounded before, in two thirds of the operations: what would be
/// nearer to 0 than 2^-121 is 0.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V swish_of_sum(V x, V argument) {
  // 2^128 is infinite, and a number by infinity 0.
  constexpr float kLowest = kAvx512 ? -87.0F : -89.0F;
  const Reduced<V> of = reduced(-clamp_vector<kAvx512>(argument, kLowest, 88.0F));
  const V whole = (exp_less_one(of.rest) + 1.0F) * power_of_two<V>(of.exponent) + 1.0F;
  if constexpr (kAvx512) {
    const V gate = reciprocal_vector<kAvx512>(whole);
    return x * (argument < kLowest ? V{} : gate);
  } else {
    return x / whole;
  }
}

template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V tanh_vector(V x) {
  const V magnitude = magnitude_of(x);
  // From 1/2 on 1 - 2 / (e^2x + 1) has all its places.
  const V twice = clamp_vector<kAvx512>(magnitude + magnitude, 0.0F, 20.0F);
  const Reduced<V> of = reduced(twice);
  const V power = power_of_two<V>(of.exponent);
  const V whole = (power + 1.0F) + power * exp_less_one(of.rest);
  const V far = 1.0F - 2.0F * reciprocal_vector<kAvx512>(whole);
  const V square = x * x;
  V p = V{} - 6.325704511e-3F;
  p = p * square + 2.11118944e-2F;
  p = p * square - 5.386342853e-2F;
  p = p * square + 1.333271265e-1F;
  p = p * square - 3.333332241e-1F;
  const V near = p * square * x + x;
  return magnitude < 0.5495F ? near : with_sign_of(far, x);
}

/// clip((x + 3) / 6, 0, 1): the sum is exact where it is small.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V hard_sigmoid_vector(V x) {
  const V sum = clamp_vector<kAvx512>(x + 3.0F, 0.0F, 6.0F);
  return sum * (1.0F / 6.0F) - sum * 4.967053e-9F;  // 1 / 6 in two parts, 1 for 6
}

}  // namespace npu::onednn

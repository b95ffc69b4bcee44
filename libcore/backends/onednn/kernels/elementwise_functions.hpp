// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of vectors of floats that oneDNN does not have. Everything is inlined into functions
// that are compiled once for each instruction set.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simd.hpp"

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

/// The value, or its opposite where `sign` is negative.
template <typename V>
[[gnu::always_inline]] inline V times_sign_of(V value, V sign) {
  using Unsigned = typename IntegersOf<V>::Unsigned;
  Unsigned bits;
  Unsigned signs;
  std::memcpy(&bits, &value, sizeof bits);
  std::memcpy(&signs, &sign, sizeof signs);
  bits ^= signs & 0x80000000U;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

#if NPU_HAS_X86 && !defined(__clang__)
/// True for vectors of functions that are compiled for AVX-512.
template <typename V>
inline constexpr bool kIsAvx512 = sizeof(V) == 64;
/// Rounded to an integer: 8 to the nearest, 9 down, 10 up, 11 towards zero.
#define NPU_ROUND_AVX512(x, mode)                                                  \
  if constexpr (kIsAvx512<V>) {                                                    \
    return __builtin_ia32_rndscaleps_mask(x, mode, V{}, std::uint16_t{0xFFFF}, 4); \
  }
#else
template <typename V>
inline constexpr bool kIsAvx512 = false;
#define NPU_ROUND_AVX512(x, mode)
#endif

/// The nearest integer, of two the even one; zeros keep their sign.
template <typename V>
[[gnu::always_inline]] inline V nearest_integer(V x) {
  NPU_ROUND_AVX512(x, 8)
  constexpr float kWhole = 8388608.0F;  // from 2^23 on all floats are integers
  const V magnitude = x < 0.0F ? -x : x;
  const V rounded = (magnitude + kWhole) - kWhole;
  return with_sign_of(magnitude < kWhole ? rounded : x, x);
}

template <typename V>
[[gnu::always_inline]] inline V floor_vector(V x) {
  NPU_ROUND_AVX512(x, 9)
  const V nearest = nearest_integer(x);
  return with_sign_of(nearest > x ? nearest - 1.0F : nearest, x);
}

template <typename V>
[[gnu::always_inline]] inline V ceil_vector(V x) {
  NPU_ROUND_AVX512(x, 10)
  const V nearest = nearest_integer(x);
  return with_sign_of(nearest < x ? nearest + 1.0F : nearest, x);
}

template <typename V>
[[gnu::always_inline]] inline V truncate_vector(V x) {
  NPU_ROUND_AVX512(x, 11)
  const V magnitude = x < 0.0F ? -x : x;
  return with_sign_of(floor_vector(magnitude), x);
}

/// 1 / sqrt(x) by Newton's method from the exponent's half, to about one unit in the last place.
template <typename V>
[[gnu::always_inline]] inline V reciprocal_root_vector(V x) {
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (kIsAvx512<V>) {
    return 1.0F / __builtin_ia32_sqrtps512_mask(x, V{}, std::uint16_t{0xFFFF}, 4);
  }
#endif
  using Int = typename IntegersOf<V>::Type;
  constexpr float kSmallest = 1.17549435e-38F;
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

/// Sine, or cosine, with an absolute error of about 1e-7: a polynomial on [-pi / 4, pi / 4] (S.
/// Moshier's, of Cephes) behind a reduction in three parts; arguments above 8192 one by one.
template <bool kCosine, typename V>
[[gnu::always_inline]] inline V sine_vector(V x) {
  using Int = typename IntegersOf<V>::Type;
  constexpr float kLargest = 8192.0F;
  const V magnitude = x < 0.0F ? -x : x;
  const Int is_large = ~(magnitude <= kLargest);  // NaN, too
  const V small = is_large ? V{} : x;
  const V shifted = small * 0.636619772F + 12582912.0F;
  Int quadrant;
  std::memcpy(&quadrant, &shifted, sizeof quadrant);
  quadrant = quadrant - 0x4B400000 + (kCosine ? 1 : 0);
  const V n = shifted - 12582912.0F;
  V r = small - n * 1.5703125F;
  r = r - n * 4.837512969970703125e-4F;
  r = r - n * 7.54978995489188216e-8F;
  const V square = r * r;
  V sine = V{} - 1.9515295891e-4F;
  sine = sine * square + 8.3321608736e-3F;
  sine = sine * square - 1.6666654611e-1F;
  sine = sine * square * r + r;
  V cosine = V{} + 2.443315711809948e-5F;
  cosine = cosine * square - 1.388731625493765e-3F;
  cosine = cosine * square + 4.166664568298827e-2F;
  cosine = cosine * square * square - square * 0.5F + 1.0F;
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

/// erf: its series near zero, elsewhere by Abramowitz and Stegun, 7.1.26; absolute error 2e-7.
template <typename V>
[[gnu::always_inline]] inline V erf_vector(V x) {
  const V magnitude = x < 0.0F ? -x : x;
  const V t = 1.0F / (magnitude * 0.3275911F + 1.0F);
  V p = t * 1.061405429F - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const V far = 1.0F - p * t * exp_vector_negative(-(magnitude * magnitude));
  const V square = x * x;
  V near = V{} + 1.0F / 9360.0F * 1.12837917F;
  near = near * square - 1.12837917F / 1320.0F;
  near = near * square + 1.12837917F / 216.0F;
  near = near * square - 1.12837917F / 42.0F;
  near = near * square + 1.12837917F / 10.0F;
  near = near * square - 1.12837917F / 3.0F;
  near = near * square + 1.12837917F;
  return magnitude < 0.5F ? near * x : with_sign_of(far, x);
}

}  // namespace npu::onednn

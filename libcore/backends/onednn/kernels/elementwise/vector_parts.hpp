// SPDX-License-Identifier: Apache-2.0
#pragma once

// What functions of vectors are made of: signs, roundings, halves, and arithmetic in doubles.

#include <cstdint>
#include <cstring>

#include "kernels/base/exponentials.hpp"

namespace npu::onednn {

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

/// The first 12 of its 24 places: a product of two such numbers is exact.
template <typename V>
[[gnu::always_inline]] inline V first_places(V x) {
  using Unsigned = typename IntegersOf<V>::Unsigned;
  Unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0xFFFFF000U;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// The halves of a vector's floats, as floats and as doubles, and a vector of two halves. Through
/// registers: two stores and a load of both would wait for each other.
template <typename V>
struct HalvesOf;
template <>
struct HalvesOf<Float16> {
  using Floats = Float8;
  using Doubles = double __attribute__((vector_size(64)));
  [[gnu::always_inline]] static Float8 low(Float16 x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  }
  [[gnu::always_inline]] static Float8 high(Float16 x) {
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  [[gnu::always_inline]] static Float16 both(Float8 a, Float8 b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
};
template <>
struct HalvesOf<Float8> {
  using Floats = Float4;
  using Doubles = double __attribute__((vector_size(32)));
  [[gnu::always_inline]] static Float4 low(Float8 x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3);
  }
  [[gnu::always_inline]] static Float4 high(Float8 x) {
    return __builtin_shufflevector(x, x, 4, 5, 6, 7);
  }
  [[gnu::always_inline]] static Float8 both(Float4 a, Float4 b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  }
};
template <>
struct HalvesOf<Float4> {
  using Floats = float __attribute__((vector_size(8)));
  using Doubles = double __attribute__((vector_size(16)));
  [[gnu::always_inline]] static Floats low(Float4 x) { return __builtin_shufflevector(x, x, 0, 1); }
  [[gnu::always_inline]] static Floats high(Float4 x) {
    return __builtin_shufflevector(x, x, 2, 3);
  }
  [[gnu::always_inline]] static Float4 both(Floats a, Floats b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3);
  }
};

/// f(values..) in doubles, rounded once.
template <typename Function, typename V, typename... More>
[[gnu::always_inline]] inline V in_doubles(const Function& f, V value, More... more) {
  using Halves = HalvesOf<V>;
  using Floats = typename Halves::Floats;
  using Doubles = typename Halves::Doubles;
  return Halves::both(
      __builtin_convertvector(f(__builtin_convertvector(Halves::low(value), Doubles),
                                __builtin_convertvector(Halves::low(more), Doubles)...),
                              Floats),
      __builtin_convertvector(f(__builtin_convertvector(Halves::high(value), Doubles),
                                __builtin_convertvector(Halves::high(more), Doubles)...),
                              Floats));
}

}  // namespace npu::onednn

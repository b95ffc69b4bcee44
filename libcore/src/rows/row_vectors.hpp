// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of floats by the compiler's extension, and rows of float32 or bfloat16 that are read and
// written as such. Everything is inlined into functions that are compiled for one level of
// instructions each.

#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define NPU_ROWS_HAVE_LEVELS 1
#define NPU_ROWS_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)  // which takes the widest vectors that the types ask for
#define NPU_ROWS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#else
#define NPU_ROWS_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")))
#endif
#else
#define NPU_ROWS_HAVE_LEVELS 0
#endif
#define NPU_ROWS_INLINE [[gnu::always_inline]] inline

namespace npu {

using Floats4 = float __attribute__((vector_size(16)));
using Floats8 = float __attribute__((vector_size(32)));
using Floats16 = float __attribute__((vector_size(64)));

template <typename V>
inline constexpr std::int64_t kFloatsOf = sizeof(V) / sizeof(float);

template <typename V>
struct BitsOf;
template <>
struct BitsOf<Floats4> {
  using Words = std::uint32_t __attribute__((vector_size(16)));
  using Halves = std::uint16_t __attribute__((vector_size(8)));
};
template <>
struct BitsOf<Floats8> {
  using Words = std::uint32_t __attribute__((vector_size(32)));
  using Halves = std::uint16_t __attribute__((vector_size(16)));
};
template <>
struct BitsOf<Floats16> {
  using Words = std::uint32_t __attribute__((vector_size(64)));
  using Halves = std::uint16_t __attribute__((vector_size(32)));
};

template <typename V>
NPU_ROWS_INLINE V load_floats(const float* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// From bfloat16.
template <typename V>
NPU_ROWS_INLINE V load_floats(const std::uint16_t* from) {
  typename BitsOf<V>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const auto words = __builtin_convertvector(halves, typename BitsOf<V>::Words) << 16;
  V value;
  std::memcpy(&value, &words, sizeof value);
  return value;
}

template <typename V>
NPU_ROWS_INLINE void store_floats(float* to, const V& value) {
  std::memcpy(to, &value, sizeof value);
}

/// As bfloat16, rounded to the nearest, ties to even; NaN stays NaN.
template <typename V>
NPU_ROWS_INLINE void store_floats(std::uint16_t* to, const V& value) {
  using Words = typename BitsOf<V>::Words;
  Words bits;
  std::memcpy(&bits, &value, sizeof bits);
  const Words rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  const Words quiet = bits >> 16 | 0x40;
  const Words is_nan = static_cast<Words>(value != value);
  const Words chosen = (quiet & is_nan) | (rounded & ~is_nan);
  const auto halves = __builtin_convertvector(chosen, typename BitsOf<V>::Halves);
  std::memcpy(to, &halves, sizeof halves);
}

/// The first `count` elements, and 0 behind them; `count` is below that of a vector.
template <typename V, typename T>
NPU_ROWS_INLINE V load_some(const T* from, std::int64_t count) {
  T elements[kFloatsOf<V>] = {};
  for (std::int64_t i = 0; i < count; ++i) elements[i] = from[i];
  return load_floats<V>(elements);
}

template <typename V, typename T>
NPU_ROWS_INLINE void store_some(T* to, const V& value, std::int64_t count) {
  T elements[kFloatsOf<V>];
  store_floats(elements, value);
  for (std::int64_t i = 0; i < count; ++i) to[i] = elements[i];
}

}  // namespace npu

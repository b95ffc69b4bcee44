// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of floats by the compiler's extension. Everything is inlined into functions that are
// compiled once for each instruction set.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/isa_level.hpp"

#if defined(__x86_64__)
#include <immintrin.h>  // declares the compiler's own functions for instructions
#define NPU_HAS_X86 1
#define NPU_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define NPU_TARGET_AVX512 \
  __attribute__((         \
      target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")))
#else
#define NPU_HAS_X86 0
#define NPU_TARGET_AVX2
#define NPU_TARGET_AVX512
#endif

#if NPU_HAS_X86 && !defined(__clang__)  // clang 14 has the type for CPUs with the instructions only
#define NPU_HAS_FLOAT16 1
#define NPU_TARGET_FLOAT16 \
  __attribute__((target(   \
      "avx512f,avx512bw,avx512vl,avx512dq,avx512fp16,avx2,fma,f16c,prefer-vector-width=512")))
#else
#define NPU_HAS_FLOAT16 0
#endif

/// For what is compiled once for each instruction set as part of a function that is.
#define NPU_INLINE [[gnu::always_inline]] inline

namespace npu::onednn {

using Float16 = float __attribute__((vector_size(64)));
using Float8 = float __attribute__((vector_size(32)));
using Float4 = float __attribute__((vector_size(16)));
/// Of functions that are not compiled for AVX-512: NEON's registers have 4 floats.
#if defined(__aarch64__)
using NarrowFloats = Float4;
#else
using NarrowFloats = Float8;
#endif
template <typename V>
struct IntegersOf;
template <>
struct IntegersOf<Float16> {
  using Type = std::int32_t __attribute__((vector_size(64)));
  using Unsigned = std::uint32_t __attribute__((vector_size(64)));
  using Half = std::uint16_t __attribute__((vector_size(32)));
  using ShortHalf = std::int16_t __attribute__((vector_size(32)));
};
template <>
struct IntegersOf<Float8> {
  using Type = std::int32_t __attribute__((vector_size(32)));
  using Unsigned = std::uint32_t __attribute__((vector_size(32)));
  using Half = std::uint16_t __attribute__((vector_size(16)));
};
template <>
struct IntegersOf<Float4> {
  using Type = std::int32_t __attribute__((vector_size(16)));
  using Unsigned = std::uint32_t __attribute__((vector_size(16)));
  using Half = std::uint16_t __attribute__((vector_size(8)));
};

/// How many runs of b make up a.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// NEON has AVX2's place, since no plan is read on both: functions for that are for either.
enum class VectorIsa : std::uint8_t { kAny, kAvx2, kAvx512, kNeon = kAvx2 };

/// Floats of a vector.
template <typename V>
inline constexpr std::int64_t kLanesOf = sizeof(V) / sizeof(float);
/// Floats of the vectors of an instruction set, which is how many channels a block has.
constexpr std::int64_t lanes_of(VectorIsa isa) {
  return isa == VectorIsa::kAvx512 ? 16 : kLanesOf<NarrowFloats>;
}
/// True for vectors of functions that are compiled for AVX-512.
template <typename V>
inline constexpr bool kIsWide = sizeof(V) == 64;

/// What this CPU runs, as far as NPU_MAX_ISA allows. Kernels run what their descriptor says, which
/// may be less.
inline VectorIsa cpu_vector_isa() {
  static const VectorIsa isa = cpu_has(CpuFeature::kAvx512) ? VectorIsa::kAvx512
                               : cpu_has(CpuFeature::kAvx2) || cpu_has(CpuFeature::kNeon)
                                   ? VectorIsa::kAvx2
                                   : VectorIsa::kAny;
  return isa;
}

/// Whether it has AVX-512's products of pairs of bfloat16 numbers.
inline bool cpu_multiplies_bfloat16() {
  static const bool does = cpu_has(CpuFeature::kAvx512BFloat16);
  return does;
}

/// Whether it has AVX512-FP16, which computes in float16, and the compiler knows that.
inline bool cpu_multiplies_float16() {
  static const bool does = NPU_HAS_FLOAT16 != 0 && cpu_has(CpuFeature::kAvx512Float16);
  return does;
}

/// The one of three functions, compiled from one source, that is for an instruction set.
template <typename Function>
Function* for_isa(VectorIsa isa, Function* anywhere, Function* avx2, Function* avx512) {
  switch (isa) {
    case VectorIsa::kAvx512:
      return avx512;
    case VectorIsa::kAvx2:
      return avx2;
    default:
      return anywhere;
  }
}

template <typename V>
[[gnu::always_inline]] inline V load_vector(const float* from) {
  V result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

template <typename V>
[[gnu::always_inline]] inline void store_vector(float* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

/// Floats, or bfloat16 numbers as their bits.
template <typename V, typename T>
[[gnu::always_inline]] inline V load_as_floats(const T* from) {
  if constexpr (std::is_same_v<T, float>) {
    return load_vector<V>(from);
  } else {
    using Unsigned = typename IntegersOf<V>::Unsigned;
    typename IntegersOf<V>::Half bits;
    std::memcpy(&bits, from, sizeof bits);
    const Unsigned wide = __builtin_convertvector(bits, Unsigned) << 16;
    V result;
    std::memcpy(&result, &wide, sizeof result);
    return result;
  }
}

/// To floats, or rounded to bfloat16, to the nearest and even ones.
template <typename V, typename T>
[[gnu::always_inline]] inline void store_floats(T* to, V value) {
  if constexpr (std::is_same_v<T, float>) {
    store_vector(to, value);
  } else {
    using Unsigned = typename IntegersOf<V>::Unsigned;
    using Half = typename IntegersOf<V>::Half;
    Unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    const Unsigned rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
    const Unsigned chosen = value != value ? bits | 0x00400000U : rounded;
    const Half half = __builtin_convertvector(chosen >> 16, Half);
    std::memcpy(to, &half, sizeof half);
  }
}

/// Floats of float16 numbers, given as their bits, exactly. `kHasF16c`: compiled for AVX2, which no
/// CPU has without F16C, or AVX-512.
template <typename V, bool kHasF16c>
[[gnu::always_inline]] inline V load_halves(const std::uint16_t* from) {
  using Half = typename IntegersOf<V>::Half;
  Half bits;
  std::memcpy(&bits, from, sizeof bits);
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (kHasF16c && sizeof(V) == 64) {
    using Shorts = std::int16_t __attribute__((vector_size(32)));
    constexpr int kCurrentRounding = 4;
    return __builtin_ia32_vcvtph2ps512_mask(reinterpret_cast<Shorts>(bits), V{},
                                            std::uint16_t{0xFFFF}, kCurrentRounding);
  } else if constexpr (kHasF16c && sizeof(V) == 32) {
    using Shorts = std::int16_t __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps256(reinterpret_cast<Shorts>(bits));
  } else
#endif
  {
    // The exponent has another bias, which a multiplication makes right for subnormal numbers, too.
    using Unsigned = typename IntegersOf<V>::Unsigned;
    const Unsigned wide = __builtin_convertvector(bits, Unsigned);
    const Unsigned shifted = (wide & 0x7FFFU) << 13;
    V magnitude;
    std::memcpy(&magnitude, &shifted, sizeof magnitude);
    magnitude *= 0x1p112F;
    Unsigned result;
    std::memcpy(&result, &magnitude, sizeof result);
    result = (wide & 0x7C00U) == 0x7C00U ? shifted | 0x7F800000U : result;
    result |= (wide & 0x8000U) << 16;
    V floats;
    std::memcpy(&floats, &result, sizeof floats);
    return floats;
  }
}

/// Rounds floats to the nearest float16 numbers, ties to even; larger ones than 65504 become
/// infinite. The function that it is inlined into is compiled for AVX2, AVX-512 or NEON.
template <typename V>
[[gnu::always_inline]] inline void store_halves(std::uint16_t* to, V value) {
  using Half = typename IntegersOf<V>::Half;
  Half half;
#if NPU_HAS_X86 && !defined(__clang__)
  constexpr int kToNearest = 8;  // and no exceptions
  if constexpr (sizeof(V) == 64) {
    half = reinterpret_cast<Half>(__builtin_ia32_vcvtps2ph512_mask(
        value, kToNearest, typename IntegersOf<V>::ShortHalf{}, std::uint16_t{0xFFFF}));
  } else {
    half = reinterpret_cast<Half>(__builtin_ia32_vcvtps2ph256(value, kToNearest));
  }
#else
  using Unsigned = typename IntegersOf<V>::Unsigned;
  Unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  const Unsigned magnitude = bits & 0x7FFFFFFFU;
  // Adding 1/2 rounds a subnormal number where its last bit is.
  V small;
  std::memcpy(&small, &magnitude, sizeof small);
  small += 0.5F;
  Unsigned subnormal;
  std::memcpy(&subnormal, &small, sizeof subnormal);
  const Unsigned normal = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  Unsigned result = magnitude < 0x38800000U ? subnormal - 0x3F000000U : normal;
  result = magnitude >= 0x477FF000U ? Unsigned{} + 0x7C00U : result;
  result = magnitude > 0x7F800000U ? Unsigned{} + 0x7E00U : result;
  half = __builtin_convertvector(result | ((bits >> 16) & 0x8000U), Half);
#endif
  std::memcpy(to, &half, sizeof half);
}

/// All elements combined in halves: element i with element i + n / 2, and so on.
template <typename V, typename Combine>
[[gnu::always_inline]] inline float folded_in_halves(V value, const Combine& combine) {
  constexpr int kLanes = sizeof(V) / sizeof(float);
  float parts[kLanes];
  store_vector(parts, value);
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) parts[i] = combine(parts[i], parts[i + half]);
  }
  return parts[0];
}

template <typename V>
[[gnu::always_inline]] inline float sum_of_elements(V value) {
  return folded_in_halves(
      value, [](float a, float b) __attribute__((always_inline)) { return a + b; });
}

/// The largest element; NaN is passed over unless all are NaN.
template <typename V>
[[gnu::always_inline]] inline float largest_element(V value) {
  return folded_in_halves(
      value, [](float a, float b) __attribute__((always_inline)) { return b > a ? b : a; });
}

}  // namespace npu::onednn

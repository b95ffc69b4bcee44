// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of floats by the compiler's extension, and the one function on them that loops over
// elements do not give: exp. Everything is inlined into functions that are compiled once for each
// instruction set.

#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// What this CPU runs. Kernels run what their descriptor says, which may be less.
inline VectorIsa cpu_vector_isa() {
#if NPU_HAS_X86
  static const VectorIsa isa = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
      return VectorIsa::kAvx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return VectorIsa::kAvx2;
    return VectorIsa::kAny;
  }();
  return isa;
#elif defined(__aarch64__)
  return VectorIsa::kNeon;
#else
  return VectorIsa::kAny;
#endif
}

/// Whether it has AVX-512's products of pairs of bfloat16 numbers.
inline bool cpu_multiplies_bfloat16() {
#if NPU_HAS_X86
  return cpu_vector_isa() == VectorIsa::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

/// Whether it has AVX512-FP16, which computes in float16.
inline bool cpu_multiplies_float16() {
#if NPU_HAS_FLOAT16
  return cpu_vector_isa() == VectorIsa::kAvx512 && __builtin_cpu_supports("avx512fp16") != 0;
#else
  return false;
#endif
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

/// 2^-n exp(x) for n = x / log(2) rounded; `shifted` gets n in the low bits of 1.5 * 2^23 + n.
template <typename V>
[[gnu::always_inline]] inline V exp_fraction(V x, V& shifted) {
  // |r| is at most log(2) / 2; adding 1.5 * 2^23 rounds to an integer.
  shifted = x * 1.44269504F + 12582912.0F;
  const V n = shifted - 12582912.0F;
  V r = x - n * 0.693359375F;
  r = r + n * 2.12194440e-4F;
  V p = V{} + 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return p * (r * r) + r + 1.0F;
}

/// exp with a relative error of about 2 units in the last place; 0 below the smallest normal
/// number, infinity above the largest, NaN for NaN.
template <typename V>
[[gnu::always_inline]] inline V exp_vector(V x) {
  using Int = typename IntegersOf<V>::Type;
  constexpr float kLowest = -87.33654F;
  constexpr float kHighest = 88.72283F;
  V clipped = x < kLowest ? V{} + kLowest : x;
  clipped = clipped > kHighest ? V{} + kHighest : clipped;
  V shifted;
  V p = exp_fraction(clipped, shifted);
  // n is up to 128: two factors, since 2^128 alone is infinite.
  Int bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const Int exponent = bits - 0x4B400000;
  const Int half = exponent >> 1;
  const Int first = (half + 127) << 23;
  const Int second = (exponent - half + 127) << 23;
  V a;
  V b;
  std::memcpy(&a, &first, sizeof a);
  std::memcpy(&b, &second, sizeof b);
  p = p * a * b;
  p = x < kLowest ? V{} : p;
  p = x > kHighest ? V{} + __builtin_inff() : p;
  return x != x ? x : p;
}

/// The same for arguments that are at most 0, or NaN, in two thirds of the time.
template <typename V>
[[gnu::always_inline]] inline V exp_vector_negative(V x) {
  using Int = typename IntegersOf<V>::Type;
  constexpr float kLowest = -87.33654F;
  V shifted;
  const V p = exp_fraction(x < kLowest ? V{} + kLowest : x, shifted);
  Int bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const Int exponent = (bits - (0x4B400000 - 127)) << 23;
  V factor;
  std::memcpy(&factor, &exponent, sizeof factor);
  return x < kLowest ? V{} : p * factor;
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

/// 1 / x with an error of about one unit in the last place, for x from 1 to 2^126; NaN for NaN.
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

/// 1 / (1 + exp(-x)) with a relative error of about 3e-7 where it is above 1e-6; 0 below -87, so
/// that the largest numbers times it vanish as well; NaN for NaN.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V sigmoid_vector(V x) {
  using Int = typename IntegersOf<V>::Type;
  constexpr float kShift = 12582912.0F + 127.0F;  // its last bits are the exponent's bias
  const V z = clamp_vector<kAvx512>(x * -1.44269504F, -126.0F, 125.0F);
  const V shifted = z + kShift;
  const V r = z - (shifted - kShift);
  // 2^r on [-1/2, 1/2], fitted for the least relative error.
  V p = V{} + 1.3276470e-3F;
  p = p * r + 9.6755410e-3F;
  p = p * r + 5.5507135e-2F;
  p = p * r + 2.4022120e-1F;
  p = p * r + 6.9314694e-1F;
  p = p * r + 1.0000001F;
  Int bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const Int exponent = bits << 23;
  V factor;
  std::memcpy(&factor, &exponent, sizeof factor);
  constexpr float kLowest = -87.0F;
  return x < kLowest ? V{} : reciprocal_vector<kAvx512>(p * factor + 1.0F);
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

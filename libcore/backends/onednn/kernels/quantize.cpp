// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and quantized numbers, and functions of quantized numbers that no
// float tensor in memory is needed for. All are bound by memory: elements are read once, computed
// with as floats in registers, and written once.
//
// Rounding adds and takes away 1.5 * 2^23, which gives the nearest integer, ties to even, for
// numbers below 2^22; what is cut to the range of the result afterwards is cut to that before.
#include "kernels/quantize.hpp"

#include <algorithm>
#include <limits>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kRun = 8192;  ///< elements of a thread's piece

/// Vectors of integers with as many elements as vectors of floats.
template <typename V, typename T>
struct VectorOf {
  using Type __attribute__((vector_size(sizeof(T) * kLanesOf<V>))) = T;
};

template <typename V, typename T>
[[gnu::always_inline]] inline V load_numbers(const T* from) {
  typename VectorOf<V, T>::Type numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return __builtin_convertvector(__builtin_convertvector(numbers, typename IntegersOf<V>::Type), V);
}

template <typename V, typename T>
[[gnu::always_inline]] inline void store_numbers(T* to, V whole) {
  using Int = typename IntegersOf<V>::Type;
  const auto numbers =
      __builtin_convertvector(__builtin_convertvector(whole, Int), typename VectorOf<V, T>::Type);
  std::memcpy(to, &numbers, sizeof numbers);
}

/// The nearest integer, ties to even, of a number that is cut to +-2^21 first.
template <bool kAvx512, typename V>
[[gnu::always_inline]] inline V rounded_number(V x) {
  constexpr float kFarthest = 2097152.0F;
  constexpr float kShift = 12582912.0F;
  x = clamp_vector<kAvx512>(x, -kFarthest, kFarthest);
  return (x + kShift) - kShift;
}

/// A run of elements with one factor and zero.
struct Run {
  const void* source;
  const void* other;
  void* target;
  std::int64_t count;
  float factor;
  float zero;
};

/// Calls body<V>(i) for every vector; the last ones of a run go through a vector of their own.
template <typename V, typename From, typename To, typename Body>
[[gnu::always_inline]] inline void for_vectors(const From* from, To* to, std::int64_t count,
                                               const Body& body) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(from + i, to + i);
  if (i == count) return;
  From rest[kLanes] = {};
  To result[kLanes];
  std::copy(from + i, from + count, rest);
  body(rest, result);
  std::copy(result, result + (count - i), to + i);
}

template <typename V, typename T>
[[gnu::always_inline]] inline void quantize_run(const Quantize& call, const Run& run) {
  const auto least = static_cast<float>(call.least);
  const auto most = static_cast<float>(call.most);
  const float nan = call.divides ? least : 0.0F;
  const V factor = V{} + run.factor;
  const V zero = V{} + run.zero;
  for_vectors<V>(
      static_cast<const float*>(run.source), static_cast<T*>(run.target),
      run.count, [&](const float* from, T* to) __attribute__((always_inline)) {
        const V x = load_vector<V>(from);
        const V quotient = call.divides ? x / factor : x * factor;
        V whole = rounded_number<kIsWide<V>>(quotient) + zero;
        whole = clamp_vector<kIsWide<V>>(whole, least, most);
        store_numbers<V>(to, quotient != quotient ? V{} + nan : whole);
      });
}

template <typename V, typename T>
[[gnu::always_inline]] inline void dequantize_run(const Run& run) {
  const V factor = V{} + run.factor;
  const V zero = V{} + run.zero;
  for_vectors<V>(
      static_cast<const T*>(run.source), static_cast<float*>(run.target),
      run.count, [&](const T* from, float* to) __attribute__((always_inline)) {
        store_vector(to, (load_numbers<V>(from) - zero) * factor);
      });
}

template <typename V>
[[gnu::always_inline]] inline void quantize_typed(const Quantize& call, const Run& run) {
  switch (call.to) {
    case DType::kUInt8:
      return quantize_run<V, std::uint8_t>(call, run);
    case DType::kInt8:
      return quantize_run<V, std::int8_t>(call, run);
    default:
      return quantize_run<V, std::int16_t>(call, run);
  }
}

void quantize_anywhere(const Quantize& call, const Run& run) {
  quantize_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX2 void quantize_avx2(const Quantize& call, const Run& run) {
  quantize_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX512 void quantize_avx512(const Quantize& call, const Run& run) {
  quantize_typed<Float16>(call, run);
}

template <typename V>
[[gnu::always_inline]] inline void dequantize_typed(const Dequantize& call, const Run& run) {
  switch (call.from) {
    case DType::kUInt8:
      return dequantize_run<V, std::uint8_t>(run);
    case DType::kInt8:
      return dequantize_run<V, std::int8_t>(run);
    case DType::kInt16:
      return dequantize_run<V, std::int16_t>(run);
    default:
      return dequantize_run<V, std::int32_t>(run);
  }
}

void dequantize_anywhere(const Dequantize& call, const Run& run) {
  dequantize_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX2 void dequantize_avx2(const Dequantize& call, const Run& run) {
  dequantize_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX512 void dequantize_avx512(const Dequantize& call, const Run& run) {
  dequantize_typed<Float16>(call, run);
}

template <typename V, typename A, typename B, typename T>
[[gnu::always_inline]] inline void binary_run(const QuantizedBinary& call, const Run& run) {
  const auto least = static_cast<float>(call.least);
  const auto most = static_cast<float>(call.most);
  const V a_factor = V{} + call.a_factor;
  const V b_factor = V{} + call.b_factor;
  const V a_zero = V{} + static_cast<float>(call.a_zero);
  const V b_zero = V{} + static_cast<float>(call.b_zero);
  const V zero = V{} + static_cast<float>(call.zero);
  const auto* a = static_cast<const A*>(run.source);
  const auto* b = static_cast<const B*>(run.other);
  auto* target = static_cast<T*>(run.target);
  const auto compute = [&](const A* left, const B* right, T* to) __attribute__((always_inline)) {
    const V x = (load_numbers<V>(left) - a_zero) * a_factor;
    const V y = (load_numbers<V>(right) - b_zero) * b_factor;
    const V whole = rounded_number<kIsWide<V>>(call.multiplies ? x * y : x + y) + zero;
    store_numbers<V>(to, clamp_vector<kIsWide<V>>(whole, least, most));
  };
  constexpr std::int64_t kLanes = kLanesOf<V>;
  std::int64_t i = 0;
  for (; i + kLanes <= run.count; i += kLanes) compute(a + i, b + i, target + i);
  if (i == run.count) return;
  A left[kLanes] = {};
  B right[kLanes] = {};
  T result[kLanes];
  std::copy(a + i, a + run.count, left);
  std::copy(b + i, b + run.count, right);
  compute(left, right, result);
  std::copy(result, result + (run.count - i), target + i);
}

template <typename V, typename A, typename B>
[[gnu::always_inline]] inline void binary_to(const QuantizedBinary& call, const Run& run) {
  if (call.to == DType::kInt8) return binary_run<V, A, B, std::int8_t>(call, run);
  binary_run<V, A, B, std::uint8_t>(call, run);
}

template <typename V>
[[gnu::always_inline]] inline void binary_typed(const QuantizedBinary& call, const Run& run) {
  using Signed = std::int8_t;
  using Unsigned = std::uint8_t;
  const bool a = call.a_type == DType::kInt8;
  const bool b = call.b_type == DType::kInt8;
  if (a)
    return b ? binary_to<V, Signed, Signed>(call, run) : binary_to<V, Signed, Unsigned>(call, run);
  return b ? binary_to<V, Unsigned, Signed>(call, run)
           : binary_to<V, Unsigned, Unsigned>(call, run);
}

void binary_anywhere(const QuantizedBinary& call, const Run& run) {
  binary_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX2 void binary_avx2(const QuantizedBinary& call, const Run& run) {
  binary_typed<NarrowFloats>(call, run);
}
NPU_TARGET_AVX512 void binary_avx512(const QuantizedBinary& call, const Run& run) {
  binary_typed<Float16>(call, run);
}

void look_up(const std::uint8_t* source, const std::uint8_t* table, std::uint8_t* target,
             std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = table[source[i]];
}

#if NPU_HAS_X86
bool permutes_bytes() {
  static const bool does = __builtin_cpu_supports("avx512vbmi") != 0;
  return does;
}

/// The table in four registers: 64 numbers are looked up by two permutations.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_64(const std::uint8_t* source,
                                                                       const std::uint8_t* table,
                                                                       std::uint8_t* target,
                                                                       std::int64_t count) {
  __m512i parts[4];
  std::memcpy(parts, table, sizeof parts);
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i index = _mm512_loadu_si512(source + i);
    const __m512i low = _mm512_permutex2var_epi8(parts[0], index, parts[1]);
    const __m512i high = _mm512_permutex2var_epi8(parts[2], index, parts[3]);
    _mm512_storeu_si512(target + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }
  look_up(source + i, table, target + i, count - i);
}
#else
bool permutes_bytes() { return false; }
constexpr auto look_up_64 = look_up;
#endif

/// Calls body(run) for runs of one channel each, on all threads.
template <typename Call, typename Body>
void share_channels(const Call& call, const Run& whole, std::size_t from_size, std::size_t to_size,
                    const float* factors, const float* zeros, const Body& body) {
  const auto piece = [&](std::int64_t begin, std::int64_t count, std::int64_t channel) {
    Run run = whole;
    run.source =
        static_cast<const std::byte*>(whole.source) + begin * static_cast<std::int64_t>(from_size);
    run.target = static_cast<std::byte*>(whole.target) + begin * static_cast<std::int64_t>(to_size);
    run.count = count;
    run.factor = factors[channel];
    run.zero = zeros[channel];
    body(run);
  };
  const std::int64_t total = call.outer * call.channels * call.inner;
  const int threads = threads_for(total >= kParallelElements);
  if (call.channels == 1) {
    return share_range(total, kRun, threads, [&](std::int64_t first, std::int64_t last) {
      piece(first, last - first, 0);
    });
  }
  const std::int64_t rows = std::max<std::int64_t>(1, kRun / call.inner);
  share_range(call.outer * call.channels, rows, threads,
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t row = first; row < last; ++row) {
                  piece(row * call.inner, call.inner, row % call.channels);
                }
              });
}

}  // namespace

void Quantize::run(const Operands& operands) const {
  const auto body = for_isa(isa, quantize_anywhere, quantize_avx2, quantize_avx512);
  share_channels(*this, {operands.source, nullptr, operands.target, 0, 1.0F, 0.0F}, sizeof(float),
                 dtype_size(to), operands.factors, operands.zeros,
                 [&](const Run& run) { body(*this, run); });
}

void Dequantize::run(const Operands& operands) const {
  const auto body = for_isa(isa, dequantize_anywhere, dequantize_avx2, dequantize_avx512);
  share_channels(*this, {operands.source, nullptr, operands.target, 0, 1.0F, 0.0F},
                 dtype_size(from), sizeof(float), operands.factors, operands.zeros,
                 [&](const Run& run) { body(*this, run); });
}

void ByteTable::run(const Operands& operands) const {
  const auto body = isa == VectorIsa::kAvx512 && permutes_bytes() ? look_up_64 : look_up;
  share_range(count, kRun, threads_for(count >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                body(operands.source + first, operands.table, operands.target + first,
                     last - first);
              });
}

void QuantizedBinary::run(const Operands& operands) const {
  const auto body = for_isa(isa, binary_anywhere, binary_avx2, binary_avx512);
  share_range(count, kRun, threads_for(count >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                body(*this, {operands.a + first, operands.b + first, operands.target + first,
                             last - first, 1.0F, 0.0F});
              });
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Conversions between floats and quantized numbers, and functions of quantized numbers that no
// float tensor in memory is needed for. All are bound by memory: elements are read once, computed
// with as floats in registers, and written once.
//
// Rounding adds and takes away 1.5 * 2^23, which gives the nearest integer, ties to even, for
// numbers below 2^22. Numbers are cut to the range of the result before, which has integers as its
// ends.
#include "kernels/quantized/quantize.hpp"

#include <algorithm>
#include <limits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/quantized/byte_checks.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kRun = 8192;  ///< elements of a thread's piece

/// A run of elements with one factor and zero.
struct Run {
  const void* source;
  const void* other;
  void* target;
  std::int64_t count;
  float factor;
  float zero;
};

// The loops below are plain, which compilers turn into vectors: conversions between vectors of
// bytes and of floats by the compiler's extension become one instruction for each element.

template <typename T, bool kDivides>
[[gnu::always_inline]] inline void quantize_run(const Quantize& call, const Run& run) {
  const float factor = run.factor;
  const float zero = run.zero;
  const float nan = kDivides ? static_cast<float>(call.least) : 0.0F;
  const float low = static_cast<float>(call.least) - zero;
  const float high = static_cast<float>(call.most) - zero;
  const auto* __restrict source = static_cast<const float*>(run.source);
  auto* __restrict target = static_cast<T*>(run.target);
  const std::int64_t count = run.count;  // bytes that are written could be those of `run`
  for (std::int64_t i = 0; i < count; ++i) {
    const float quotient = kDivides ? source[i] / factor : source[i] * factor;
    const float whole = rounded_number(quotient, low, high) + zero;
    const float number = quotient != quotient ? nan : whole;
    target[i] = static_cast<T>(static_cast<std::int32_t>(number));
  }
}

template <typename T>
[[gnu::always_inline]] inline void dequantize_run(const Run& run) {
  const float factor = run.factor;
  const float zero = run.zero;
  const auto* __restrict source = static_cast<const T*>(run.source);
  auto* __restrict target = static_cast<float*>(run.target);
  const std::int64_t count = run.count;  // bytes that are written could be those of `run`
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = (static_cast<float>(source[i]) - zero) * factor;
  }
}

template <typename T>
[[gnu::always_inline]] inline void quantize_to(const Quantize& call, const Run& run) {
  if (call.divides) return quantize_run<T, true>(call, run);
  quantize_run<T, false>(call, run);
}

[[gnu::always_inline]] inline void quantize_typed(const Quantize& call, const Run& run) {
  switch (call.to) {
    case DType::kUInt8:
      return quantize_to<std::uint8_t>(call, run);
    case DType::kInt8:
      return quantize_to<std::int8_t>(call, run);
    default:
      return quantize_to<std::int16_t>(call, run);
  }
}

void quantize_anywhere(const Quantize& call, const Run& run) { quantize_typed(call, run); }
NPU_TARGET_AVX2 void quantize_avx2(const Quantize& call, const Run& run) {
  quantize_typed(call, run);
}
NPU_TARGET_AVX512 void quantize_avx512(const Quantize& call, const Run& run) {
  quantize_typed(call, run);
}

[[gnu::always_inline]] inline void dequantize_typed(const Dequantize& call, const Run& run) {
  switch (call.from) {
    case DType::kUInt8:
      return dequantize_run<std::uint8_t>(run);
    case DType::kInt8:
      return dequantize_run<std::int8_t>(run);
    case DType::kInt16:
      return dequantize_run<std::int16_t>(run);
    default:
      return dequantize_run<std::int32_t>(run);
  }
}

void dequantize_anywhere(const Dequantize& call, const Run& run) { dequantize_typed(call, run); }
NPU_TARGET_AVX2 void dequantize_avx2(const Dequantize& call, const Run& run) {
  dequantize_typed(call, run);
}
NPU_TARGET_AVX512 void dequantize_avx512(const Dequantize& call, const Run& run) {
  dequantize_typed(call, run);
}

/// `kIsOne`: one element of `b` for all of the run.
template <typename A, typename B, typename T, bool kMultiplies, bool kIsOne>
[[gnu::always_inline]] inline void binary_run(const QuantizedBinary& call, const Run& run) {
  const float a_factor = call.a_factor;
  const float b_factor = call.b_factor;
  const auto a_zero = static_cast<float>(call.a_zero);
  const auto b_zero = static_cast<float>(call.b_zero);
  const auto zero = static_cast<float>(call.zero);
  const float low = static_cast<float>(call.least) - zero;
  const float high = static_cast<float>(call.most) - zero;
  const auto* __restrict a = static_cast<const A*>(run.source);
  const auto* __restrict b = static_cast<const B*>(run.other);
  auto* __restrict target = static_cast<T*>(run.target);
  const std::int64_t count = run.count;  // bytes that are written could be those of `run`
  const float one = (static_cast<float>(b[0]) - b_zero) * b_factor;
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = (static_cast<float>(a[i]) - a_zero) * a_factor;
    const float y = kIsOne ? one : (static_cast<float>(b[i]) - b_zero) * b_factor;
    const float number = rounded_number(kMultiplies ? x * y : x + y, low, high) + zero;
    target[i] = static_cast<T>(static_cast<std::int32_t>(number));
  }
}

template <typename A, typename B, bool kIsOne>
[[gnu::always_inline]] inline void binary_to(const QuantizedBinary& call, const Run& run) {
  if (call.to == DType::kInt8) {
    if (call.multiplies) return binary_run<A, B, std::int8_t, true, kIsOne>(call, run);
    return binary_run<A, B, std::int8_t, false, kIsOne>(call, run);
  }
  if (call.multiplies) return binary_run<A, B, std::uint8_t, true, kIsOne>(call, run);
  binary_run<A, B, std::uint8_t, false, kIsOne>(call, run);
}

template <bool kIsOne>
[[gnu::always_inline]] inline void binary_typed(const QuantizedBinary& call, const Run& run) {
  using Signed = std::int8_t;
  using Unsigned = std::uint8_t;
  const bool b_is_signed = call.b_type == DType::kInt8;
  if (call.a_type == DType::kInt8) {
    if (b_is_signed) return binary_to<Signed, Signed, kIsOne>(call, run);
    return binary_to<Signed, Unsigned, kIsOne>(call, run);
  }
  if (b_is_signed) return binary_to<Unsigned, Signed, kIsOne>(call, run);
  binary_to<Unsigned, Unsigned, kIsOne>(call, run);
}

template <bool kIsOne>
void binary_anywhere(const QuantizedBinary& call, const Run& run) {
  binary_typed<kIsOne>(call, run);
}
template <bool kIsOne>
NPU_TARGET_AVX2 void binary_avx2(const QuantizedBinary& call, const Run& run) {
  binary_typed<kIsOne>(call, run);
}
template <bool kIsOne>
NPU_TARGET_AVX512 void binary_avx512(const QuantizedBinary& call, const Run& run) {
  binary_typed<kIsOne>(call, run);
}

void look_up(const std::uint8_t* source, const std::uint8_t* table, std::uint8_t* target,
             std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = table[source[i]];
}

#if NPU_HAS_X86
bool permutes_bytes() {
  static const bool does = cpu_has(CpuFeature::kAvx512Vbmi);
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
  const std::int64_t rows = repeat * outer * inner_repeat;
  const int threads = threads_for(rows * inner >= kParallelElements);
  const auto piece = [&](std::int64_t first, std::int64_t other, std::int64_t count) {
    return Run{operands.a + first, operands.b + other, operands.target + first, count, 1.0F, 0.0F};
  };
  if (rows == 1) {
    const auto body =
        for_isa(isa, binary_anywhere<false>, binary_avx2<false>, binary_avx512<false>);
    return share_range(inner, kRun, threads, [&](std::int64_t first, std::int64_t last) {
      body(*this, piece(first, first, last - first));
    });
  }
  if (inner == 1) {
    // Each element of b stands beside inner_repeat of a.
    const auto body = for_isa(isa, binary_anywhere<true>, binary_avx2<true>, binary_avx512<true>);
    const std::int64_t grain = std::max<std::int64_t>(1, kRun / inner_repeat);
    return share_range(repeat * outer, grain, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        body(*this, piece(row * inner_repeat, row % outer, inner_repeat));
      }
    });
  }
  const auto body = for_isa(isa, binary_anywhere<false>, binary_avx2<false>, binary_avx512<false>);
  const std::int64_t grain = std::max<std::int64_t>(1, kRun / inner);
  share_range(rows, grain, threads, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      body(*this, piece(row * inner, row / inner_repeat % outer * inner, inner));
    }
  });
}

namespace {

/// [outer, channels, inner]
template <typename Kernel>
Count elements_of(const Kernel& kernel) {
  return at_least_one(kernel.outer, "outer") * at_least_one(kernel.channels, "channels") *
         at_least_one(kernel.inner, "inner");
}

}  // namespace

Footprint footprint(const Quantize& kernel) {
  require(is_byte(kernel.to) || kernel.to == DType::kInt16, "'to' is not uint8, int8 or int16");
  require_range(kernel.least, kernel.most, kernel.to);
  return FootprintBuilder()
      .read(elements_of(kernel))
      .read(kernel.channels)
      .read(kernel.channels)
      .write(elements_of(kernel), size_of(kernel.to))
      .done();
}

Footprint footprint(const Dequantize& kernel) {
  require(is_byte(kernel.from) || kernel.from == DType::kInt16 || kernel.from == DType::kInt32,
          "'from' is not uint8, int8, int16 or int32");
  return FootprintBuilder()
      .read(elements_of(kernel), size_of(kernel.from))
      .read(kernel.channels)
      .read(kernel.channels)
      .write(elements_of(kernel))
      .done();
}

Footprint footprint(const ByteTable& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count, 1).read(256, 1).write(count, 1).done();
}

Footprint footprint(const QuantizedBinary& kernel) {
  require(is_byte(kernel.a_type) && is_byte(kernel.b_type) && is_byte(kernel.to),
          "a type is not uint8 or int8");
  require_range(kernel.least, kernel.most, kernel.to);
  for (const std::int64_t zero : {kernel.a_zero, kernel.b_zero, kernel.zero}) {
    require_byte(zero, "a zero point is no byte");
  }
  require(std::isfinite(kernel.a_factor) && std::isfinite(kernel.b_factor),
          "a factor is not finite");
  const Count part = at_least_one(kernel.outer, "outer") * at_least_one(kernel.inner, "inner");
  const Count count = part * at_least_one(kernel.repeat, "repeat") *
                      at_least_one(kernel.inner_repeat, "inner_repeat");
  return FootprintBuilder().read(count, 1).read(part, 1).write(count, 1).done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// What stands between the two products of an attention on integers, and behind them. Probabilities
// of 8 bits would be as coarse as the result: with 16, in two bytes that are rows of one product,
// the result is that of probabilities in float but for a step in a few hundred numbers.
// O(elements).
#include "kernels/quantized/quantized_attention.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/quantized/byte_checks.hpp"

namespace npu::onednn {

namespace {

constexpr float kMost = 65535.0F;

/// Some rows of a kernel.
template <typename Call>
struct SharedRows {
  const Call* call;
  typename Call::Operands operands;
  std::int64_t first;
  std::int64_t last;
};

/// The largest of some numbers, and 0.
template <typename V>
[[gnu::always_inline]] inline float largest_of(const float* source, std::int64_t count) {
  V largest{};
  std::int64_t i = 0;
  for (; i + kLanesOf<V> <= count; i += kLanesOf<V>) {
    const V value = load_vector<V>(source + i);
    largest = value > largest ? value : largest;
  }
  float most = largest_element(largest);
  for (; i < count; ++i) most = source[i] > most ? source[i] : most;
  return most;
}

template <typename V>
[[gnu::always_inline]] inline void split(const SharedRows<SplitRows>& rows) {
  const std::int64_t count = rows.call->count;
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    const float* __restrict source = rows.operands.source + row * count;
    std::uint8_t* __restrict high = rows.operands.target + 2 * row * count;
    std::uint8_t* __restrict low = high + count;
    const float most = largest_of<V>(source, count);
    const float factor = most > 0.0F ? kMost / most : 0.0F;
    for (std::int64_t i = 0; i < count; ++i) {
      const float product = source[i] * factor;
      const float number = product == product ? rounded_number(product, 0.0F, kMost) : 0.0F;
      const auto whole = static_cast<std::int32_t>(number);
      high[i] = static_cast<std::uint8_t>(whole >> 8);
      low[i] = static_cast<std::uint8_t>(whole & 255);
    }
  }
}

void split_anywhere(const SharedRows<SplitRows>& rows) { split<NarrowFloats>(rows); }
NPU_TARGET_AVX2 void split_avx2(const SharedRows<SplitRows>& rows) { split<NarrowFloats>(rows); }
NPU_TARGET_AVX512 void split_avx512(const SharedRows<SplitRows>& rows) { split<Float16>(rows); }

/// 1 / the sum of a row's numbers; 0 for one of zeros.
[[gnu::always_inline]] inline float inverse_sum(const std::uint8_t* parts, std::int64_t count) {
  std::int32_t high = 0;
  std::int32_t low = 0;
  for (std::int64_t i = 0; i < count; ++i) high += parts[i];
  for (std::int64_t i = 0; i < count; ++i) low += parts[count + i];
  const float sum = 256.0F * static_cast<float>(high) + static_cast<float>(low);
  return sum > 0.0F ? 1.0F / sum : 0.0F;
}

template <typename T>
[[gnu::always_inline]] inline void store_row(const AttentionSum& call, const float* products,
                                             float inverse, T* __restrict target) {
  const auto from = inverse > 0.0F ? static_cast<float>(call.source_zero) : 0.0F;
  const float factor = call.factor;
  const auto zero = static_cast<float>(call.zero);
  const auto least = static_cast<float>(call.least - call.zero);
  const auto most = static_cast<float>(call.most - call.zero);
  const std::int64_t width = call.width;
  for (std::int64_t i = 0; i < width; ++i) {
    const float mean = (256.0F * products[i] + products[width + i]) * inverse;
    const float number = (mean - from) * factor;
    if constexpr (std::is_same_v<T, float>) {
      target[i] = number;
    } else {
      const float whole = number == number ? rounded_number(number, least, most) : 0.0F;
      target[i] = static_cast<T>(static_cast<std::int32_t>(whole + zero));
    }
  }
}

[[gnu::always_inline]] inline void join(const SharedRows<AttentionSum>& rows) {
  const AttentionSum& call = *rows.call;
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    const float inverse = inverse_sum(rows.operands.parts + 2 * row * call.count, call.count);
    const float* products = rows.operands.products + 2 * row * call.width;
    const std::int64_t at = row * call.width;
    if (call.to == DType::kFloat32) {
      store_row(call, products, inverse, elements<float>(rows.operands.target) + at);
    } else if (call.to == DType::kInt8) {
      store_row(call, products, inverse, elements<std::int8_t>(rows.operands.target) + at);
    } else {
      store_row(call, products, inverse, elements<std::uint8_t>(rows.operands.target) + at);
    }
  }
}

void join_anywhere(const SharedRows<AttentionSum>& rows) { join(rows); }
NPU_TARGET_AVX2 void join_avx2(const SharedRows<AttentionSum>& rows) { join(rows); }
NPU_TARGET_AVX512 void join_avx512(const SharedRows<AttentionSum>& rows) { join(rows); }

/// Calls body for pieces of some thousand elements.
template <typename Call, typename Body>
void share_rows(const Call& call, const typename Call::Operands& operands, std::int64_t row,
                const Body& body) {
  const std::int64_t length = std::max<std::int64_t>(1, 4096 / row);
  share_range(call.rows, length, threads_for(call.rows * row >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                body({&call, operands, first, last});
              });
}

}  // namespace

void SplitRows::run(const Operands& operands) const {
  share_rows(*this, operands, count, for_isa(isa, split_anywhere, split_avx2, split_avx512));
}

void AttentionSum::run(const Operands& operands) const {
  share_rows(*this, operands, count + width, for_isa(isa, join_anywhere, join_avx2, join_avx512));
}

Footprint footprint(const SplitRows& kernel) {
  const Count count = at_least_one(kernel.rows, "rows") * at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count).write(count * 2, 1).done();
}

Footprint footprint(const AttentionSum& kernel) {
  constexpr std::int64_t kMostCount = 1 << 22;  // a sum of 32 bits does not overflow
  require(is_byte(kernel.to) || kernel.to == DType::kFloat32, "'to' is not uint8, int8 or float32");
  if (is_byte(kernel.to)) require_range(kernel.least, kernel.most, kernel.to);
  require_byte(kernel.source_zero, "'source_zero' is no byte");
  require_byte(kernel.zero, "'zero' is no byte");
  require(std::isfinite(kernel.factor), "'factor' is not finite");
  require(kernel.count <= kMostCount, "'count' is too large");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count width = at_least_one(kernel.width, "width");
  return FootprintBuilder()
      .read(rows * 2 * at_least_one(kernel.count, "count"), 1)
      .read(rows * 2 * width)
      .write(rows * width, size_of(kernel.to))
      .done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm: largest element, sum of exponentials, and a pass that divides.
// oneDNN's softmax drops NaN where it looks for the largest element, and keeps it out of the other
// elements of its row.
//
// Rows that lie together are walked along by vectors; where the dimension is not the last one, a
// vector holds so many rows side by side. Each row is computed by one thread in one order.
// O(elements).
#include "kernels/norm/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/elements.hpp"
#include "kernels/base/exponentials.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Some rows of a task: whole ones that lie together, or columns [first, last) of an outer index.
struct Part {
  const Softmax* call;
  const float* source;
  float* target;
  std::int64_t first;
  std::int64_t last;
};

/// Up to a vector of elements, -Inf behind them, which counts for nothing.
template <typename V>
[[gnu::always_inline]] inline V load_some(const float* from, std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  if (count >= kLanes) return load_vector<V>(from);
  V result = V{} + kMinusInfinity;
  for (std::int64_t i = 0; i < count; ++i) result[i] = from[i];
  return result;
}

template <typename V>
[[gnu::always_inline]] inline void store_some(float* to, V value, std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  if (count >= kLanes) return store_vector(to, value);
  for (std::int64_t i = 0; i < count; ++i) to[i] = value[i];
}

/// A row that lies together. NaN is passed over by the largest element; it comes back by the sum.
template <typename V>
[[gnu::always_inline]] inline void run_row(const float* source, float* target, std::int64_t count,
                                           bool logarithm) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t whole = count / kLanes * kLanes;
  const std::int64_t rest = count - whole;
  V tail = V{} + kMinusInfinity;  // stays in a register
  if (rest != 0) tail = load_some<V>(source + whole, rest);
  V largest = tail;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const V value = load_vector<V>(source + i);
    largest = value > largest ? value : largest;
  }
  const float maximum = largest_element(largest);
  const V last = rest != 0 ? exp_vector_negative(tail - maximum) : V{};
  V sums = last;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const V value = exp_vector_negative(load_vector<V>(source + i) - maximum);
    sums += value;
    if (!logarithm) store_vector(target + i, value);
  }
  const float sum = sum_of_elements(sums);
  if (logarithm) {
    const float shift = std::log(sum);
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      store_vector(target + i, load_vector<V>(source + i) - maximum - shift);
    }
    if (rest != 0) store_some(target + whole, tail - maximum - shift, rest);
    return;
  }
  const float factor = 1.0F / sum;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    store_vector(target + i, load_vector<V>(target + i) * factor);
  }
  if (rest != 0) store_some(target + whole, last * factor, rest);
}

/// A vector of rows side by side, `width` of them, whose elements are `step` apart.
template <typename V>
[[gnu::always_inline]] inline void run_columns(const float* source, float* target,
                                               std::int64_t count, std::int64_t step,
                                               std::int64_t width, bool logarithm) {
  V largest = V{} + kMinusInfinity;
  for (std::int64_t i = 0; i < count; ++i) {
    const V value = load_some<V>(source + i * step, width);
    largest = value > largest ? value : largest;
  }
  V sums{};
  for (std::int64_t i = 0; i < count; ++i) {
    const V value = exp_vector_negative(load_some<V>(source + i * step, width) - largest);
    sums += value;
    if (!logarithm) store_some(target + i * step, value, width);
  }
  if (logarithm) {
    constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
    float logarithms[kLanes];
    store_vector(logarithms, sums);
    for (float& each : logarithms) each = std::log(each);
    const V shift = load_vector<V>(logarithms);
    for (std::int64_t i = 0; i < count; ++i) {
      const V value = load_some<V>(source + i * step, width);
      store_some(target + i * step, value - largest - shift, width);
    }
    return;
  }
  const V factor = 1.0F / sums;
  for (std::int64_t i = 0; i < count; ++i) {
    store_some(target + i * step, load_some<V>(target + i * step, width) * factor, width);
  }
}

template <typename V>
[[gnu::always_inline]] inline void run_part(const Part& part) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const Softmax& call = *part.call;
  if (call.inner == 1) {
    for (std::int64_t row = part.first; row < part.last; ++row) {
      run_row<V>(part.source + row * call.count, part.target + row * call.count, call.count,
                 call.logarithm);
    }
    return;
  }
  for (std::int64_t column = part.first; column < part.last; column += kLanes) {
    run_columns<V>(part.source + column, part.target + column, call.count, call.inner,
                   std::min(kLanes, part.last - column), call.logarithm);
  }
}

void run_anywhere(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX2 void run_avx2(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX512 void run_avx512(const Part& part) { run_part<Float16>(part); }

}  // namespace

void Softmax::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const int threads = threads_for(outer * count * inner >= kParallelElements);
  if (inner == 1) {
    const std::int64_t rows = std::max<std::int64_t>(1, 4096 / count);
    share_range(outer, rows, threads, [&](std::int64_t first, std::int64_t last) {
      body({this, operands.source, operands.target, first, last});
    });
    return;
  }
  constexpr std::int64_t kColumns = 64;
  const std::int64_t groups = ceil_div(inner, kColumns);
  share_pieces(outer * groups, threads, [&](std::int64_t piece, int) {
    const std::int64_t group = piece % groups;
    const std::int64_t begin = piece / groups * count * inner;
    body({this, operands.source + begin, operands.target + begin, group * kColumns,
          std::min(inner, (group + 1) * kColumns)});
  });
}

Footprint footprint(const Softmax& kernel) {
  const Count elements = at_least_one(kernel.outer, "outer") * at_least_one(kernel.count, "count") *
                         at_least_one(kernel.inner, "inner");
  return FootprintBuilder().read(elements, kFloat, true).write(elements).done();
}

}  // namespace npu::onednn

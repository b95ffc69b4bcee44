// SPDX-License-Identifier: Apache-2.0
// Every weight is used once for each row, so reading them in one run is all that matters: a thread
// has a run of columns, whose weights are consecutive. One row stays in the L1 and is
// multiplied column by column; several rows meet two or four columns at a time, since rows that
// come from the L2 for every column would take longer than the weights from memory. 16 columns at a
// time get bias and epilogue. O(rows * inner * columns / 16) multiply-adds of vectors, inner *
// columns floats, or numbers of 16 bits, of memory read.
#include "kernels/product/gemv.hpp"

#include <algorithm>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"
#include "kernels/product/product_spans.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kGroup = 16;           // columns that are finished together
constexpr std::int64_t kMinFloats = 1 << 14;  // of weights, worth a thread of their own

struct Task {
  const Gemv* call;
  const float* source;
  const float* weight;
  const std::uint16_t* halves;
  const float* bias;
  const float* const* operands;
  float* target;
  std::int64_t first;  ///< columns
  std::int64_t last;
};

/// Weights of one dtype: where they lie, and the floats that they are.
template <DType kType>
struct Weights {
  using Element = std::uint16_t;
  static const Element* of(const Task& task) { return task.halves; }
  static float one(Element weight) {
    return kType == DType::kFloat16 ? float16_to_float(weight) : load(BFloat16{weight});
  }
  template <typename V, bool kHasF16c>
  [[gnu::always_inline]] static V vector(const Element* from) {
    if constexpr (kType == DType::kFloat16) {
      return load_halves<V, kHasF16c>(from);
    } else {
      return load_as_floats<V>(from);
    }
  }
};
template <>
struct Weights<DType::kFloat32> {
  using Element = float;
  static const Element* of(const Task& task) { return task.weight; }
  static float one(Element weight) { return weight; }
  template <typename V, bool kHasF16c>
  [[gnu::always_inline]] static V vector(const Element* from) {
    return load_vector<V>(from);
  }
};

/// sums[row][at], ... of kColumns columns from `column` + `at` on. A vector of a row is loaded once
/// for all of them: several rows need not fit in the L1.
template <typename V, DType kType, bool kHasF16c, int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_columns(const Task& task, std::int64_t column,
                                                    std::int64_t at, float (*sums)[kGroup]) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  // Sums enough to hide the latency of an addition, few enough for the registers.
  constexpr int kUnroll = std::max(1, (kRows == 1 ? 4 : 8) / (kRows * kColumns));
  using Element = typename Weights<kType>::Element;
  constexpr std::int64_t kAhead = 4096 / sizeof(Element);  // a page
  const Gemv& call = *task.call;
  const std::int64_t whole = call.inner / (kUnroll * kLanes) * (kUnroll * kLanes);
  const Element* weight = Weights<kType>::of(task) + (column + at) * call.inner;
  V parts[kColumns][kRows][kUnroll]{};
  for (std::int64_t k = 0; k < whole; k += kUnroll * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < kUnroll; ++j) {
      const std::int64_t from = k + j * kLanes;
      V factors[kColumns];
#pragma GCC unroll 4
      for (int i = 0; i < kColumns; ++i) {
        __builtin_prefetch(weight + i * call.inner + from + kAhead);
        factors[i] = Weights<kType>::template vector<V, kHasF16c>(weight + i * call.inner + from);
      }
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
        const V value = load_vector<V>(task.source + row * call.source_row + from);
#pragma GCC unroll 4
        for (int i = 0; i < kColumns; ++i) parts[i][row][j] += factors[i] * value;
      }
    }
  }
  for (int i = 0; i < kColumns; ++i) {
    for (int row = 0; row < kRows; ++row) {
      V all = parts[i][row][0];
      for (int j = 1; j < kUnroll; ++j) all += parts[i][row][j];
      float sum = sum_of_elements(all);
      for (std::int64_t k = whole; k < call.inner; ++k) {
        sum += Weights<kType>::one(weight[i * call.inner + k]) *
               task.source[row * call.source_row + k];
      }
      sums[row][at + i] = sum;
    }
  }
}

/// sums[row][column] for up to kGroup columns from `column` on.
template <typename V, DType kType, bool kHasF16c, int kRows>
[[gnu::always_inline]] inline void multiply(const Task& task, std::int64_t column,
                                            std::int64_t count, float (*sums)[kGroup]) {
  // One row is as fast by one run of weights after the other, which memory likes best. Registers:
  // 16 of AVX2 hold the sums of 4 rows and 2 columns, and what is multiplied.
  constexpr int kColumns = kRows == 1 ? 1 : sizeof(V) == 64 ? 4 : 2;
  std::int64_t i = 0;
  for (; i + kColumns <= count; i += kColumns) {
    multiply_columns<V, kType, kHasF16c, kRows, kColumns>(task, column, i, sums);
  }
  for (; i < count; ++i) multiply_columns<V, kType, kHasF16c, kRows, 1>(task, column, i, sums);
}

/// Bias and epilogue for `count` sums; what lies behind them in the tensors is left alone.
template <typename V>
[[gnu::always_inline]] inline void finish(const Task& task, std::int64_t row, std::int64_t column,
                                          std::int64_t count, const float* sums) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const Gemv& call = *task.call;
  float* target = task.target + row * call.columns + column;
  float own[kGroup]{};
  float values[kMaxEpilogueOperands][kGroup]{};
  const float* operands[kMaxEpilogueOperands]{};
  std::size_t used = 0;
  for (const EpilogueStep& step : call.epilogue) {
    if (step.kind == EpilogueStep::Kind::kAccumulate) std::copy_n(target, count, own);
    if (!step.has_operand() || step.kind == EpilogueStep::Kind::kAccumulate) continue;
    std::copy_n(task.operands[used] + row * call.columns + column, count, values[used]);
    operands[used] = values[used];
    ++used;
  }
  float with_bias[kGroup]{};
  for (std::int64_t i = 0; i < count; ++i) {
    with_bias[i] = sums[i] + (call.has_bias ? task.bias[column + i] : 0.0F);
  }
  for (std::int64_t at = 0; at < kGroup; at += kLanes) {
    const V value = apply_steps<sizeof(V) == 64>(call.epilogue, load_vector<V>(with_bias + at), own,
                                                 operands, at);
    store_vector(with_bias + at, value);
  }
  std::copy_n(with_bias, count, target);
}

template <typename V, DType kType, bool kHasF16c, int kRows>
[[gnu::always_inline]] inline void run_rows(const Task& task) {
  for (std::int64_t column = task.first; column < task.last; column += kGroup) {
    const std::int64_t count = std::min(kGroup, task.last - column);
    float sums[kRows][kGroup]{};
    multiply<V, kType, kHasF16c, kRows>(task, column, count, sums);
    for (std::int64_t row = 0; row < kRows; ++row) {
      finish<V>(task, row, column, count, sums[row]);
    }
  }
}

template <typename V, DType kType, bool kHasF16c>
[[gnu::always_inline]] inline void run_weights(const Task& task) {
  switch (task.call->rows) {
    case 1:
      return run_rows<V, kType, kHasF16c, 1>(task);
    case 2:
      return run_rows<V, kType, kHasF16c, 2>(task);
    case 3:
      return run_rows<V, kType, kHasF16c, 3>(task);
    default:
      return run_rows<V, kType, kHasF16c, 4>(task);
  }
}

template <typename V, bool kHasF16c>
[[gnu::always_inline]] inline void run_task(const Task& task) {
  switch (task.call->weight_type) {
    case DType::kFloat16:
      return run_weights<V, DType::kFloat16, kHasF16c>(task);
    case DType::kBFloat16:
      return run_weights<V, DType::kBFloat16, kHasF16c>(task);
    default:
      return run_weights<V, DType::kFloat32, kHasF16c>(task);
  }
}

void run_anywhere(const Task& task) { run_task<NarrowFloats, false>(task); }
NPU_TARGET_AVX2 void run_avx2(const Task& task) { run_task<NarrowFloats, true>(task); }
NPU_TARGET_AVX512 void run_avx512(const Task& task) { run_task<Float16, true>(task); }

}  // namespace

Gemv::Operands Gemv::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.source = in.next<const float>();
  const bool is_float = weight_type == DType::kFloat32;
  operands.weight = in.next_if<const float>(is_float);
  operands.halves = in.next_if<const std::uint16_t>(!is_float);
  operands.bias = in.next_if<const float>(has_bias);
  operands.epilogue = in.epilogue(epilogue);
  operands.target = in.next<float>();
  return operands;
}

void Gemv::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const std::int64_t groups = ceil_div(columns, kGroup);
  // Few runs of memory for each thread: its prefetcher starts anew with each.
  constexpr std::int64_t kParts = 4;
  const std::int64_t parts = std::clamp<std::int64_t>(
      inner * columns / kMinFloats, 1, std::min<std::int64_t>(kParts * threads, groups));
  share_pieces(parts, threads, [&](std::int64_t part, int) {
    body({this, operands.source, operands.weight, operands.halves, operands.bias,
          operands.epilogue.data(), operands.target, groups * part / parts * kGroup,
          std::min(columns, groups * (part + 1) / parts * kGroup)});
  });
}

Footprint footprint(const Gemv& kernel) {
  require(kernel.rows >= 1 && kernel.rows <= Gemv::kMaxRows, "'rows' is not in 1..4");
  require(kernel.threads >= 1, "'threads' is below 1");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count target = Count{kernel.rows} * columns;
  return FootprintBuilder()
      .read(last_of(kernel.rows, kernel.source_row) + inner)
      .read(inner * columns, weight_size(kernel.weight_type))
      .read_if(kernel.has_bias, columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target)
      .done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Sums, means, products, norms and extrema along one dimension. Each number is computed by one
// thread in one order, whatever their number; the innermost loops are compiled once for each
// instruction set. O(elements).
#include "kernels/reduction/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

template <ReductionOp kOp>
inline constexpr bool kIsExtremum = kOp == ReductionOp::kMaximum || kOp == ReductionOp::kMinimum;

/// Extrema are elements.
template <ReductionOp kOp>
using SumOf = std::conditional_t<kIsExtremum<kOp>, float, double>;

/// One more value. A NaN stays, since it is taken and takes none; without branches, so that loops
/// become vectors.
template <ReductionOp kOp>
[[gnu::always_inline]] inline SumOf<kOp> reduce(SumOf<kOp> sum, SumOf<kOp> value) {
  if constexpr (kIsExtremum<kOp>) {
    const bool stays = kOp == ReductionOp::kMaximum ? value <= sum : value >= sum;
    return (static_cast<int>(stays) | static_cast<int>(sum != sum)) != 0 ? sum : value;
  }
  if constexpr (kOp == ReductionOp::kProduct) return sum * value;
  if constexpr (kOp == ReductionOp::kNorm1) return sum + std::abs(value);
  if constexpr (kOp == ReductionOp::kNorm2) return sum + value * value;
  return sum + value;
}

template <ReductionOp kOp>
inline constexpr SumOf<kOp> kStartOf = kOp == ReductionOp::kMaximum
                                           ? -std::numeric_limits<SumOf<kOp>>::infinity()
                                       : kOp == ReductionOp::kMinimum
                                           ? std::numeric_limits<SumOf<kOp>>::infinity()
                                       : kOp == ReductionOp::kProduct ? 1
                                                                      : 0;

template <ReductionOp kOp>
inline float finished(SumOf<kOp> sum, std::int64_t count) {
  if constexpr (kOp == ReductionOp::kMean)
    return static_cast<float>(sum / static_cast<double>(count));
  return static_cast<float>(kOp == ReductionOp::kNorm2 ? std::sqrt(sum) : sum);
}

/// One run of elements: as many sums as a few vectors hold, so that additions need not wait for
/// each other; then these in halves.
template <ReductionOp kOp, typename T>
[[gnu::always_inline]] inline SumOf<kOp> reduce_run(const T* source, std::int64_t count) {
  using Sum = SumOf<kOp>;
  constexpr std::int64_t kLanes = 32;
  Sum sums[kLanes];
  for (Sum& sum : sums) sum = kStartOf<kOp>;
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j)
      sums[j] = reduce<kOp>(sums[j], static_cast<Sum>(load(source[i + j])));
  }
  for (std::int64_t i = whole; i < count; ++i) {
    sums[i - whole] = reduce<kOp>(sums[i - whole], static_cast<Sum>(load(source[i])));
  }
#pragma GCC unroll 8
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) {
      if constexpr (kIsExtremum<kOp>) {
        sums[j] = reduce<kOp>(sums[j], sums[j + half]);
      } else {
        sums[j] =
            kOp == ReductionOp::kProduct ? sums[j] * sums[j + half] : sums[j] + sums[j + half];
      }
    }
  }
  return sums[0];
}

/// Rows [begin, end) of `count` elements.
template <typename T>
struct Rows {
  const MiddleReduction* call;
  const T* source;
  T* target;
  std::int64_t begin;
  std::int64_t end;
};

template <ReductionOp kOp, typename T>
[[gnu::always_inline]] inline void reduce_rows(const Rows<T>& rows) {
  const std::int64_t count = rows.call->count;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    store(rows.target[row],
          finished<kOp>(reduce_run<kOp>(rows.source + row * count, count), count));
  }
}
template <ReductionOp kOp, typename T>
void rows_anywhere(const Rows<T>& rows) {
  reduce_rows<kOp>(rows);
}
template <ReductionOp kOp, typename T>
NPU_TARGET_AVX2 void rows_avx2(const Rows<T>& rows) {
  reduce_rows<kOp>(rows);
}
template <ReductionOp kOp, typename T>
NPU_TARGET_AVX512 void rows_avx512(const Rows<T>& rows) {
  reduce_rows<kOp>(rows);
}

template <ReductionOp kOp, typename T>
void reduce_inner(const MiddleReduction& call, const T* source, T* target) {
  const auto body =
      for_isa(call.isa, rows_anywhere<kOp, T>, rows_avx2<kOp, T>, rows_avx512<kOp, T>);
  const std::int64_t step = std::max<std::int64_t>(1, 4096 / call.count);
  const int threads = threads_for(call.outer * call.count >= kParallelElements);
  share_range(call.outer, step, threads, [&](std::int64_t first, std::int64_t last) {
    body({&call, source, target, first, last});
  });
}

/// Some columns side by side, of one outer index.
template <typename T>
struct Columns {
  const MiddleReduction* call;
  const T* source;  ///< of the first column
  T* target;
  std::int64_t width;
};

/// Columns in groups, so that sums of one group stay in registers.
constexpr std::int64_t kGroup = 64;

template <ReductionOp kOp, typename T>
[[gnu::always_inline]] inline void reduce_columns(const Columns<T>& columns) {
  using Sum = SumOf<kOp>;
  const std::int64_t count = columns.call->count;
  const std::int64_t step = columns.call->inner;
  const std::int64_t width = columns.width;
  Sum sums[kGroup];
  for (Sum& sum : sums) sum = kStartOf<kOp>;
  const T* row = columns.source;
  if (width == kGroup) {
    for (std::int64_t i = 0; i < count; ++i, row += step) {
      for (std::int64_t j = 0; j < kGroup; ++j)
        sums[j] = reduce<kOp>(sums[j], static_cast<Sum>(load(row[j])));
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i, row += step) {
      for (std::int64_t j = 0; j < width; ++j)
        sums[j] = reduce<kOp>(sums[j], static_cast<Sum>(load(row[j])));
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    store(columns.target[j], finished<kOp>(sums[j], count));
  }
}
template <ReductionOp kOp, typename T>
void columns_anywhere(const Columns<T>& columns) {
  reduce_columns<kOp>(columns);
}
template <ReductionOp kOp, typename T>
NPU_TARGET_AVX2 void columns_avx2(const Columns<T>& columns) {
  reduce_columns<kOp>(columns);
}
template <ReductionOp kOp, typename T>
NPU_TARGET_AVX512 void columns_avx512(const Columns<T>& columns) {
  reduce_columns<kOp>(columns);
}

template <ReductionOp kOp, typename T>
void reduce_middle(const MiddleReduction& call, const T* source, T* target) {
  if (call.inner == 1) return reduce_inner<kOp>(call, source, target);
  const auto body =
      for_isa(call.isa, columns_anywhere<kOp, T>, columns_avx2<kOp, T>, columns_avx512<kOp, T>);
  const std::int64_t groups = (call.inner + kGroup - 1) / kGroup;
  const int threads = threads_for(call.outer * call.count * call.inner >= kParallelElements);
  share_pieces(call.outer * groups, threads, [&](std::int64_t piece, int) {
    const std::int64_t outer = piece / groups;
    const std::int64_t begin = piece % groups * kGroup;
    body({&call, source + outer * call.count * call.inner + begin,
          target + outer * call.inner + begin, std::min(kGroup, call.inner - begin)});
  });
}

template <typename T>
void reduce_typed(const MiddleReduction& call, const T* source, T* target) {
  switch (call.op) {
    case ReductionOp::kMean:
      return reduce_middle<ReductionOp::kMean>(call, source, target);
    case ReductionOp::kSum:
      return reduce_middle<ReductionOp::kSum>(call, source, target);
    case ReductionOp::kMaximum:
      return reduce_middle<ReductionOp::kMaximum>(call, source, target);
    case ReductionOp::kMinimum:
      return reduce_middle<ReductionOp::kMinimum>(call, source, target);
    case ReductionOp::kProduct:
      return reduce_middle<ReductionOp::kProduct>(call, source, target);
    case ReductionOp::kNorm1:
      return reduce_middle<ReductionOp::kNorm1>(call, source, target);
    case ReductionOp::kNorm2:
      return reduce_middle<ReductionOp::kNorm2>(call, source, target);
  }
}

}  // namespace

void MiddleReduction::run(const Operands& operands) const {
  const auto [source, target] = operands;
  if (type == DType::kFloat32) {
    reduce_typed(*this, elements<float>(source), elements<float>(target));
  } else {
    reduce_typed(*this, elements<BFloat16>(source), elements<BFloat16>(target));
  }
}

Footprint footprint(const MiddleReduction& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count results = at_least_one(kernel.outer, "outer") * at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(results * at_least_one(kernel.count, "count"), size_of(kernel.type))
      .write(results, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn

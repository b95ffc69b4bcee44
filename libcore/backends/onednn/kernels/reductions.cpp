// SPDX-License-Identifier: Apache-2.0
// Sums, means, products, norms and extrema along one dimension. Each number is computed by one
// thread in one order, whatever their number. O(elements).
#include "kernels/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

template <ReductionOp kOp>
inline double reduce(double sum, double value) {
  if constexpr (kOp == ReductionOp::kMaximum) return value > sum || value != value ? value : sum;
  if constexpr (kOp == ReductionOp::kMinimum) return value < sum || value != value ? value : sum;
  if constexpr (kOp == ReductionOp::kProduct) return sum * value;
  if constexpr (kOp == ReductionOp::kNorm1) return sum + std::abs(value);
  if constexpr (kOp == ReductionOp::kNorm2) return sum + value * value;
  return sum + value;
}

template <ReductionOp kOp>
inline constexpr bool kIsExtremum = kOp == ReductionOp::kMaximum || kOp == ReductionOp::kMinimum;

template <ReductionOp kOp>
inline constexpr double kStartOf = kOp == ReductionOp::kMaximum
                                       ? -std::numeric_limits<double>::infinity()
                                   : kOp == ReductionOp::kMinimum
                                       ? std::numeric_limits<double>::infinity()
                                   : kOp == ReductionOp::kProduct ? 1.0
                                                                  : 0.0;

template <ReductionOp kOp>
inline float finished(double sum, std::int64_t count) {
  if constexpr (kOp == ReductionOp::kMean)
    return static_cast<float>(sum / static_cast<double>(count));
  return static_cast<float>(kOp == ReductionOp::kNorm2 ? std::sqrt(sum) : sum);
}

/// One run of elements: as many sums as a few vectors hold, so that additions need not wait for
/// each other; then these in halves.
template <ReductionOp kOp, typename T>
[[gnu::always_inline]] inline double reduce_run(const T* source, std::int64_t count) {
  constexpr std::int64_t kLanes = 32;
  double sums[kLanes];
  for (double& sum : sums) sum = kStartOf<kOp>;
  const std::int64_t whole = count / kLanes * kLanes;
  const auto add = [](double& sum, double value) {
    if (kIsExtremum<kOp>) {  // a NaN stays: every comparison with it is false
      sum = sum == sum ? reduce<kOp>(sum, value) : sum;
    } else if (kOp == ReductionOp::kProduct) {
      sum *= value;
    } else {
      sum += kOp == ReductionOp::kNorm1   ? std::abs(value)
             : kOp == ReductionOp::kNorm2 ? value * value
                                          : value;
    }
  };
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j)
      add(sums[j], static_cast<double>(load(source[i + j])));
  }
  for (std::int64_t i = whole; i < count; ++i) {
    add(sums[i - whole], static_cast<double>(load(source[i])));
  }
#pragma GCC unroll 8
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) {
      if constexpr (kIsExtremum<kOp>) {
        sums[j] = sums[j] == sums[j] ? reduce<kOp>(sums[j], sums[j + half]) : sums[j];
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

template <ReductionOp kOp, typename T>
void reduce_middle(const MiddleReduction& call, const T* source, T* target) {
  if (call.inner == 1) return reduce_inner<kOp>(call, source, target);
  // Columns in groups, so that sums of one group stay in registers or the L1.
  constexpr std::int64_t kGroup = 64;
  const std::int64_t groups = (call.inner + kGroup - 1) / kGroup;
  const int threads = threads_for(call.outer * call.count * call.inner >= kParallelElements);
  share_pieces(call.outer * groups, threads, [&](std::int64_t piece, int) {
    const std::int64_t outer = piece / groups;
    const std::int64_t begin = piece % groups * kGroup;
    const std::int64_t width = std::min(kGroup, call.inner - begin);
    double sums[kGroup];
    std::fill_n(sums, kGroup, kStartOf<kOp>);
    for (std::int64_t i = 0; i < call.count; ++i) {
      const T* row = source + (outer * call.count + i) * call.inner + begin;
      for (std::int64_t j = 0; j < width; ++j) {
        const auto value = static_cast<double>(load(row[j]));
        // A NaN stays: every comparison with it is false.
        if (!kIsExtremum<kOp> || sums[j] == sums[j]) {
          sums[j] = reduce<kOp>(sums[j], value);
        }
      }
    }
    T* to = target + outer * call.inner + begin;
    for (std::int64_t j = 0; j < width; ++j) {
      store(to[j], finished<kOp>(sums[j], call.count));
    }
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

}  // namespace npu::onednn

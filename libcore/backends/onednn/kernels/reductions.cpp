// SPDX-License-Identifier: Apache-2.0
// Sums, means, products, norms and extrema along one dimension. Each number is computed by one
// thread in one order, whatever their number. O(elements).
#include "kernels/reductions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elements.hpp"

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

template <ReductionOp kOp, typename T>
void reduce_middle(const MiddleReduction& call, const T* source, T* target) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kStart = kOp == ReductionOp::kMaximum   ? -kInfinity
                            : kOp == ReductionOp::kMinimum ? kInfinity
                            : kOp == ReductionOp::kProduct ? 1.0
                                                           : 0.0;
  // Columns in groups, so that sums of one group stay in registers or the L1.
  constexpr std::int64_t kGroup = 64;
  const std::int64_t groups = (call.inner + kGroup - 1) / kGroup;
#pragma omp parallel for collapse(2) if (call.outer * call.count * call.inner >= kParallelElements)
  for (std::int64_t outer = 0; outer < call.outer; ++outer) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t begin = group * kGroup;
      const std::int64_t width = std::min(kGroup, call.inner - begin);
      double sums[kGroup];
      std::fill_n(sums, kGroup, kStart);
      for (std::int64_t i = 0; i < call.count; ++i) {
        const T* row = source + (outer * call.count + i) * call.inner + begin;
        for (std::int64_t j = 0; j < width; ++j) {
          const auto value = static_cast<double>(load(row[j]));
          // A NaN stays: every comparison with it is false.
          constexpr bool kExtremum = kOp == ReductionOp::kMaximum || kOp == ReductionOp::kMinimum;
          if (!kExtremum || sums[j] == sums[j]) {
            sums[j] = reduce<kOp>(sums[j], value);
          }
        }
      }
      T* to = target + outer * call.inner + begin;
      for (std::int64_t j = 0; j < width; ++j) {
        const double divisor = kOp == ReductionOp::kMean ? static_cast<double>(call.count) : 1.0;
        const double sum = kOp == ReductionOp::kNorm2 ? std::sqrt(sums[j]) : sums[j];
        store(to[j], static_cast<float>(sum / divisor));
      }
    }
  }
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

enum class ReductionOp : std::uint8_t {
  kMean,
  kSum,
  kMaximum,
  kMinimum,
  kProduct,
  kNorm1,  ///< the sum of magnitudes
  kNorm2,  ///< the root of the sum of squares
};

/// Reduces the middle dimension of a row-major [outer, count, inner] tensor; sums and products are
/// float64, extrema propagate NaN.
struct MiddleReduction {
  static constexpr std::string_view kName = "reduction";
  ReductionOp op = ReductionOp::kMean;
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
  VectorIsa isa = VectorIsa::kAny;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<ReductionOp> = 7;

NPU_FIELDS(MiddleReduction, op, type, outer, count, inner, isa);
Footprint footprint(const MiddleReduction& kernel);

}  // namespace npu::onednn

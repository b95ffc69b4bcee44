// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Where the elements of each row stand in order, as int64, of which the first `kept` count; equal
/// ones keep their order, NaN is the largest. The kept elements follow behind all rows, if wanted.
struct SortRows {
  static constexpr std::string_view kName = "sort";
  static constexpr std::int64_t kMostElements = 0xFFFFFFFF;
  DType type = DType::kFloat32;  ///< float32, bfloat16, int32, int64 or bool
  bool descending = false;
  bool has_values = false;
  std::int64_t rows = 1;
  std::int64_t count = 1;  ///< elements of a row, up to kMostElements
  std::int64_t kept = 1;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

NPU_FIELDS(SortRows, type, descending, has_values, rows, count, kept);
Footprint footprint(const SortRows& kernel);

}  // namespace npu::onednn

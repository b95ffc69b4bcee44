// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// A product for each run of rows with a matrix of its own, as a mixture of experts has them:
/// target[row, column] = sum over k of source[row, k] * weight[group, k, column], where the group's
/// rows end where `ends` says; rows behind the last end become zero. float32.
struct GroupedProduct {
  static constexpr std::string_view kName = "grouped-product";
  std::int64_t groups = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::string node{};  ///< for messages
  VectorIsa isa = VectorIsa::kAny;

  /// Blocks of lanes_of(isa) columns, the last of which may be filled up.
  std::int64_t blocks() const { return ceil_div(columns, lanes_of(isa)); }

  struct Operands {
    const float* source;
    const float* weight;  ///< [groups, blocks(), inner, lanes]
    const std::int64_t* ends;
    float* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    Operands operands{};
    operands.source = in.next<const float>();
    operands.weight = in.next<const float>();
    operands.ends = in.next<const std::int64_t>();
    operands.target = in.next<float>();
    return operands;
  }
  /// Throws Error kFailed if `ends` do not ascend within the rows.
  void run(const Operands& operands) const;
};

NPU_FIELDS(GroupedProduct, groups, rows, inner, columns, node, isa);
Footprint footprint(const GroupedProduct& kernel);

}  // namespace npu::onednn

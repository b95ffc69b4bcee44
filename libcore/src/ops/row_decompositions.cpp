// SPDX-License-Identifier: Apache-2.0
// Rows behind the valid ones, and masks over a cache, written with sequences and comparisons: what
// a device without npu.tail or npu.length_mask runs. O(nodes written): five at most.
#include "ops/row_decompositions.hpp"

#include <string>
#include <utility>

namespace npu::decompositions {

Value tail(PartWriter& w) {
  const Value self = w.operand("self");
  const Value valid = w.operand("valid");
  need(rank_of(self) > 0 && rank_of(valid) == 0 && valid.dtype == DType::kInt64);
  const std::int64_t dim = w.dimension("dim", self);
  const std::string fill = w.node().string("fill");
  const Value rows = w.sequence(0, extent(self, dim));
  if (fill == "edge") {
    const Value last = w.map("aten.sub.Scalar", valid, {{"other", 1}});
    return w.index_select(self, dim, w.join("aten.minimum.default", rows, last));
  }
  need(fill == "zero" || (fill == "lowest" && is_floating_point(self.dtype)));
  Shape along(self.shape.size(), 1);
  along[index_of(dim)] = extent(self, dim);
  const Value is_valid = w.reshape(
      w.add("aten.lt.Tensor", {rows, valid}, Json::object(), rows.shape, DType::kBool), along);
  if (self.dtype == DType::kBool) return w.join("aten.logical_and.default", self, is_valid);
  return w.add("aten.where.ScalarOther", {is_valid, self},
               {{"other", fill == "zero" ? Json(0) : Json("-inf")}}, self.shape, self.dtype);
}

Value length_mask(PartWriter& w) {
  const std::int64_t keys = w.integer("keys");
  const std::int64_t window = w.integer("window");
  const bool is_causal = w.node().boolean("causal");
  const Value row = w.sequence(0, keys);
  Values parts;
  const auto compare = [&](std::string op_type, const Value& bound) {
    parts.push_back(w.add(std::move(op_type), {row, bound}, Json::object(),
                          broadcast(row.shape, bound.shape), DType::kBool));
  };
  if (!w.is_none("positions")) {
    const Value positions = w.operand("positions");
    need(rank_of(positions) == 1 && positions.dtype == DType::kInt64);
    const Value column = w.reshape(positions, {extent(positions, 0), 1});
    if (is_causal) compare("aten.le.Tensor", column);
    if (window > 0) {
      compare("aten.gt.Tensor", w.map("aten.sub.Scalar", column, {{"other", window}}));
    }
    need(is_causal || window > 0);
  }
  if (!w.is_none("valid")) {
    const Value valid = w.operand("valid");
    need(rank_of(valid) == 0 && valid.dtype == DType::kInt64);
    compare("aten.lt.Tensor", valid);
  }
  need(!parts.empty());
  Value mask = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    mask = w.join("aten.logical_and.default", mask, parts[i]);
  }
  return w.reshape(mask, w.result().shape);
}

}  // namespace npu::decompositions

// SPDX-License-Identifier: Apache-2.0
// Ops that read at places which a tensor holds. A place outside the operand is a fault of the run.
#include <algorithm>
#include <limits>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

bool is_place(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

/// The place that an element of `indices` states, from 0 to `extent`.
std::string stated_place(Emitter& emitter, const BoundNode& node, TensorId indices,
                         const Index& index, std::int64_t extent) {
  if (!is_place(emitter.dtype(indices))) emitter.refuse(node.node(), "its indices are no integers");
  return emitter.place_within(
      node.node(), emitter.broadcast_element(indices, index, emitter.dtype(indices)), extent);
}

}  // namespace

std::string embedding_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId weight = tensor_of(emitter, node, "weight");
  const TensorId indices = tensor_of(emitter, node, "indices");
  const Shape& table = emitter.shape(weight);
  if (table.size() != 2) emitter.refuse(node.node(), "its table has not two dimensions");
  Shape expected = emitter.shape(indices);
  expected.push_back(table[1]);
  emitter.expect_shape(node.node(), 0, expected);
  const std::string row =
      stated_place(emitter, node, indices, Index(index.begin(), index.end() - 1), table[0]);
  return emitter.element(weight, {row, index.back()});
}

std::string gather_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TensorId indices = tensor_of(emitter, node, "index");
  const Shape& shape = emitter.shape(self);
  emitter.expect_shape(node.node(), 0, emitter.shape(indices));
  if (shape.empty()) return emitter.element(self, {});
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  if (shape.size() != index.size()) emitter.refuse(node.node(), "its operands differ in rank");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != d && emitter.shape(indices)[i] > shape[i]) {
      emitter.refuse(node.node(), "its index is larger than its operand");
    }
  }
  Index source = index;
  source[d] = stated_place(emitter, node, indices, index, shape[d]);
  return emitter.element(self, source);
}

std::string index_select_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TensorId indices = tensor_of(emitter, node, "index");
  Shape shape = emitter.shape(self);
  if (shape.empty() || emitter.shape(indices).size() > 1) {
    emitter.refuse(node.node(), "its operands have other ranks");
  }
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  const std::int64_t extent = shape[d];
  shape[d] = emitter.model().count(indices);
  emitter.expect_shape(node.node(), 0, shape);
  Index source = index;
  source[d] = stated_place(emitter, node, indices,
                           emitter.shape(indices).empty() ? Index{} : Index{index[d]}, extent);
  return emitter.element(self, source);
}

// npu.tail: the rows behind the valid ones are 0, minus infinity or the last of these. A number of
// rows that the dimension does not have is a fault of the run.
TailRows tail_rows(Emitter& emitter, const BoundNode& node) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TensorId valid = tensor_of(emitter, node, "valid");
  const Shape& shape = emitter.shape(self);
  const DType dtype = emitter.dtype(self);
  if (shape.empty()) emitter.refuse(node.node(), "a scalar has no rows");
  if (emitter.dtype(valid) != DType::kInt64 || emitter.model().count(valid) != 1) {
    emitter.refuse(node.node(), "its number of valid rows is no int64");
  }
  TailRows rows;
  rows.dimension =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  const std::string fill = node.find("fill") != nullptr ? node.string("fill") : "zero";
  rows.repeats_last = fill == "edge";
  if (fill == "zero") {
    rows.fill = literal(0.0, dtype);
  } else if (fill == "lowest" && is_floating_point(dtype)) {
    rows.fill = literal(-std::numeric_limits<double>::infinity(), dtype);
  } else if (!rows.repeats_last) {
    emitter.refuse(node.node(), "its fill is none of zero, edge and lowest");
  }
  const std::int64_t extent = shape[rows.dimension];
  const std::string stated = emitter.define(DType::kInt64, emitter.element(valid, {}));
  rows.count = emitter.place_within(node.node(),
                                    "(" + stated + (rows.repeats_last ? " < 1 ? " : " < 0 ? ") +
                                        std::to_string(extent + 1) + " : " + stated + ")",
                                    extent + 1);
  return rows;
}

std::string tail_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TailRows rows = tail_rows(emitter, node);
  const std::string is_valid = index[rows.dimension] + " < " + rows.count;
  if (rows.repeats_last) {
    Index source = index;
    source[rows.dimension] =
        "(" + is_valid + " ? " + index[rows.dimension] + " : " + rows.count + " - 1)";
    return emitter.element(self, emitter.define_index(source));
  }
  return "(" + is_valid + " ? " + emitter.element(self, index) + " : " + rows.fill + ")";
}

// npu.length_mask: which keys of a cache each position sees.
std::string length_mask_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const auto positions = node.tensor("positions");
  const auto valid = node.tensor("valid");
  const std::int64_t rows = positions ? emitter.model().count(*positions) : 1;
  emitter.expect_shape(node.node(), 0, {1, 1, rows, node.integer("keys")});
  emitter.expect_dtype(node.node(), 0, DType::kBool);
  const std::string key = "(long)(" + index[3] + ")";
  std::string truth = "1";
  if (valid) truth += " && " + key + " < " + emitter.element(*valid, {});
  if (positions) {
    const std::string position = emitter.element(*positions, {index[2]});
    const std::int64_t window = node.integer("window");
    if (node.boolean("causal")) truth += " && " + key + " <= " + position;
    if (window > 0) truth += " && " + key + " > " + position + " - " + std::to_string(window) + "L";
  }
  return "(" + truth + ")";
}

// Advanced indexing: index tensors broadcast to one shape, which stands in place of the indexed
// dimensions, or in front if they are not neighbours.
std::string index_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const Shape& shape = emitter.shape(self);
  const std::vector<TensorId> indices = node.tensors("indices");
  if (indices.size() > shape.size()) emitter.refuse(node.node(), "it has too many indices");
  Shape common;
  std::vector<std::size_t> indexed;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].valid()) continue;
    indexed.push_back(d);
    if (!join_shape(common, emitter.shape(indices[d]))) {
      emitter.refuse(node.node(), "its indices do not broadcast");
    }
  }
  if (indexed.empty()) emitter.refuse(node.node(), "it has no indices");
  const bool are_neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
  const std::size_t at = are_neighbours ? indexed.front() : 0;
  Shape expected;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d >= indices.size() || !indices[d].valid()) expected.push_back(shape[d]);
  }
  expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), common.begin(), common.end());
  emitter.expect_shape(node.node(), 0, expected);
  const auto begin = index.begin() + static_cast<std::ptrdiff_t>(at);
  const Index place(begin, begin + static_cast<std::ptrdiff_t>(common.size()));
  Index source;
  std::size_t next = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < indices.size() && indices[d].valid()) {
      source.push_back(stated_place(emitter, node, indices[d], place, shape[d]));
    } else {
      if (next == at) next += common.size();
      source.push_back(index.at(next++));
    }
  }
  return emitter.element(self, source);
}

}  // namespace npu::opencl

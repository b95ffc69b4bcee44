// SPDX-License-Identifier: Apache-2.0
// Ops that write into a copy of a tensor, or choose elements by their order, as ONNX has them.
#include <algorithm>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

std::int64_t axis_of_dim(const NodeExport& node, std::string_view argument) {
  const std::size_t rank = node.first_info().shape.size();
  if (rank == 0) NodeExport::refuse("an operand without dimensions");
  return NodeExport::axis_of(node.args.integer(argument), rank);
}

std::string emit_slices(NodeExport& node, const std::string& value, const OnnxInts& begins,
                        const OnnxInts& ends, const OnnxInts& axes) {
  return node.emit("Slice", {value, node.onnx.integers(begins), node.onnx.integers(ends),
                             node.onnx.integers(axes)});
}

/// `source` in place of the elements from `begin` up to `end` of an axis.
void finish_replaced(NodeExport& node, const std::string& source, std::int64_t axis,
                     std::int64_t begin, std::int64_t end) {
  const std::string self = node.value("self");
  const std::int64_t extent = node.first_info().shape.at(static_cast<std::size_t>(axis));
  std::vector<std::string> parts;
  if (begin > 0) parts.push_back(emit_slices(node, self, {0}, {begin}, {axis}));
  if (end > begin) parts.push_back(source);
  if (end < extent) parts.push_back(emit_slices(node, self, {end}, {extent}, {axis}));
  if (parts.empty()) return node.finish_as(self);
  if (parts.size() == 1) return node.finish_as(parts.front());
  node.finish("Concat", std::move(parts), {{"axis", axis}});
}

/// What ScatterElements and ScatterND do with the element that is there; empty: they replace it.
OnnxAttributes reduction_of(const NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "scatter_add") return {{"reduction", std::string("add")}};
  if (name != "scatter_reduce") return {};
  if (!node.args.boolean("include_self")) NodeExport::refuse("include_self=False");
  const std::string reduce = node.args.string("reduce");
  const char* reduction = reduce == "sum"    ? "add"
                          : reduce == "prod" ? "mul"
                          : reduce == "amax" ? "max"
                          : reduce == "amin" ? "min"
                                             : nullptr;
  if (reduction == nullptr) NodeExport::refuse("reduce='" + reduce + "'");
  return {{"reduction", std::string(reduction)}};
}

/// Indices of several dimensions in the shape of all, side by side along a last axis.
std::string emit_places(NodeExport& node, const std::vector<TensorId>& tensors, Shape& common) {
  for (const TensorId id : tensors) {
    const TensorInfo& index = node.graph.tensor(id);
    if (!is_integer(index.dtype) || index.dtype == DType::kUInt8)
      NodeExport::refuse("an index that is a mask");
    if (index.shape.size() > common.size()) {
      common.insert(common.begin(), index.shape.size() - common.size(), 1);
    }
    const std::size_t lead = common.size() - index.shape.size();
    for (std::size_t d = 0; d < index.shape.size(); ++d) {
      if (index.shape[d] != 1) common[lead + d] = index.shape[d];
    }
  }
  Shape column = common;
  column.push_back(1);
  std::vector<std::string> columns;
  for (const TensorId id : tensors) {
    std::string index = node.value_as(id, DType::kInt64);
    if (node.graph.tensor(id).shape != common) {
      index = node.emit("Expand", {index, node.onnx.integers(common)});
    }
    columns.push_back(node.emit_reshape(index, column));
  }
  if (columns.size() == 1) return columns.front();
  return node.emit("Concat", columns, {{"axis", std::int64_t{-1}}});
}

}  // namespace

void export_gather(NodeExport& node) {
  // PyTorch takes the front of the other dimensions where the index is smaller; ONNX does so too.
  node.finish("GatherElements", {node.value("self"), node.value_as("index", DType::kInt64)},
              {{"axis", axis_of_dim(node, "dim")}});
}

void export_index_select(NodeExport& node) {
  if (node.info("index").shape.size() != 1) NodeExport::refuse("an index without dimensions");
  node.finish("Gather", {node.value("self"), node.value_as("index", DType::kInt64)},
              {{"axis", axis_of_dim(node, "dim")}});
}

void export_scatter(NodeExport& node) {
  const std::int64_t axis = axis_of_dim(node, "dim");
  const Shape& shape = node.info("index").shape;
  const DType dtype = node.result().dtype;
  std::string source;
  if (node.args.find("src") == nullptr) {
    source = node.emit("Expand",
                       {node.scalar(node.args.number("value"), dtype), node.onnx.integers(shape)});
  } else {
    source = node.value("src");
    if (node.info("src").shape != shape) {  // its front, as far as the index goes
      OnnxInts axes(shape.size());
      for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
      source = emit_slices(node, source, OnnxInts(shape.size(), 0), shape, axes);
    }
  }
  OnnxAttributes attributes = reduction_of(node);
  attributes.insert(attributes.begin(), {"axis", axis});
  node.finish("ScatterElements",
              {node.value("self"), node.value_as("index", DType::kInt64), source},
              std::move(attributes));
}

void export_index_several(NodeExport& node) {
  const BoundArgument* indices = node.args.find("indices");
  const std::size_t rank = node.first_info().shape.size();
  std::vector<TensorId> tensors;
  OnnxInts perm;  // the dimensions with an index, then the others
  for (std::size_t d = 0; d < indices->inputs.size(); ++d) {
    if (indices->inputs[d] < 0) continue;
    tensors.push_back(node.node().inputs[static_cast<std::size_t>(indices->inputs[d])]);
    perm.push_back(static_cast<std::int64_t>(d));
  }
  const std::size_t count = perm.size();
  const auto first = static_cast<std::size_t>(perm.front());
  // Where indices stand side by side their dimensions stay there, else they come to the front.
  const bool stays = static_cast<std::size_t>(perm.back()) + 1 == first + count;
  OnnxInts others;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<std::int64_t>(d);
    if (std::find(perm.begin(), perm.end(), axis) == perm.end()) others.push_back(axis);
  }
  perm.insert(perm.end(), others.begin(), others.end());
  const std::string moved = node.emit("Transpose", {node.value(node.first())}, {{"perm", perm}});
  Shape common;
  const std::string places = emit_places(node, tensors, common);
  const std::string found = node.emit("GatherND", {moved, places});
  if (!stays || first == 0) return node.finish_as(found);
  OnnxInts back;
  const std::size_t width = common.size();
  for (std::size_t d = 0; d < first; ++d) back.push_back(static_cast<std::int64_t>(width + d));
  for (std::size_t d = 0; d < width; ++d) back.push_back(static_cast<std::int64_t>(d));
  for (std::size_t d = first; d < others.size(); ++d) {
    back.push_back(static_cast<std::int64_t>(width + d));
  }
  node.finish("Transpose", {found}, {{"perm", back}});
}

void export_index_put(NodeExport& node) {
  const BoundArgument* indices = node.args.find("indices");
  std::vector<TensorId> tensors;
  for (const std::int32_t operand : indices->inputs) {
    if (operand < 0) NodeExport::refuse("a dimension in front that has no index");
    tensors.push_back(node.node().inputs[static_cast<std::size_t>(operand)]);
  }
  const Shape& self = node.first_info().shape;
  const bool accumulates = node.args.boolean("accumulate");
  if (tensors.empty() || tensors.size() > self.size()) NodeExport::refuse("it has no index");
  const TensorInfo& first = node.graph.tensor(tensors.front());
  if (first.dtype == DType::kBool) {
    std::int64_t values = 1;
    for (const std::int64_t extent : node.info("values").shape) values *= extent;
    if (tensors.size() > 1 || first.shape != self || values != 1 || accumulates) {
      NodeExport::refuse("a mask that chooses where each of several values goes");
    }
    const std::string value = node.emit_reshape(node.value("values"), {});
    return node.finish("Where", {node.value(tensors.front()), value, node.value("self")});
  }
  Shape common;
  const std::string places = emit_places(node, tensors, common);
  Shape updated = common;
  updated.insert(updated.end(), self.begin() + static_cast<std::ptrdiff_t>(tensors.size()),
                 self.end());
  std::string values = node.value("values");
  if (node.info("values").shape != updated) {
    values = node.emit("Expand", {values, node.onnx.integers(updated)});
  }
  OnnxAttributes attributes;
  if (accumulates) attributes.push_back({"reduction", std::string("add")});
  node.finish("ScatterND", {node.value("self"), places, values}, std::move(attributes));
}

void export_select_scatter(NodeExport& node) {
  const std::int64_t axis = axis_of_dim(node, "dim");
  Shape shape = node.first_info().shape;
  const std::int64_t extent = shape.at(static_cast<std::size_t>(axis));
  const std::int64_t stated = node.args.integer("index");
  const std::int64_t index = stated < 0 ? stated + extent : stated;
  shape[static_cast<std::size_t>(axis)] = 1;
  finish_replaced(node, node.emit_reshape(node.value("src"), shape), axis, index, index + 1);
}

void export_slice_scatter(NodeExport& node) {
  const std::int64_t axis = axis_of_dim(node, "dim");
  const std::int64_t extent = node.first_info().shape.at(static_cast<std::size_t>(axis));
  if (node.args.integer("step") != 1) NodeExport::refuse("steps over elements");
  const auto bound = [&](std::string_view argument, std::int64_t otherwise) {
    if (node.args.is_none(argument)) return otherwise;
    const std::int64_t value = node.args.integer(argument);
    return std::clamp<std::int64_t>(value < 0 ? value + extent : value, 0, extent);
  };
  const std::int64_t begin = bound("start", 0);
  finish_replaced(node, node.value("src"), axis, begin, std::max(begin, bound("end", extent)));
}

void export_top_k(NodeExport& node) {
  const std::int64_t axis = axis_of_dim(node, "dim");
  const std::string_view name = functional_name(node.node().op_type);
  const bool is_top = name == "topk";
  const std::int64_t count =
      is_top ? node.args.integer("k") : node.first_info().shape.at(static_cast<std::size_t>(axis));
  const bool is_largest = node.args.boolean(is_top ? "largest" : "descending");
  const OnnxAttributes attributes{{"axis", axis}, {"largest", std::int64_t{is_largest ? 1 : 0}}};
  std::vector<std::string> inputs{node.value("self"), node.onnx.integers({count})};
  if (name != "argsort") return node.finish_list("TopK", std::move(inputs), attributes);
  node.finish_as(node.emit_several("TopK", std::move(inputs), attributes, 2).back());
}

}  // namespace npu::onnx_export

// SPDX-License-Identifier: Apache-2.0
// Ops that move elements as ONNX has them. All shapes are known, so each reshape states its own.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

std::int64_t axis_argument(const NodeExport& node, std::string_view argument, std::size_t rank) {
  return NodeExport::axis_of(node.args.integer(argument), rank);
}

std::string index_constant(NodeExport& node, std::int64_t index) {
  return node.scalar(static_cast<double>(index), DType::kInt64);
}

/// Part of a tensor along one axis.
std::string emit_slice(NodeExport& node, const std::string& input, std::int64_t axis,
                       std::int64_t begin, std::int64_t end, std::int64_t step = 1) {
  return node.emit("Slice", {input, node.onnx.integers({begin}), node.onnx.integers({end}),
                             node.onnx.integers({axis}), node.onnx.integers({step})});
}

std::string pad_mode(const NodeExport& node) {
  const bool has_mode = node.args.find("mode") != nullptr;
  std::string mode = has_mode ? node.args.string("mode") : "constant";
  if (mode == "constant" || mode == "reflect") return mode;
  if (mode == "replicate") return "edge";
  if (mode == "circular") return "wrap";
  NodeExport::refuse("padding of mode '" + mode + "'");
}

}  // namespace

void export_reshape(NodeExport& node) { node.finish_reshaped(node.value(node.first())); }

void export_permute(NodeExport& node) {
  const std::size_t rank = node.first_info().shape.size();
  OnnxInts perm = node.args.integers("dims");
  for (std::int64_t& axis : perm) axis = NodeExport::axis_of(axis, rank);
  node.finish("Transpose", {node.value(node.first())}, {{"perm", std::move(perm)}});
}

void export_transpose(NodeExport& node) {
  const std::size_t rank = node.first_info().shape.size();
  OnnxInts perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "t" && rank < 2) return export_identity(node);
  const bool has_axes = name == "swapaxes";
  const std::int64_t a = name == "t" ? 0 : axis_argument(node, has_axes ? "axis0" : "dim0", rank);
  const std::int64_t b = name == "t" ? 1 : axis_argument(node, has_axes ? "axis1" : "dim1", rank);
  if (rank == 0) return export_identity(node);
  std::swap(perm.at(static_cast<std::size_t>(a)), perm.at(static_cast<std::size_t>(b)));
  node.finish("Transpose", {node.value(node.first())}, {{"perm", std::move(perm)}});
}

void export_expand(NodeExport& node) {
  const std::string operand = node.value(node.first());
  if (node.first_info().shape == node.result().shape) return node.finish_as(operand);
  node.finish("Expand", {operand, node.onnx.integers(node.result().shape)});
}

void export_repeat(NodeExport& node) {
  const OnnxInts repeats = node.args.integers("repeats");
  Shape shape = node.first_info().shape;
  std::string operand = node.value(node.first());
  if (shape.size() < repeats.size()) {
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    operand = node.emit_reshape(operand, shape);
  }
  node.finish("Tile", {operand, node.onnx.integers(repeats)});
}

void export_cat(NodeExport& node) {
  const std::vector<TensorId> tensors = node.args.tensors("tensors");
  const DType dtype = node.result().dtype;
  const std::size_t rank = node.result().shape.size();
  std::vector<std::string> inputs;
  for (const TensorId id : tensors) {
    // PyTorch leaves out empty vectors of any rank.
    if (node.graph.tensor(id).shape.size() == rank) inputs.push_back(node.value_as(id, dtype));
  }
  if (inputs.size() == 1) return node.finish_as(inputs.front());
  node.finish("Concat", std::move(inputs), {{"axis", axis_argument(node, "dim", rank)}});
}

void export_stack(NodeExport& node) {
  const DType dtype = node.result().dtype;
  const std::int64_t axis = axis_argument(node, "dim", node.result().shape.size());
  Shape shape = node.result().shape;
  shape.at(static_cast<std::size_t>(axis)) = 1;
  std::vector<std::string> inputs;
  for (const TensorId id : node.args.tensors("tensors")) {
    inputs.push_back(node.emit_reshape(node.value_as(id, dtype), shape));
  }
  node.finish("Concat", std::move(inputs), {{"axis", axis}});
}

void export_select(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  const std::int64_t axis = axis_argument(node, "dim", shape.size());
  const std::int64_t extent = shape.at(static_cast<std::size_t>(axis));
  const std::int64_t index = node.args.integer("index");
  node.finish("Gather",
              {node.value(node.first()), index_constant(node, index < 0 ? index + extent : index)},
              {{"axis", axis}});
}

void export_slice(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  const bool is_narrow = functional_name(node.node().op_type) == "narrow";
  const std::int64_t axis = axis_argument(node, "dim", shape.size());
  const std::int64_t extent = shape.at(static_cast<std::size_t>(axis));
  const auto bound = [&](std::string_view argument, std::int64_t otherwise) {
    if (node.args.is_none(argument)) return otherwise;
    const std::int64_t value = node.args.integer(argument);
    return std::clamp<std::int64_t>(value < 0 ? value + extent : value, 0, extent);
  };
  const std::int64_t begin = bound("start", 0);
  const std::int64_t end = is_narrow ? begin + node.args.integer("length") : bound("end", extent);
  const std::int64_t step = is_narrow ? 1 : node.args.integer("step");
  const std::string operand = node.value(node.first());
  if (begin == 0 && end == extent && step == 1) return node.finish_as(operand);
  node.finish_as(emit_slice(node, operand, axis, begin, end, step));
}

void export_split(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  const std::int64_t axis = axis_argument(node, "dim", shape.size());
  OnnxInts extents;
  for (const TensorId id : node.node().outputs) {
    extents.push_back(node.graph.tensor(id).shape.at(static_cast<std::size_t>(axis)));
  }
  node.finish_list("Split", {node.value(node.first()), node.onnx.integers(extents)},
                   {{"axis", axis}});
}

void export_getitem(NodeExport& node) {
  const auto index = node.args.integer("index");
  const auto count = static_cast<std::int64_t>(node.node().inputs.size());
  const std::int64_t place = index < 0 ? index + count : index;
  if (place < 0 || place >= count) NodeExport::refuse("an item that the list does not have");
  node.finish_as(node.value(node.node().inputs[static_cast<std::size_t>(place)]));
}

void export_roll(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  const OnnxInts shifts = node.args.integers("shifts");
  const OnnxInts dims = node.args.integers("dims");
  if (dims.size() != shifts.size()) NodeExport::refuse("a roll of all elements as one row");
  std::string value = node.value(node.first());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t axis = NodeExport::axis_of(dims[i], shape.size());
    const std::int64_t extent = shape.at(static_cast<std::size_t>(axis));
    if (extent == 0) continue;
    const std::int64_t shift = (shifts[i] % extent + extent) % extent;
    if (shift == 0) continue;
    const std::string last = emit_slice(node, value, axis, extent - shift, extent);
    const std::string front = emit_slice(node, value, axis, 0, extent - shift);
    value = node.emit("Concat", {last, front}, {{"axis", axis}});
  }
  node.finish_as(value);
}

void export_pad(NodeExport& node) {
  const OnnxInts pad = node.args.integers("pad");  // pairs, the last dimension first
  const std::size_t rank = node.first_info().shape.size();
  if (pad.size() % 2 != 0 || pad.size() / 2 > rank) NodeExport::refuse("padding of these sizes");
  const std::string operand = node.value(node.first());
  const std::string mode = pad_mode(node);
  if (std::all_of(pad.begin(), pad.end(), [](std::int64_t each) { return each == 0; })) {
    return node.finish_as(operand);
  }
  OnnxInts pads(2 * rank, 0);
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    pads[rank - 1 - i] = pad[2 * i];
    pads[2 * rank - 1 - i] = pad[2 * i + 1];
  }
  std::vector<std::string> inputs{operand, node.onnx.integers(pads)};
  if (mode == "constant" && !node.args.is_none("value")) {
    inputs.push_back(node.scalar(node.args.number("value"), node.result().dtype));
  }
  node.finish("Pad", std::move(inputs), {{"mode", mode}});
}

void export_index(NodeExport& node) {
  const BoundArgument* indices = node.args.find("indices");
  std::int64_t axis = -1;
  std::int32_t operand = -1;
  for (std::size_t i = 0; indices != nullptr && i < indices->inputs.size(); ++i) {
    if (indices->inputs[i] < 0) continue;
    if (axis >= 0) return export_index_several(node);
    axis = static_cast<std::int64_t>(i);
    operand = indices->inputs[i];
  }
  if (axis < 0) NodeExport::refuse("it has no index");
  const TensorId index = node.node().inputs[static_cast<std::size_t>(operand)];
  if (!is_integer(node.graph.tensor(index).dtype)) NodeExport::refuse("an index that is a mask");
  node.finish("Gather", {node.value(node.first()), node.value_as(index, DType::kInt64)},
              {{"axis", axis}});
}

void export_embedding(NodeExport& node) {
  node.finish("Gather", {node.value("weight"), node.value_as("indices", DType::kInt64)},
              {{"axis", std::int64_t{0}}});
}

void export_unbind(NodeExport& node) {
  const std::int64_t axis = axis_argument(node, "dim", node.first_info().shape.size());
  const std::string operand = node.value(node.first());
  for (std::size_t i = 0; i < node.node().outputs.size(); ++i) {
    const std::string place = index_constant(node, static_cast<std::int64_t>(i));
    node.finish_output(i, node.emit("Gather", {operand, place}, {{"axis", axis}}));
  }
}

void export_flip(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  OnnxInts axes = node.args.integers("dims");
  if (axes.empty()) return export_identity(node);
  for (std::int64_t& axis : axes) axis = NodeExport::axis_of(axis, shape.size());
  constexpr std::int64_t kBeforeFirst = INT64_MIN;
  const OnnxInts backwards(axes.size(), -1);
  node.finish("Slice", {node.value(node.first()), node.onnx.integers(backwards),
                        node.onnx.integers(OnnxInts(axes.size(), kBeforeFirst)),
                        node.onnx.integers(axes), node.onnx.integers(backwards)});
}

void export_pixel_shuffle(NodeExport& node) {
  const bool is_shuffle = functional_name(node.node().op_type) == "pixel_shuffle";
  const std::int64_t factor = node.args.integer(is_shuffle ? "upscale_factor" : "downscale_factor");
  const Shape& shape = node.first_info().shape;
  if (shape.size() != 4) NodeExport::refuse("an operand without a batch");
  const std::string operand = node.value(node.first());
  if (is_shuffle) {
    return node.finish("DepthToSpace", {operand},
                       {{"blocksize", factor}, {"mode", std::string("CRD")}});
  }
  // ONNX's SpaceToDepth orders the new channels by place first, PyTorch by channel.
  const Shape split{shape[0], shape[1], shape[2] / factor, factor, shape[3] / factor, factor};
  const std::string parts = node.emit_reshape(operand, split);
  const std::string moved = node.emit("Transpose", {parts}, {{"perm", OnnxInts{0, 1, 3, 5, 2, 4}}});
  node.finish_as(node.emit_reshape(moved, node.result().shape));
}

}  // namespace npu::onnx_export

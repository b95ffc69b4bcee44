// SPDX-License-Identifier: Apache-2.0
// RMS norm as an op, and as models write it out: x by the root of its mean square, and the product
// with weights. O(nodes of the group).
#include <algorithm>

#include "lowering/norm/norm.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// A norm of the rows of `input`, whose result is a tensor of the same shape.
struct RmsNormCall {
  TensorId input;
  TensorId result;
  NormalizedRows rows;
  float epsilon = 0.0F;
  std::optional<TensorId> weight;
};

void add_rms_norm(Lowering& lowering, const GroupContext& context, const RmsNormCall& norm) {
  RmsNorm call;
  call.rows = norm.rows.rows;
  call.inner = norm.rows.width;
  call.epsilon = norm.epsilon;
  call.has_weight = norm.weight.has_value();
  std::vector<Value> reads{lowering.plain(lowering.operand(norm.input, context.compute_type))};
  call.type = reads.front().type;
  if (norm.weight) {
    reads.push_back(vector_operand(lowering, "weight", *norm.weight, call.inner));
  }
  const Value target = lowering.temporary(call.type, reads.front().layout);
  lowering.add_kernel(reads, target, call);
  lowering.define_computed(context, norm.result, lowering.shape(norm.input),
                           lowering.dtype(norm.input), target);
}

}  // namespace

void lower_rms_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  RmsNormCall norm;
  norm.input = tensor_argument(lowering, node, "input");
  norm.result = lowering.result();
  lowering.require_float("input", norm.input);
  norm.rows = normalized_rows(lowering, node, lowering.shape(norm.input));
  // PyTorch's default is the dtype's smallest step at 1.
  const float step = lowering.dtype(norm.input) == DType::kFloat32 ? 1.1920929e-7F : 7.8125e-3F;
  norm.epsilon = node.is_none("eps") ? step : static_cast<float>(node.number("eps"));
  norm.weight = node.tensor("weight");
  add_rms_norm(lowering, context, norm);
}

Lowered<Done> lower_written_rms_norm_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Graph& graph = lowering.graph();
  const auto is_inside = [&](TensorId id) {
    const NodeId producer = graph.tensor(id).producer;
    return std::find(group.nodes.begin(), group.nodes.end(), producer) != group.nodes.end();
  };
  RmsNormCall norm;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    const std::string_view name = functional_name(node.op_type);
    const bool is_square = name == "pow" || name == "square" ||
                           (name == "mul" && node.inputs.front() == node.inputs.back());
    if (is_square) norm.input = node.inputs.front();
    if (name == "add") norm.epsilon = node.attrs().at("other").get<float>();
  }
  const Shape& shape = lowering.shape(norm.input);
  norm.rows.width = shape.back();
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) norm.rows.rows *= shape[i];
  // The last product is one with weights if the other operand is as large as x, and no root.
  const Node& last = graph.node(group.nodes.back());
  norm.result = last.outputs.front();
  for (std::size_t i = 0; i < last.inputs.size(); ++i) {
    const bool is_norm = is_inside(last.inputs[i]) && lowering.shape(last.inputs[i]) == shape;
    if (is_norm) norm.weight = last.inputs[1 - i];
  }
  add_rms_norm(lowering, context, norm);
  return Done{};
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Finds linear nodes that read one input (queries, keys and values of attention): one product with
// the weights side by side, of which every result is a run of columns. Left apart are nodes whose
// result goes into an activation or a sum, which is worth more as an epilogue. O(nodes + edges).
#include <algorithm>
#include <optional>

#include "fusion/fusion.hpp"

namespace npu::onednn {

namespace {

bool is_weight(const Graph& graph, TensorId id) {
  return graph.tensor(id).kind == TensorKind::kWeight;
}

bool is_plain_linear(const Graph& graph, const FusionPlan& plan, NodeId id) {
  const Node& node = graph.node(id);
  if (plan.dead[static_cast<std::size_t>(id.value)] ||
      plan.group_of[static_cast<std::size_t>(id.value)] >= 0 ||
      node.op_type != "aten.linear.default" || node.outputs.size() != 1 || node.inputs.size() < 2 ||
      node.inputs.size() > 3 || !node.attrs().empty()) {
    return false;
  }
  const TensorInfo& input = graph.tensor(node.inputs[0]);
  const TensorInfo& weight = graph.tensor(node.inputs[1]);
  const TensorInfo& result = graph.tensor(node.outputs[0]);
  if (!is_weight(graph, node.inputs[1]) || weight.shape.size() != 2 || input.shape.size() < 2 ||
      weight.shape[1] != input.shape.back() || weight.dtype != input.dtype ||
      result.dtype != input.dtype) {
    return false;
  }
  if (node.inputs.size() == 3) {
    const TensorInfo& bias = graph.tensor(node.inputs[2]);
    if (!is_weight(graph, node.inputs[2]) || bias.shape != Shape{weight.shape[0]} ||
        bias.dtype != input.dtype) {
      return false;
    }
  }
  Shape expected = input.shape;
  expected.back() = weight.shape[0];
  if (result.shape != expected) return false;
  const NodeId next = only_consumer(graph, plan, node.outputs[0]);
  if (!next.valid()) return false;
  const std::string& op = graph.node(next).op_type;
  return keeps_row_major(graph, graph.node(next)) || op == "aten.transpose.int" ||
         op == "aten.permute.default";
}

}  // namespace

void match_shared_inputs(const Graph& graph, FusionPlan& plan) {
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.consumers.size() < 2) continue;
    FusionGroup group{FusionGroup::Kind::kSharedInput, {}, {}};
    std::optional<std::size_t> operands;
    for (const NodeId id : tensor.consumers) {
      const Node& node = graph.node(id);
      if (!is_plain_linear(graph, plan, id) || graph.tensor(node.inputs[0]).name != tensor.name)
        continue;
      if (operands && *operands != node.inputs.size()) continue;
      operands = node.inputs.size();
      group.nodes.push_back(id);
    }
    if (group.nodes.size() < 2) continue;
    for (const NodeId id : group.nodes) {
      plan.group_of[static_cast<std::size_t>(id.value)] =
          static_cast<std::int32_t>(plan.groups.size());
    }
    plan.groups.push_back(std::move(group));
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Finds which nodes of a sub-IR become one kernel: runs the matchers in order of what they save,
// then says when each tensor is read for the last time. O(nodes + edges) but for the matchers'
// short walks.
#include "fusion/fusion.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace npu::onednn {

bool is_graph_output(const Graph& graph, TensorId tensor) {
  const auto& outputs = graph.graph_outputs();
  return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
}

std::vector<NodeId> live_consumers(const Graph& graph, const FusionPlan& plan, TensorId tensor) {
  std::vector<NodeId> result;
  for (const NodeId id : graph.tensor(tensor).consumers) {
    if (!plan.dead[static_cast<std::size_t>(id.value)]) result.push_back(id);
  }
  return result;
}

NodeId only_consumer(const Graph& graph, const FusionPlan& plan, TensorId tensor) {
  const std::vector<NodeId> consumers = live_consumers(graph, plan, tensor);
  if (consumers.size() != 1 || is_graph_output(graph, tensor)) return {};
  const auto& inputs = graph.node(consumers.front()).inputs;
  if (std::count(inputs.begin(), inputs.end(), tensor) != 1) return {};
  return consumers.front();
}

bool keeps_row_major(const Graph& graph, const Node& node) {
  constexpr auto kAliases = std::to_array<std::string_view>({
      "aten._unsafe_view.default",
      "aten.alias.default",
      "aten.clone.default",
      "aten.contiguous.default",
      "aten.detach.default",
      "aten.detach_.default",
      "aten.dropout.default",
      "aten.dropout_.default",
      "aten.feature_dropout.default",
      "aten.flatten.using_ints",
      "aten.reshape.default",
      "aten.squeeze.default",
      "aten.squeeze.dim",
      "aten.unsqueeze.default",
      "aten.view.default",
  });
  constexpr auto kPermutes = std::to_array<std::string_view>(
      {"aten.transpose.int", "aten.permute.default", "aten.t.default"});
  const auto contains = [&](const auto& names) {
    return std::find(names.begin(), names.end(), node.op_type) != names.end();
  };
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const TensorInfo& from = graph.tensor(node.inputs.front());
  const TensorInfo& to = graph.tensor(node.outputs.front());
  if (from.dtype != to.dtype || from.bytes() != to.bytes()) return false;
  if (contains(kAliases)) return true;
  // A permutation that only moves dimensions of 1 leaves the others in order: the shapes without
  // ones are equal, and no two of their extents are, so that none can have changed places.
  if (!contains(kPermutes)) return false;
  const auto without_ones = [](Shape shape) {
    std::erase(shape, 1);
    return shape;
  };
  Shape before = without_ones(from.shape);
  if (before != without_ones(to.shape)) return false;
  std::sort(before.begin(), before.end());
  return std::adjacent_find(before.begin(), before.end()) == before.end();
}

namespace {

void find_last_uses(const Graph& graph, FusionPlan& plan) {
  plan.last_use.assign(graph.tensors().size(), -1);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (plan.dead[i]) continue;
    auto position = static_cast<std::int32_t>(i);
    if (plan.group_of[i] >= 0) {
      position = plan.groups[static_cast<std::size_t>(plan.group_of[i])].nodes.back().value;
    }
    for (const TensorId id : graph.nodes()[i].inputs) {
      auto& last = plan.last_use[static_cast<std::size_t>(id.value)];
      last = std::max(last, position);
    }
  }
  for (const TensorId id : graph.graph_outputs()) {
    plan.last_use[static_cast<std::size_t>(id.value)] = std::numeric_limits<std::int32_t>::max();
  }
}

}  // namespace

FusionPlan find_fusions(const Graph& graph) {
  FusionPlan plan;
  plan.group_of.assign(graph.nodes().size(), -1);
  mark_dead_nodes(graph, plan);
  match_attention(graph, plan);
  match_squeeze_excite(graph, plan);
  match_shared_inputs(graph, plan);
  match_epilogues(graph, plan);
  find_last_uses(graph, plan);
  return plan;
}

}  // namespace npu::onednn

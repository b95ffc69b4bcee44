// SPDX-License-Identifier: Apache-2.0
// Marks nodes whose results no graph output needs, walking the list backwards. O(nodes + edges).
#include "fusion/check_groups.hpp"

namespace npu::onednn {

void mark_dead_nodes(const Graph& graph, FusionPlan& plan) {
  std::vector<bool> needed(graph.tensors().size(), false);
  for (const TensorId id : graph.graph_outputs()) needed[static_cast<std::size_t>(id.value)] = true;
  plan.dead.assign(graph.nodes().size(), true);
  for (std::size_t i = graph.nodes().size(); i > 0; --i) {
    const Node& node = graph.nodes()[i - 1];
    for (const TensorId id : node.outputs) {
      if (needed[static_cast<std::size_t>(id.value)]) plan.dead[i - 1] = false;
    }
    if (plan.dead[i - 1]) continue;
    for (const TensorId id : node.inputs) needed[static_cast<std::size_t>(id.value)] = true;
  }
}

}  // namespace npu::onednn

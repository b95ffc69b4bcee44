// SPDX-License-Identifier: Apache-2.0
// Marks nodes whose results no graph output needs, walking the list backwards. O(nodes + edges).
#include "fusion/check_groups.hpp"

namespace npu::onednn {

void mark_dead_nodes(const Graph& graph, CheckedGroups& plan) {
  std::vector<bool> needed(graph.tensors().size(), false);
  for (const TensorId id : graph.graph_outputs()) needed[index_of(id)] = true;
  plan.dead.assign(graph.nodes().size(), true);
  for (std::size_t i = graph.nodes().size(); i > 0; --i) {
    const Node& node = graph.nodes()[i - 1];
    for (const TensorId id : node.outputs) {
      if (needed[index_of(id)]) plan.dead[i - 1] = false;
    }
    if (plan.dead[i - 1]) continue;
    for (const TensorId id : node.inputs) needed[index_of(id)] = true;
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Nodes that are computed once, when a model is compiled, as opposed to those that run.
//
// The document keeps them in its list, marked, so that it stays the whole model; in memory they
// stand apart, and what they make counts as a weight. So passes, costs, partitions and backends,
// which all know weights, need to know nothing of folding. O(nodes + edges).
#include "ir/folded_nodes.hpp"

#include "ir/graph_editor.hpp"
#include "npu/support/ids.hpp"

namespace npu {

std::vector<const Node*> document_nodes(const Graph& graph) {
  std::vector<const Node*> nodes;
  nodes.reserve(graph.nodes().size() + graph.folded().size());
  auto folded = graph.folded().begin();
  for (std::size_t n = 0; n <= graph.nodes().size(); ++n) {
    for (; folded != graph.folded().end() && index_of(folded->before) == n; ++folded) {
      nodes.push_back(&folded->node);
    }
    if (n < graph.nodes().size()) nodes.push_back(&graph.nodes()[n]);
  }
  return nodes;
}

void fold_nodes(Graph& graph, const std::vector<char>& fold) {
  GraphEditor editor(graph);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (fold[index_of(id)] != 0) editor.fold(id);
  }
  editor.commit();
}

void unfold_nodes(Graph& graph) {
  if (graph.folded().empty()) return;
  GraphEditor editor(graph);
  editor.unfold_all();
  editor.commit();
}

}  // namespace npu

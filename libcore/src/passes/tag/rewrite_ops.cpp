// SPDX-License-Identifier: Apache-2.0
// Decomposes and folds nodes before they are tagged. Both ask where nodes would run, so they choose
// devices for the graph as it is not going to be, whose faults nobody is told. O(nodes + edges) and
// two choices of devices.
#include "passes/tag/rewrite_ops.hpp"

#include <algorithm>
#include <utility>

#include "ir/folded_nodes.hpp"
#include "passes/tag/choose_devices.hpp"
#include "passes/tag/decompose_ops.hpp"
#include "passes/tag/find_constants.hpp"

namespace npu {
namespace {

/// By node: whether it can be folded; one that is placed by hand cannot.
std::vector<char> constants_of(const Graph& graph, const Target& target, DeviceChooser& chooser) {
  std::vector<char> is_fixed;
  for (const Node& node : graph.nodes()) {
    is_fixed.push_back(chooser.placed_by_hand(node) != nullptr ? 1 : 0);
  }
  return find_constants(graph, target, is_fixed);
}

/// By node: whether it is folded; empty if none is.
std::vector<char> nodes_to_fold(const Graph& graph, const Target& target,
                                const TagOptions& options) {
  if (!options.fold) return {};
  Diagnostics ignored;  // of the graph as it is not going to be
  DeviceChooser chooser(graph, target, options, ignored);
  std::vector<char> chosen = constants_of(graph, target, chooser);
  const auto has_any = [&] { return std::find(chosen.begin(), chosen.end(), 1) != chosen.end(); };
  if (has_any()) chosen = choose_folded(graph, chosen, chooser.devices());
  if (!has_any()) chosen.clear();
  return chosen;
}

/// Nodes of ops that a device lacks become nodes that it runs, but for constants, which are
/// computed once whatever they are made of.
bool decompose_nodes(Graph& graph, const Target& target, const TagOptions& options) {
  Diagnostics ignored;  // of the graph as it is not going to be
  DeviceChooser chooser(graph, target, options, ignored);
  std::vector<char> constants(graph.nodes().size(), 0);
  if (options.fold) constants = constants_of(graph, target, chooser);
  return decompose_ops(graph, target, [&](NodeId id) -> NodeWish {
    return {constants[index_of(id)] != 0, chooser.placed_by_hand(graph.node(id))};
  });
}

/// Which nodes are folded, by name.
std::vector<std::string> folded_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const FoldedNode& folded : graph.folded()) names.push_back(folded.node.name);
  return names;
}

}  // namespace

RewrittenOps rewrite_ops(Graph& graph, const Target& target, const TagOptions& options) {
  RewrittenOps result;
  const std::vector<std::string> folded_before = folded_names(graph);
  const auto keep = [&] {
    if (!result.before) result.before = graph;
  };
  if (!graph.folded().empty()) {
    keep();
    unfold_nodes(graph);
  }
  if (may_decompose(graph, target)) {
    keep();
    result.changed = decompose_nodes(graph, target, options);
  }
  if (const std::vector<char> fold = nodes_to_fold(graph, target, options); !fold.empty()) {
    keep();
    fold_nodes(graph, fold);
  }
  result.changed = result.changed || folded_names(graph) != folded_before;
  return result;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Which states a partition can be asked to write where they lie. Only those that are overwritten in
// part gain by it: one that is replaced as a whole is written to a second buffer, which copies
// nothing, and in one buffer an op that still reads it would be in the way.
#include "compile/state_aliases.hpp"

#include <algorithm>
#include <set>

#include "ir/states_section.hpp"

namespace npu {
namespace {

bool contains(const std::vector<TensorId>& tensors, TensorId id) {
  return std::find(tensors.begin(), tensors.end(), id) != tensors.end();
}

}  // namespace

std::vector<StateAlias> state_aliases(const Graph& graph, const PartitionPlan& plan,
                                      std::size_t partition) {
  std::vector<StateAlias> aliases;
  Diagnostics known;  // the reader has told them
  const std::vector<State> states = read_states(graph, known);
  if (states.empty()) return aliases;
  const Partition& part = plan.partitions[partition];
  const std::set<NodeId> nodes(part.nodes.begin(), part.nodes.end());
  for (const State& state : states) {
    const std::vector<TensorId> chain = chain_in_place(graph, state);
    if (chain.empty()) continue;
    const bool is_inside = std::all_of(chain.begin(), chain.end() - 1, [&](TensorId id) {
      return nodes.contains(graph.tensor(id).producer);
    });
    const bool is_read_later = std::any_of(
        plan.partitions.begin() + static_cast<std::ptrdiff_t>(partition) + 1, plan.partitions.end(),
        [&](const Partition& later) { return contains(later.boundary.inputs, chain.back()); });
    if (is_inside && !is_read_later) aliases.push_back({chain.back(), chain.front()});
  }
  return aliases;
}

std::vector<StateAlias> backend_aliases(const Graph& graph, const PartitionPlan& plan,
                                        std::size_t partition, const Backend& backend) {
  if (!backend.has_feature("alias")) return {};
  return state_aliases(graph, plan, partition);
}

}  // namespace npu

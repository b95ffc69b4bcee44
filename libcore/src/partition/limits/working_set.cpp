// SPDX-License-Identifier: Apache-2.0
// Peak memory of a partition whose memory is reused at the end of each live range.
#include "partition/limits/working_set.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"

namespace npu {

std::int64_t working_set_bytes(const Graph& graph, std::span<const NodeId> nodes) {
  // The tensor that owns the memory of a tensor: itself or, for an alias, the one it views.
  std::unordered_map<std::int32_t, std::int32_t> storage;
  std::unordered_map<std::int32_t, std::size_t> last_use;  // by storage
  std::unordered_set<std::int32_t> members;
  for (const NodeId id : nodes) members.insert(id.value);
  const auto storage_of = [&](TensorId id) {
    const auto found = storage.find(id.value);
    return found == storage.end() ? id.value : found->second;
  };
  constexpr std::size_t kToTheEnd = SIZE_MAX;
  const auto& outputs = graph.graph_outputs();
  const std::unordered_set<std::int32_t> graph_outputs = [&] {
    std::unordered_set<std::int32_t> set;
    for (const TensorId id : outputs) set.insert(id.value);
    return set;
  }();
  std::int64_t resident = 0;  // weights and inputs
  std::unordered_set<std::int32_t> seen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph.node(nodes[i]);
    for (const TensorId input : node.inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind == TensorKind::kResult && members.contains(tensor.producer.value)) {
        std::size_t& last = last_use[storage_of(input)];
        last = std::max(last, i);
      } else if (seen.insert(input.value).second) {
        resident = saturating_add(resident, tensor.bytes());
      }
    }
    const bool is_alias = is_alias_node(graph, node) && node.inputs.size() == 1;
    for (const TensorId output : node.outputs) {
      if (is_alias) storage[output.value] = storage_of(node.inputs.front());
      const std::int32_t place = storage_of(output);
      bool leaves = graph_outputs.contains(output.value);
      for (const NodeId consumer : graph.tensor(output).consumers) {
        leaves = leaves || !members.contains(consumer.value);
      }
      std::size_t& last = last_use[place];
      last = std::max(last, leaves ? kToTheEnd : i);
    }
  }
  std::vector<std::vector<std::int32_t>> ends(nodes.size());
  for (const auto& [tensor, last] : last_use) {
    if (last < nodes.size()) ends[last].push_back(tensor);
  }
  std::int64_t live = resident;
  std::int64_t peak = resident;
  std::unordered_set<std::int32_t> allocated;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const TensorId output : graph.node(nodes[i]).outputs) {
      const std::int32_t place = storage_of(output);
      const TensorInfo& tensor = graph.tensor(TensorId{place});
      const bool is_here =
          tensor.kind == TensorKind::kResult && members.contains(tensor.producer.value);
      if (!is_here || !allocated.insert(place).second) continue;
      live = saturating_add(live, tensor.bytes());
    }
    peak = std::max(peak, live);
    for (const std::int32_t tensor : ends[i]) {
      if (allocated.contains(tensor)) live -= graph.tensor(TensorId{tensor}).bytes();
    }
  }
  return peak;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Where the nodes of a partition go that its device refuses, and what an error about one says.
// O(nodes x devices).
#include "compile/refused_partition.hpp"

#include <set>
#include <vector>

#include "target/support_check.hpp"

namespace npu {

namespace {

/// The first device after `from` that runs all of `nodes`; null if there is none.
const Device* next_device(const Graph& graph, const std::vector<NodeId>& nodes,
                          const Target& target, const std::string& from) {
  bool behind = false;
  for (const Device& device : target.devices) {
    if (behind && !device.backend.empty() && runs_all(graph, nodes, device)) return &device;
    behind = behind || device.name == from;
  }
  return nullptr;
}

}  // namespace

bool move_refused_nodes(Graph& graph, const Partition& partition, const Target& target,
                        const std::string& reason, std::string& to) {
  const Device* whole = next_device(graph, partition.nodes, target, partition.device);
  std::vector<const Device*> places;
  for (const NodeId id : partition.nodes) {
    places.push_back(whole != nullptr ? whole : next_device(graph, {id}, target, partition.device));
    if (places.back() == nullptr) return false;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Node& node = graph.node(partition.nodes[i]);
    node.device = places[i]->name;
    node.device_reason = reason;
    if (whole == nullptr) node.fusion_group.reset();  // its members may be on different devices
    names.insert(places[i]->name);
  }
  for (const std::string& name : names) to += (to.empty() ? "" : ", ") + name;
  return true;
}

Error partition_error(const Error& error, const Graph& graph, const Partition& partition,
                      std::size_t index) {
  if (error.code() != ErrorCode::kFailed && error.code() != ErrorCode::kInfeasible) return error;
  return {error.code(),
          error.message() + " (compiling partition " + std::to_string(index) + " of " +
              std::to_string(partition.nodes.size()) + " nodes from '" +
              graph.node(partition.nodes.front()).name + "' on, for device '" + partition.device +
              "')",
          error.location()};
}

}  // namespace npu

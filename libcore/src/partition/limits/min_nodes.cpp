// SPDX-License-Identifier: Apache-2.0
// Dissolves partitions that are too small to be worth their transfers. Each round moves at least
// one node to a device of lower priority, so there are at most nodes * devices rounds; in practice
// two or three.
#include "partition/limits/min_nodes.hpp"

#include <algorithm>

#include "ir/device_reason.hpp"
#include "ops/op_catalogue.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

std::int64_t counted_nodes(const Graph& graph, const Partition& partition, const Device& device) {
  return std::count_if(partition.nodes.begin(), partition.nodes.end(),
                       [&](NodeId id) { return !device.is_alias(graph.node(id).op_type); });
}

double counted_flops(const Graph& graph, const Partition& partition) {
  double flops = 0;
  for (const NodeId id : partition.nodes) flops += node_flops(graph, graph.node(id));
  return flops;
}

/// The next device below `device` that runs every node of the partition, or null.
const Device* next_device_for(const Graph& graph, const Partition& partition, const Target& target,
                              const Device& device) {
  for (std::size_t d = static_cast<std::size_t>(&device - target.devices.data()) + 1;
       d < target.devices.size(); ++d) {
    const Device& candidate = target.devices[d];
    if (runs_all(graph, partition.nodes, candidate)) return &candidate;
  }
  return nullptr;
}

bool move_small_partitions(Graph& graph, const PartitionPlan& plan, const Target& target,
                           std::int64_t min_nodes, double min_flops) {
  bool moved = false;
  for (const Partition& partition : plan.partitions) {
    const Device* device = target.find_device(partition.device);
    if (device == nullptr || device == &target.devices.back()) continue;
    const bool few_nodes = counted_nodes(graph, partition, *device) < min_nodes;
    if (!few_nodes && (min_flops <= 0 || counted_flops(graph, partition) >= min_flops)) continue;
    if (std::any_of(partition.nodes.begin(), partition.nodes.end(),
                    [&](NodeId id) { return DeviceReason::of(graph.node(id)).is_by_hand(); })) {
      continue;
    }
    const Device* next = next_device_for(graph, partition, target, *device);
    if (next == nullptr) continue;
    const DeviceReason reason(few_nodes ? DeviceReason::Kind::kMinNodes
                                        : DeviceReason::Kind::kMinFlops);
    for (const NodeId id : partition.nodes) {
      graph.node(id).device = next->name;
      reason.store(graph.node(id));
    }
    moved = true;
  }
  return moved;
}

}  // namespace

PartitionPlan partition_with_min_nodes(Graph& graph, const Target& target, std::int64_t min_nodes,
                                       const PartitionStrategy& strategy, double min_flops) {
  PartitionPlan plan = strategy(graph);
  while ((min_nodes > 1 || min_flops > 0) &&
         move_small_partitions(graph, plan, target, min_nodes, min_flops)) {
    plan = strategy(graph);
  }
  return plan;
}

}  // namespace npu

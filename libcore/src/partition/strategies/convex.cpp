// SPDX-License-Identifier: Apache-2.0
// The convex strategy: fewest partitions by dependence, not by list order.
//
// Nodes run on their device as soon as their operands are there (device_runs.cpp explains how, and
// when that is the minimum), and each run on one device is a partition. Fusion groups are first
// contracted to single nodes. O(devices * (nodes + edges)).
#include "npu/partition/strategies.hpp"
#include "partition/device_runs.hpp"
#include "partition/fused_graph.hpp"

namespace npu {

PartitionPlan partition_convex(const Graph& graph) {
  const FusedGraph fused = build_fused_graph(graph);
  return plan_of_runs(graph, fused, fewest_device_runs(fused), "convex");
}

}  // namespace npu

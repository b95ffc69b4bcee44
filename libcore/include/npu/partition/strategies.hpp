// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"

namespace npu {

/// Both take a verified graph in which every node has a device (npu-tag), and throw Error
/// kInvalidGraph if one has none.

/// Cuts the node list into maximal runs of one device. Before each run but the first stands one
/// transfer of every tensor that the run reads and an earlier run produced, also of those that are
/// on the device already: the plan of pytorch-ir's partitioner. O(nodes + edges).
PartitionPlan partition_contiguous(const Graph& graph);

/// Fewest partitions: nodes join by dependence, not by list order. Every tensor is transferred once
/// per device that needs it. Fusion groups stay whole; one that is not convex throws Error
/// kInvalidGraph. Exact for two devices, a heuristic for more (see convex.cpp). O(nodes + edges).
PartitionPlan partition_convex(const Graph& graph);

}  // namespace npu

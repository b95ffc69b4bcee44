// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

using PartitionStrategy = std::function<PartitionPlan(Graph&)>;

/// Partitions `graph`, moves the nodes of every partition with fewer than `min_nodes` nodes or
/// `min_flops` floating-point operations to the next device of the target that supports them, and
/// partitions again, until no such partition is left. Moved nodes get the device_reason "min nodes"
/// or "min flops". Partitions on the target's last device and nodes whose device was forced or kept
/// by hand stay. Nodes that cost nothing do not count.
PartitionPlan partition_with_min_nodes(Graph& graph, const Target& target, std::int64_t min_nodes,
                                       const PartitionStrategy& strategy, double min_flops = 0);

}  // namespace npu

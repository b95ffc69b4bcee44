// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/partition/partition_graph.hpp"
#include "partition/limits/min_nodes.hpp"

namespace npu {

/// Moves nodes between devices until `strategy` gives at most `max_partitions` partitions; 0 means
/// no limit. The cheapest moves by predicted time are made first. Moved nodes get the device_reason
/// "max partitions". Throws Error kInfeasible if even the fewest partitions found are too many.
PartitionPlan partition_with_max_partitions(Graph& graph, const Target& target,
                                            const CostModel& cost, std::int64_t max_partitions,
                                            const PartitionStrategy& strategy);

/// Cuts every partition whose working set exceeds `memory_limit` bytes into the fewest runs of its
/// nodes that do not; 0 means no limit. Throws Error kInfeasible for a node or a fusion group that
/// exceeds it by itself.
PartitionPlan split_by_memory(const Graph& graph, PartitionPlan plan, std::int64_t memory_limit);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_plan.hpp"

namespace npu {

struct PartitionOptions {
  std::string strategy = "convex";
  std::int64_t min_nodes = 1;  ///< smaller partitions go to the next device that runs them
};

/// One way to partition, as --strategy names it.
struct StrategyInfo {
  std::string_view name;
  std::string_view summary;
  PartitionPlan (*partition)(const Graph& graph);
};
std::span<const StrategyInfo> partition_strategies();

struct PartitionResult {
  PartitionPlan plan;
  PlanMetrics metrics;
  Target target;
};

/// Partitions a tagged document by the target in it and writes `npu.partition` and every node's
/// `partition`. Throws Error kInvalidGraph if it is not tagged, kUsage for an unknown strategy.
PartitionResult partition_graph(Graph& graph, const PartitionOptions& options);

}  // namespace npu

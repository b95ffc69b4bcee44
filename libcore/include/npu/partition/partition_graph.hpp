// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "npu/cost/cost_model.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/error.hpp"

namespace npu {

struct PartitionOptions {
  std::string strategy = "convex";
  std::int64_t min_nodes = 1;       ///< smaller partitions go to the next device that runs them
  double min_flops = 0;             ///< partitions with less work, too
  std::int64_t max_partitions = 0;  ///< 0: no limit
  std::int64_t memory_limit = 0;    ///< bytes of working set of a partition; 0: no limit
  std::int32_t parts = 2;           ///< of metis: how many
  double imbalance = 0.1;           ///< of metis: how far above the mean a part may be
  std::uint64_t seed = 0;           ///< of metis
  bool report = true;               ///< write PartitionResult::report
  bool what_if = false;    ///< also plan for what keeps nodes from the target's first device
  std::int64_t depth = 1;  ///< blocks: how many levels of blocks within blocks to take apart
  const CostModel* cost = &roofline_cost();  ///< where predicted times come from; never null
};

/// What a strategy makes.
struct StrategyOutcome {
  PartitionPlan plan;
  Json metrics = Json::object();  ///< numbers that follow the common ones in `metrics`; --assert
                                  ///< knows them, too
  Json details = Json::object();  ///< further members of `npu.partition`
  /// Adds to `details`, once the plan is settled; for what takes time to write.
  std::function<void(const Graph& graph, Json& details)> more_details = {};
  std::string report = {};  ///< tables that --report prints after the common ones
};

/// One way to partition, as --strategy names it. A strategy may move nodes: it then sets their
/// device and device_reason.
struct StrategyInfo {
  std::string_view name;
  std::string_view summary;
  StrategyOutcome (*partition)(Graph& graph, const Target& target, const PartitionOptions& options,
                               Diagnostics& diagnostics);
};
std::span<const StrategyInfo> partition_strategies();

/// The strategies that need more than tags; see the .cpp of each.
StrategyOutcome partition_min_cut(Graph& graph, const Target& target,
                                  const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_resources(Graph& graph, const Target& target,
                                    const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_blocks(Graph& graph, const Target& target,
                                 const PartitionOptions& options, Diagnostics& diagnostics);
StrategyOutcome partition_metis(Graph& graph, const Target& target, const PartitionOptions& options,
                                Diagnostics& diagnostics);

struct PartitionResult {
  PartitionPlan plan;
  PlanMetrics metrics;
  Json metrics_json;    ///< what `npu.partition.metrics` holds: the common ones and the strategy's
  std::string report;   ///< what --report prints
  std::string what_if;  ///< what --what-if prints
  Target target;
};

/// Partitions a tagged document by the target in it and writes `npu.partition` and every node's
/// `partition`. Throws Error kInvalidGraph if it is not tagged, kUsage for an unknown strategy,
/// kInfeasible if no plan keeps the limits.
PartitionResult partition_graph(Graph& graph, const PartitionOptions& options,
                                Diagnostics& diagnostics);

/// Where the times of a tagged document come from: the table in the file `profile`, or the target's
/// rates if that is empty. Throws Error as read_node_table and MeasuredCost do.
std::shared_ptr<const CostModel> partition_cost(const Graph& graph, const std::string& profile);

/// As above, for callers that have nobody to tell of warnings.
inline PartitionResult partition_graph(Graph& graph, const PartitionOptions& options) {
  Diagnostics dropped;
  return partition_graph(graph, options, dropped);
}

}  // namespace npu

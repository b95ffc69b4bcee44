// SPDX-License-Identifier: Apache-2.0
// The verb behind npu-partition, and the table of strategies.
#include "npu/partition/partition_graph.hpp"

#include <array>

#include "npu/partition/min_nodes.hpp"
#include "npu/partition/strategies.hpp"

namespace npu {
namespace {

// A strategy that looks at the tags alone.
template <PartitionPlan (*kPartition)(const Graph&)>
StrategyOutcome by_tags(Graph& graph, const Target&, const PartitionOptions&, Diagnostics&) {
  return {.plan = kPartition(graph)};
}

constexpr std::array kStrategies{
    StrategyInfo{"contiguous", "maximal runs of one device in list order",
                 &by_tags<partition_contiguous>},
    StrategyInfo{"convex", "fewest partitions by dependence", &by_tags<partition_convex>},
    StrategyInfo{"mincut", "least predicted time, also by moving nodes to other devices",
                 &partition_min_cut},
    StrategyInfo{"blocks", "the parts that a model is built of, by structure", &partition_blocks},
    StrategyInfo{"resources", "within on-chip memory, with the least traffic between partitions",
                 &partition_resources},
};

const StrategyInfo& strategy_named(std::string_view name) {
  std::string names;
  for (const StrategyInfo& strategy : kStrategies) {
    if (strategy.name == name) return strategy;
    names += (names.empty() ? "" : ", ") + std::string(strategy.name);
  }
  throw Error(ErrorCode::kUsage, "--strategy " + std::string(name) + ": expected one of " + names);
}

void check_devices(const Graph& graph, const Target& target) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!node.device || target.find_device(*node.device) != nullptr) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "node '" + node.name + "' has the device '" + *node.device + "', which target '" +
                    target.name + "' does not have; run npu-tag again",
                graph.location(NodeId{static_cast<std::int32_t>(n)}, "/device"));
  }
}

}  // namespace

std::span<const StrategyInfo> partition_strategies() { return kStrategies; }

PartitionResult partition_graph(Graph& graph, const PartitionOptions& options,
                                Diagnostics& diagnostics) {
  const StrategyInfo& strategy = strategy_named(options.strategy);
  PartitionResult result;
  result.target = graph_target(graph);
  check_devices(graph, result.target);
  StrategyOutcome outcome;
  result.plan =
      partition_with_min_nodes(graph, result.target, options.min_nodes, [&](Graph& tagged) {
        outcome = strategy.partition(tagged, result.target, options, diagnostics);
        return std::move(outcome.plan);
      });
  result.metrics = plan_metrics(graph, result.plan, result.target, *options.cost);
  result.metrics_json = metrics_to_json(result.metrics, result.target);
  result.metrics_json.update(outcome.metrics);
  result.report =
      format_plan_report(graph, result.plan, result.metrics_json, result.target, *options.cost) +
      outcome.report;
  write_partition_plan(graph, result.plan, result.metrics_json, outcome.details);
  return result;
}

}  // namespace npu

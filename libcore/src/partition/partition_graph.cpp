// SPDX-License-Identifier: Apache-2.0
// The verb behind npu-partition, and the table of strategies.
#include "npu/partition/partition_graph.hpp"

#include <array>

#include "npu/partition/min_nodes.hpp"
#include "npu/partition/strategies.hpp"

namespace npu {
namespace {

constexpr std::array<StrategyInfo, 2> kStrategies{{
    {"contiguous", "maximal runs of one device in list order", &partition_contiguous},
    {"convex", "fewest partitions by dependence", &partition_convex},
}};

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

PartitionResult partition_graph(Graph& graph, const PartitionOptions& options) {
  const StrategyInfo& strategy = strategy_named(options.strategy);
  PartitionResult result;
  result.target = graph_target(graph);
  check_devices(graph, result.target);
  result.plan =
      partition_with_min_nodes(graph, result.target, options.min_nodes, strategy.partition);
  result.metrics = plan_metrics(graph, result.plan, result.target);
  write_partition_plan(graph, result.plan, metrics_to_json(result.metrics, result.target));
  return result;
}

}  // namespace npu

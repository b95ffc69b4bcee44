// SPDX-License-Identifier: Apache-2.0
// The table of strategies: a new one needs a row here, an enumerator and a file beside this one.
#include <algorithm>
#include <array>

#include "npu/partition/strategies.hpp"

namespace npu {
namespace {

// Adapts a strategy that only follows the tags.
template <PartitionPlan (*kPartition)(const Graph&)>
StrategyOutcome by_tags(Graph& graph, const Target&, const PartitionOptions&, Diagnostics&) {
  return {.plan = kPartition(graph)};
}

constexpr std::array kStrategies{
    StrategyInfo{Strategy::kContiguous, "contiguous", "maximal runs of one device in list order",
                 &by_tags<partition_contiguous>},
    StrategyInfo{Strategy::kConvex, "convex", "the fewest partitions that the data flow allows",
                 &by_tags<partition_convex>},
    StrategyInfo{Strategy::kMinCut, "mincut",
                 "least predicted time; moves nodes to other devices where that pays",
                 &partition_min_cut},
    StrategyInfo{Strategy::kBlocks, "blocks",
                 "the building blocks of the model, found by its structure", &partition_blocks},
    StrategyInfo{Strategy::kResources, "resources",
                 "partitions that fit into on-chip memory, with the least traffic between them",
                 &partition_resources},
    StrategyInfo{Strategy::kMetis, "metis",
                 "as many parts as --parts says, of about equal work, with few edges between them",
                 &partition_metis},
};

}  // namespace

std::span<const StrategyInfo> partition_strategies() { return kStrategies; }

std::optional<Strategy> find_strategy(std::string_view name) {
  const auto found = std::find_if(kStrategies.begin(), kStrategies.end(),
                                  [&](const StrategyInfo& info) { return info.name == name; });
  if (found == kStrategies.end()) return std::nullopt;
  return found->strategy;
}

}  // namespace npu

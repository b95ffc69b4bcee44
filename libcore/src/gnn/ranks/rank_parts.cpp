// SPDX-License-Identifier: Apache-2.0
// What a rank takes of a plan for several: its own clusters, and checks that its parts and sums are
// those of the graph and the model. O(size of the plan).
#include "gnn/ranks/rank_parts.hpp"

#include <algorithm>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {

// If they do not, the graph is another one.
void check_rank_parts(const GnnPlan& plan, std::int32_t rank, const std::vector<Subgraph>& parts,
                      const std::string& file) {
  const std::vector<std::int32_t>& own = plan.choice.ranks->ranks[index_of(rank)].parts;
  for (const PlanSubgraph& stated : plan.choice.subgraphs) {
    const SubgraphSize& size = stated.size;
    if (std::find(own.begin(), own.end(), size.id) == own.end()) continue;
    const Subgraph& part = parts[index_of(size.id)];
    const auto edges = static_cast<std::int64_t>(part.sources.size());
    if (size.n - size.halo == part.owned && size.m == edges) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "part " + std::to_string(size.id) + " has " + std::to_string(part.owned) +
                    " nodes and " + std::to_string(edges) + " edges in the graph, in the plan " +
                    std::to_string(size.n - size.halo) + " and " + std::to_string(size.m),
                {.file = file});
  }
}

EdgeSums checked_edge_sums(const GnnPlan& plan, const StagedModel& model, const std::string& file) {
  EdgeSums sums = edge_sums(model);
  if (plan.choice.ranks->sums && !sums.refusal.empty()) {
    throw Error(ErrorCode::kInvalidGraph, "only features may cross: " + sums.refusal,
                {.file = file, .pointer = "/ranks/exchange"});
  }
  return sums;
}

GnnPlan plan_of_rank(const GnnPlan& plan, std::int32_t rank) {
  GnnPlan own = plan;
  const std::vector<std::int32_t>& parts = plan.choice.ranks->ranks[index_of(rank)].parts;
  for (PlanCluster& cluster : own.choice.clusters) {
    std::erase_if(cluster.subgraphs, [&](std::int64_t id) {
      return std::find(parts.begin(), parts.end(), id) == parts.end();
    });
  }
  std::erase_if(own.choice.clusters,
                [](const PlanCluster& cluster) { return cluster.subgraphs.empty(); });
  return own;
}

}  // namespace npu::gnn

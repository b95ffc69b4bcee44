// SPDX-License-Identifier: Apache-2.0
// What the ranks of a plan take to compute: the schedule of each rank's parts by themselves, as it
// is simulated.
#include "gnn/plan/rank_makespan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

double rounded_ms(double ms) { return std::round(ms * 1e6) / 1e6; }

SimItem sim_item_of(const PlanCandidate& candidate, std::int32_t cluster) {
  SimItem item;
  item.cluster = cluster;
  const std::vector<StageSegment>& segments = candidate.device_plan.segments;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    auto& row = item.segments.emplace_back();
    for (std::size_t i = 0; i < segments[s].shares.size(); ++i) {
      row.push_back({segments[s].shares[i].device, candidate.cost.share_ms[s][i]});
    }
  }
  return item;
}

}  // namespace

void predict_compute(const PlanInput& input, const PartsPlan& parts, RankPlan& plan) {
  const std::map<std::int64_t, std::size_t> rank_of = plan.ranks_of_parts();
  const std::vector<double> switch_ms = input.profile.switch_ms();
  for (PlannedRank& rank : plan.ranks) rank.compute_ms.clear();
  for (std::size_t l = 0; l < parts.layers.size(); ++l) {
    const LayerPlan& layer = parts.layers[l];
    const DevicePlanCosts costs(input.profile, input.layers[l], input.settings);
    std::vector<std::int32_t> resource_of;
    for (std::size_t d = 0; d < input.profile.devices.size(); ++d) {
      resource_of.push_back(costs.resource_of(static_cast<std::int32_t>(d)));
    }
    std::vector<std::vector<SimItem>> items(plan.ranks.size());
    std::map<std::string, std::int32_t> clusters;
    for (const Cluster& cluster : layer.clusters) {
      const auto next = static_cast<std::int32_t>(clusters.size());
      const std::int32_t id = clusters.emplace(cluster.key, next).first->second;
      for (const std::int32_t i : cluster.members) {
        const std::size_t rank = rank_of.at(parts.sizes[index_of(i)].id);
        items[rank].push_back(sim_item_of(layer.chosen[index_of(i)], id));
      }
    }
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      const SimResult schedule = simulate(items[r], resource_of, switch_ms);
      plan.ranks[r].compute_ms.push_back(rounded_ms(schedule.makespan_ms));
    }
  }
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// What the ranks of a plan take to compute: the schedule of each rank's parts by themselves. The
// planner simulates it, the check replays it by code of its own (replay_clusters.cpp).
#include "gnn/plan/rank_makespan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

double rounded_ms(double ms) { return std::round(ms * 1e6) / 1e6; }

std::map<std::int64_t, std::size_t> ranks_of_parts(const RankPlan& plan) {
  std::map<std::int64_t, std::size_t> rank_of;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    for (const std::int32_t part : plan.ranks[r].parts) rank_of[part] = r;
  }
  return rank_of;
}

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

double RankPlan::makespan_ms() const noexcept {
  double sum = 0;
  for (const double ms : exchange_ms) sum += ms;
  for (std::size_t l = 0; l < row_bytes.size(); ++l) {
    double longest = 0;
    for (const RankShare& rank : ranks) {
      if (l < rank.compute_ms.size()) longest = std::max(longest, rank.compute_ms[l]);
    }
    sum += longest;
  }
  return rounded_ms(sum);
}

void predict_compute(const PlanInput& input, const PartsPlan& parts, RankPlan& plan) {
  const std::map<std::int64_t, std::size_t> rank_of = ranks_of_parts(plan);
  const std::vector<double> switch_ms = input.profile.switch_ms();
  for (RankShare& rank : plan.ranks) rank.compute_ms.clear();
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

void verify_compute(const RankPlan& plan, std::size_t layer, const std::vector<ReplayTask>& tasks,
                    const std::vector<std::int64_t>& part_at, const std::vector<double>& switch_ms,
                    const RankComplaint& complain) {
  const std::map<std::int64_t, std::size_t> rank_of = ranks_of_parts(plan);
  std::vector<std::vector<ReplayTask>> of_rank(plan.ranks.size());
  for (const ReplayTask& task : tasks) {
    const auto rank = rank_of.find(part_at[task.position]);
    if (rank != rank_of.end()) of_rank[rank->second].push_back(task);
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const std::vector<double>& stated = plan.ranks[r].compute_ms;
    const double counted = replay_clusters(of_rank[r], switch_ms).makespan_ms;
    if (layer < stated.size() && std::abs(stated[layer] - counted) <= 1e-5 + 1e-6 * counted) {
      continue;
    }
    complain("/ranks/" + std::to_string(r) + "/compute_ms/" + std::to_string(layer),
             "recomputed as " + std::to_string(counted) + " ms");
  }
}

}  // namespace npu::gnn

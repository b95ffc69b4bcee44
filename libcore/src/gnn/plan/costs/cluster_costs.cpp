// SPDX-License-Identifier: Apache-2.0
// The bound of clustered schedules: see the header. O(candidates * log clusters).
#include "gnn/plan/costs/cluster_costs.hpp"

#include <algorithm>
#include <limits>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// Their keys are texts, which take longer than all else.
constexpr std::size_t kMostCandidates = 200'000;

}  // namespace

ClusterCosts::ClusterCosts(const std::vector<double>& switch_ms,
                           const std::vector<std::int32_t>& resource_of)
    : switch_ms_(switch_ms),
      resource_of_(resource_of),
      device_is_used_(resource_of.size(), false) {}

bool ClusterCosts::is_affordable(const std::vector<std::vector<PlanCandidate>>& candidates) {
  std::size_t count = 0;
  for (const auto& list : candidates) count += list.size();
  return count <= kMostCandidates;
}

void ClusterCosts::add(const std::string& key, const PlanCandidate& candidate) {
  const auto [found, is_new] = index_.emplace(key, clusters_.size());
  if (is_new) {
    Group& group = clusters_.emplace_back();
    for (const StageSegment& segment : candidate.device_plan.segments) {
      for (const GroupShare& share : segment.shares) {
        group.devices.push_back(index_of(share.device));
        device_is_used_[group.devices.back()] = true;
      }
    }
  }
  Group& group = clusters_[found->second];
  if (group.last_item != items_.size()) ++group.items;
  group.last_item = items_.size();
  items_.back().emplace_back(&candidate.cost.resource_ms, found->second);
}

double ClusterCosts::bound_ms(const std::vector<double>& multipliers) const {
  if (items_.empty()) return 0;
  const auto weighted_switch = [&](std::size_t device) {
    return multipliers[index_of(resource_of_[device])] * switch_ms_[device];
  };
  std::vector<double> shares;  // by cluster
  for (const Group& group : clusters_) {
    double cost = 0;
    for (const std::size_t device : group.devices) cost += weighted_switch(device);
    shares.push_back(cost / static_cast<double>(group.items));
  }
  double sum = 0;
  for (const auto& item : items_) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [loads, cluster] : item) {
      double load = shares[cluster];
      for (std::size_t r = 0; r < multipliers.size(); ++r) load += multipliers[r] * (*loads)[r];
      least = std::min(least, load);
    }
    sum += least;
  }
  for (std::size_t d = 0; d < device_is_used_.size(); ++d) {
    if (device_is_used_[d]) sum -= weighted_switch(d);
  }
  return std::max(0.0, sum);
}

double ClusterCosts::best_bound_ms(const std::vector<double>& multipliers) const {
  double best = bound_ms(multipliers);
  for (std::size_t r = 0; r < multipliers.size(); ++r) {
    std::vector<double> alone(multipliers.size(), 0);
    alone[r] = 1;
    best = std::max(best, bound_ms(alone));
  }
  return best;
}

}  // namespace npu::gnn

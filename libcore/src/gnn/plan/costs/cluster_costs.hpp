// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gnn/plan/costs/device_plan_costs.hpp"

namespace npu::gnn {

/// A lower bound of the makespan of a layer that counts the switches which no choice avoids.
///
/// A device that works for c clusters switches at least c - 1 times. Under weights of the resources
/// that sum to 1, a cluster therefore costs what a switch costs each of its devices, once, and of
/// these costs one for each device comes back. Whoever uses a cluster pays an equal share of its
/// cost, as if all did that can: fewer pay less than it costs, so the sum over the subgraphs of the
/// cheapest candidate with its share is no more than any choice takes.
class ClusterCosts {
 public:
  /// Both by device.
  ClusterCosts(const std::vector<double>& switch_ms, const std::vector<std::int32_t>& resource_of);

  /// Whether there are few enough candidates; with more there is no such bound.
  static bool is_affordable(const std::vector<std::vector<PlanCandidate>>& candidates);

  /// What follows are candidates of another subgraph.
  void add_item() { items_.emplace_back(); }
  /// A candidate of the last subgraph, in the cluster of this key. Refers to it.
  void add(const std::string& key, const PlanCandidate& candidate);

  /// The bound under weights of the resources; 0 without items. O(candidates * resources).
  double bound_ms(const std::vector<double>& multipliers) const;
  /// The best one under these weights and those that have one resource alone, whose switches others
  /// may not outweigh.
  double best_bound_ms(const std::vector<double>& multipliers) const;

 private:
  struct Group {
    std::vector<std::size_t> devices;
    std::int64_t items = 0;     // that can use it
    std::size_t last_item = 0;  // the last of them, counted from 1
  };

  const std::vector<double>& switch_ms_;
  const std::vector<std::int32_t>& resource_of_;
  std::map<std::string, std::size_t> index_;
  std::vector<Group> clusters_;
  std::vector<bool> device_is_used_;
  // Loads by resource, and the cluster.
  std::vector<std::vector<std::pair<const std::vector<double>*, std::size_t>>> items_;
};

}  // namespace npu::gnn

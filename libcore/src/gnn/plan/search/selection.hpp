// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace npu::gnn {

/// One way to run one subgraph: its load on each resource.
struct LoadCandidate {
  std::vector<double> loads;  ///< by resource, in milliseconds, each at least 0
  double latency_ms = 0;      ///< of the subgraph alone; breaks ties
};

/// Choose one candidate for each item so that the largest total load of a resource is small.
struct SelectionProblem {
  std::int32_t resource_count = 1;
  std::vector<std::vector<LoadCandidate>> items;  ///< each has a candidate
};

struct SelectionLimits {
  /// Candidates and partial choices that the exhaustive search may visit: a limit that, unlike a
  /// clock, keeps the result reproducible.
  std::int64_t search_work = 150'000'000;
  std::int64_t local_work = 5'000'000;
  std::int32_t largest_search = 64;  ///< items; more get local search alone
};

struct Selection {
  std::vector<std::int32_t> choice;  ///< index into the candidates of each item
  std::vector<double> loads;         ///< by resource
  double max_load = 0;
  double bound = 0;                 ///< no choice has a smaller largest load
  double dual_bound = 0;            ///< the part of it that `multipliers` prove
  std::vector<double> multipliers;  ///< of the resources, at least 0, sum 1
  std::int64_t search_work = 0;
  bool search_finished = false;  ///< the exhaustive search proved that the choice is optimal
};

/// Greedy: starts from the fastest candidate of each item and, as long as that helps, makes the
/// single switch that lowers the largest load most. The bound is the Lagrangian one.
Selection select_greedy(const SelectionProblem& problem);

/// Lagrangian bound, local search, and an exhaustive search for few items.
Selection select_optimal(const SelectionProblem& problem, const SelectionLimits& limits = {});

/// The minimum over candidates of the weighted load, summed over the items: a lower bound of the
/// largest load for any weights that are not negative and sum to 1.
double lagrangian_bound(const SelectionProblem& problem, const std::vector<double>& multipliers);

}  // namespace npu::gnn

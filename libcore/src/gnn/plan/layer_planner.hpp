// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gnn/plan/plan_input.hpp"
#include "gnn/plan/search/schedule_search.hpp"
#include "gnn/plan/search/selection.hpp"
#include "gnn/plan/search/simulate.hpp"

namespace npu::gnn {

/// A cluster: subgraphs, one after the other in the order of priority, that run under the same
/// plan.
struct Cluster {
  std::string key;
  std::vector<std::int32_t> members;  // indices into the subgraphs, in order of execution
};

struct LayerPlan {
  std::vector<PlanCandidate> chosen;  // by subgraph
  std::vector<std::string> keys;      // by subgraph: PlannedStages::key
  std::vector<Cluster> clusters;      // in order
  Selection selection;
  SimResult simulation;
  std::vector<std::int32_t> order;  // subgraph by position in the simulation
  double lower_bound_ms = 0;
  double least_load_ms = 0;  // largest load of the selection, before the schedule was shortened
  double ungrouped_ms = 0;   // the makespan if every subgraph was a cluster of its own
  std::set<std::string> programs;
  double compile_ms = 0;
};

/// Plans one layer for one partition. Refers to what it is made of.
class LayerPlanner {
 public:
  LayerPlanner(const DevicePlanCosts& costs, const StageTable& profile,
               const std::vector<SubgraphSize>& sizes, const MakePlanOptions& options,
               PhaseTimes& times);

  /// Chooses a plan for each subgraph; false with the reason if one has no legal plan.
  bool select(const std::vector<DevicePlan>& structures, LayerPlan& plan, std::string& reason);

  /// Orders the subgraphs, and changes the choice where so many simulated tasks find a shorter
  /// schedule.
  void schedule(LayerPlan& plan, std::int64_t work) const;

  bool find_candidates(const std::vector<DevicePlan>& structures, std::string& reason);

  /// Time of everything on one device; nothing if it cannot run it.
  std::optional<double> single_device_ms(std::int32_t device) const;

 private:
  void keep_best(std::vector<PlanCandidate>& list) const;

  void select_loads(LayerPlan& plan) const;

  std::string key_of(std::size_t subgraph, std::int32_t choice) const;

  SimItem item_of(std::size_t subgraph, std::int32_t choice, std::int32_t cluster) const;

  // Johnson's rule for pipelines (first segment shorter than the last: ascending first segment,
  // before the others by descending last segment); single segments longest first.
  void order_members(Cluster& cluster, const std::vector<std::int32_t>& choice) const;

  std::vector<Cluster> clusters_of(const std::vector<std::int32_t>& choice) const;

  // Whole clusters one after the other, in several orders.
  std::vector<std::vector<std::int32_t>> clustered_orders(
      const std::vector<std::int32_t>& choice) const;

  // What each subgraph may run under while the schedule is shortened: the plans that cost least of
  // the scarce devices, and the chosen one.
  struct Options {
    ScheduleProblem problem;
    std::vector<std::vector<std::int32_t>> candidate;  // by subgraph and option
  };

  Options options_for(const LayerPlan& plan, const std::vector<std::int32_t>& choice,
                      std::size_t count) const;

  // The schedule of a choice: the shortest of some orders, and, where the choice may change, of
  // what a search finds from there.
  void arrange(LayerPlan& plan, const std::vector<std::int32_t>& choice, std::int64_t work) const;

  // What the clusters of a choice add to the bound of the load under its multipliers.
  double clustered_bound_ms(const std::vector<double>& multipliers) const;

  // A schedule in which small clusters have gone over to the plans of others, as far as that makes
  // it shorter.
  Schedule grouped(const Options& options, Schedule schedule) const;

  SimResult simulate_clusters(const std::vector<Cluster>& clusters,
                              const std::vector<std::int32_t>& choice) const;

  // Never slower than any device alone, by the same model. Devices that share all they have cannot
  // work side by side: for what is left to gain a plan over several has to beat the table's noise.
  void compare_single_devices(LayerPlan& plan) const;

  void finish(LayerPlan& plan) const;

  const DevicePlanCosts& costs_;
  const std::vector<SubgraphSize>& sizes_;
  const MakePlanOptions& options_;
  std::vector<double> switch_ms_;  // by device; empty: switching costs nothing
  PhaseTimes& times_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> resource_of_;
  std::vector<std::vector<PlanCandidate>> candidates_;
};

}  // namespace npu::gnn

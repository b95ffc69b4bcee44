// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csr/metis_partitioner.hpp"
#include "gnn/exchange/rank_plan.hpp"
#include "gnn/plan/find_plan.hpp"
#include "gnn/plan/layer_planner.hpp"

namespace npu::gnn {

/// What was planned for one number of parts.
struct PartsPlan {
  std::int32_t k = 1;
  GraphPartition partition;
  std::int32_t levels = 0;          ///< PartitionSweep::levels
  std::int32_t coarsest_nodes = 0;  ///< PartitionSweep::coarsest_nodes
  std::vector<SubgraphSize> sizes;
  bool nested = false;            ///< the parts are those of nested_parts
  std::vector<PartCover> covers;  ///< of parts, if sums may cross between devices
  std::int64_t pad = 1000;
  std::vector<LayerPlan> layers;
  std::string infeasible;
  std::string passed_over;  ///< why it is not taken, however short
  double makespan_ms = 0;
  double lower_bound_ms = 0;
  std::optional<RankPlan> ranks;            ///< if there are any
  std::map<std::string, double> single_ms;  ///< whole graph on one device
  bool is_eligible() const noexcept { return infeasible.empty() && passed_over.empty(); }
  /// Of all ranks, if there are any.
  double whole_ms() const noexcept { return ranks ? ranks->makespan_ms() : makespan_ms; }
};

/// Where the plan's partition is kept; empty if nothing says where.
std::string partition_path(const MakePlanOptions& options);

/// The plan with the smallest makespan, that of all ranks if there are any, of which at least one
/// is feasible, and its schedule. The others appear in its comparison.
PlanResult assemble_plan(const PlanInput& input, const MakePlanOptions& options,
                         const std::vector<PartsPlan>& plans);

}  // namespace npu::gnn

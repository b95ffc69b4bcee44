// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layer_planner.hpp"
#include "npu/plan/plan_gnn.hpp"

namespace npu {

/// What was planned for one number of parts.
struct KPlan {
  std::int32_t k = 1;
  GraphPartition partition;
  std::vector<SubgraphSize> sizes;
  std::int64_t pad = 1000;
  std::vector<LayerPlan> layers;
  std::string infeasible;
  double makespan_ms = 0;
  double lower_bound_ms = 0;
  std::map<std::string, double> single_ms;  // whole graph on one device
};

/// Where the document's partition is kept; empty if nothing says where.
std::string partition_path(const PlanGnnOptions& options);

/// The document of the plan with the smallest makespan, of which at least one is feasible, and its
/// schedule. The others appear in its comparison.
GnnPlan write_plan(const PlanInput& input, const PlanGnnOptions& options,
                   std::vector<KPlan>& plans);

}  // namespace npu

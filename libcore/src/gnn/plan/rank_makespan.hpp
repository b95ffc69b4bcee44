// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnn/plan/assemble_plan.hpp"
#include "gnn/plan/plan_input.hpp"
#include "gnn/plan/rank_plan.hpp"
#include "gnn/plan/replay_clusters.hpp"
#include "gnn/plan/verify_ranks.hpp"

namespace npu::gnn {

/// Sets what each rank is predicted to compute in each layer: the schedule of its parts alone, in
/// the order and under the device plans of `parts`, on devices as those of one machine. O(ranks *
/// tasks).
void predict_compute(const PlanInput& input, const PartsPlan& parts, RankPlan& plan);

/// Complains if the plan says something else of a layer, from 0, than a replay of the tasks of each
/// rank. `tasks` are those of the layer; `part_at` by ReplayTask::position. O(tasks^2).
void verify_compute(const RankPlan& plan, std::size_t layer, const std::vector<ReplayTask>& tasks,
                    const std::vector<std::int64_t>& part_at, const std::vector<double>& switch_ms,
                    const RankComplaint& complain);

}  // namespace npu::gnn

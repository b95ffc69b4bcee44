// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn/exchange/rank_plan.hpp"
#include "gnn/plan/assemble_plan.hpp"
#include "gnn/plan/plan_input.hpp"

namespace npu::gnn {

/// Sets what each rank is predicted to compute in each layer: the schedule of its parts alone, in
/// the order and under the device plans of `parts`, on devices as those of one machine. O(ranks *
/// tasks).
void predict_compute(const PlanInput& input, const PartsPlan& parts, RankPlan& plan);

}  // namespace npu::gnn

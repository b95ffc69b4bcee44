// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn/plan/find_plan.hpp"
#include "gnn/plan/plan_input.hpp"
#include "npu/support/error.hpp"

namespace npu::gnn {

/// Reads the input, plans, and writes the partition file, as npu-plan does: alone, or as one of
/// several processes that a launcher has started.
PlanResult make_plan(const MakePlanOptions& options, Diagnostics& diagnostics);

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/plan/document/plan_document.hpp"
#include "gnn/plan/plan_input.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// One task of the simulated schedule, for drawings.
struct ScheduledTask {
  std::int32_t layer = 1;
  std::int32_t subgraph = 0;
  std::string device_plan;  ///< PlannedStages::key
  std::string block;        ///< "[1-4]"
  std::string device;
  double start_ms = 0;
  double end_ms = 0;
};

struct PlanResult {
  GnnPlan plan;
  std::vector<std::int32_t> part_of;  ///< by node; empty without a graph
  std::vector<ScheduledTask> schedule;
  PhaseTimes times;    ///< not in the document, which is reproducible
  bool speaks = true;  ///< false: another process of the launcher has the plan or the error
};

/// Finds the plan. Throws Error kInfeasible if no k has one.
PlanResult find_plan(const PlanInput& input, const MakePlanOptions& options,
                     Diagnostics& diagnostics);

}  // namespace npu::gnn

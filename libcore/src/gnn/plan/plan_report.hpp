// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "gnn/plan/document/plan_document.hpp"
#include "gnn/plan/find_plan.hpp"

namespace npu::gnn {

/// Every number at the top level of the plan, the loads as "load_ms_DEVICE", and the number of
/// programs as "compiles".
std::map<std::string, double> plan_metrics(const GnnPlan& plan);
/// Tables for people.
std::string format_plan_report(const GnnPlan& plan);
/// The simulated schedule as a drawing.
std::string gantt_svg(const PlanResult& result);
/// The simulated schedule as Chrome trace JSON.
std::string schedule_trace(const PlanResult& result);

}  // namespace npu::gnn

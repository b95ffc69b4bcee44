// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "gnn/run_plan.hpp"
#include "npu/runtime/run_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-run that only plans of npu-plan use; RunModelOptions has those that they
/// share with documents.
struct PlanRunOptions {
  gnn::RunPlanOptions run;
  std::vector<std::string> devices;  ///< NAME=BACKEND

  /// Whether the input is a plan.
  bool wanted() const { return !run.features.empty() || run.simulate; }
};

/// --device NAME=BACKEND, repeatable, for plans.
void add_plan_device_option(Tool& tool, std::vector<std::string>& devices);
/// Its values. Throws Error kUsage for one that is not NAME=BACKEND.
std::vector<gnn::DeviceBackend> plan_devices(const std::vector<std::string>& texts);

/// --features, --device, --simulate and --units.
void add_plan_run_options(Tool& tool, PlanRunOptions& options);

/// Runs the plan that is the tool's input, and writes its report.
ExitStatus run_plan(Tool& tool, const RunModelOptions& shared, PlanRunOptions options);

}  // namespace npu::cli

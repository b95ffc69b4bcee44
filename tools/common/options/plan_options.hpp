// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "gnn/plan/plan_input.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-plan: the library's, and texts that become settings of devices.
struct PlanOptions {
  gnn::MakePlanOptions plan;
  std::vector<std::string> excludes;   ///< DEVICE=STAGE[,STAGE...]
  std::vector<std::string> memory;     ///< DEVICE=BYTES
  std::vector<std::string> resources;  ///< DEVICE=NAME

  /// Turns the texts into settings of `plan`; call it after parsing. Throws Error kUsage.
  void finish();

 private:
  void check_complete() const;
};

/// Adds [GRAPH], -o and everything that planning depends on.
void add_plan_options(Tool& tool, PlanOptions& options);

}  // namespace npu::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/plan/plan_gnn.hpp"
#include "tool.hpp"

namespace npu::cli {

/// [GRAPH], -o and everything that planning depends on.
void add_plan_options(Tool& tool, PlanGnnOptions& options);

}  // namespace npu::cli

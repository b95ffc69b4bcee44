// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn/run/gnn_report.hpp"
#include "gnn/run/run_options.hpp"
#include "npu/support/error.hpp"

namespace npu::gnn {

/// Executes a plan: one worker per device, clusters in order of priority, a barrier between layers.
/// A task whose device fails is run again on another device that can run its stages. Throws Error
/// kUnsupported if there is none. A plan with ranks is run together with the other processes that
/// the launcher has started; `output` then has the rows of this one.
RunPlanResult run_plan(const RunPlanOptions& options, Diagnostics& diagnostics);

}  // namespace npu::gnn

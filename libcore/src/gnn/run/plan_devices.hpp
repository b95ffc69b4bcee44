// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gnn/block/gnn_programs.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "gnn/run/run_options.hpp"
#include "npu/compile/cache.hpp"

namespace npu::gnn {

/// The devices of a plan, in its order; those that it gives something to do are open. Throws Error
/// kUnsupported if such a device has no backend, in the target or among the options.
std::vector<GnnDevice> open_devices(const GnnPlan& plan, const RunPlanOptions& options,
                                    CompileCache& cache, ProgramCounts& counts);

}  // namespace npu::gnn

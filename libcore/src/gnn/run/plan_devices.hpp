// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gnn/plan/plan_document.hpp"
#include "gnn/run/gnn_programs.hpp"
#include "gnn/run/gnn_runner.hpp"
#include "npu/compile/cache.hpp"

namespace npu::gnn {

/// The devices of a plan, in its order; those that it gives something to do are open. Throws Error
/// kUnsupported if such a device has no backend, in the target or among the options.
std::vector<GnnDevice> open_devices(const Plan& plan, const RunOptions& options,
                                    CompileCache& cache, ProgramCounts& counts);

}  // namespace npu::gnn

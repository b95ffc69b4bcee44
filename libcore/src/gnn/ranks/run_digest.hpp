// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gnn/plan/document/plan_document.hpp"
#include "gnn/run/run_options.hpp"

namespace npu::gnn {

/// What the processes of a run have to have alike so that their rows fit together and have the bits
/// of a run in one process: the plan, with what crosses, and the options that change bits. O(size
/// of the plan).
std::int64_t run_digest(const GnnPlan& plan, const RunPlanOptions& options);

}  // namespace npu::gnn

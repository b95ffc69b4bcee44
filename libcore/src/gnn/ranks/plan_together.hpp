// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "gnn/plan/plan_input.hpp"
#include "npu/support/error.hpp"

namespace npu::gnn {

/// Whether a launcher has started several processes for a plan, or the options ask for what takes
/// MPI with one as well.
bool plans_together(const MakePlanOptions& options);

/// As read_plan_input, in every process that the launcher has started: they cut the graph together,
/// and the first one gets the input with the parts that were found, PlanInput::found. The others
/// have done their share then and get null. If PT-Scotch cannot cut the graph and nobody has named
/// it, or if there is no transport, the first one gets the input without parts, and a note says
/// why. Throws FailedElsewhere in all processes but the one that says what went wrong; a process
/// that cannot join the others says so itself.
std::unique_ptr<PlanInput> read_together(const MakePlanOptions& options, Diagnostics& diagnostics);

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "runtime/executor/device_states.hpp"
#include "runtime/session/saved_states.hpp"
#include "runtime/timed_runs.hpp"

namespace npu {

/// Throws Error kUsage for options that do not go with a model that has states, or has none.
void check_step_options(const RunModelOptions& options, bool has_states);

/// The states before the first step: of --state-in, or none, which means zero.
SavedStates states_before(const RunModelOptions& options);

/// Makes the steps that the options ask for, one after the other. `states` are the executor's, and
/// have their first values; the outputs are those that are no states, stacked with --steps. The
/// times are those of all steps but the first. Throws Error kInfeasible if the deadline is over
/// before the last one.
Runs run_steps(Executor& executor, DeviceStates& states, const Graph& graph,
               const std::vector<Tensor>& inputs, const RunModelOptions& options);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The steps of npu-run. A step that fails ends them: what it leaves of the states is not known, so
// that nothing is made again.
#include "runtime/session/step_runs.hpp"

#include <chrono>
#include <utility>

#include "npu/support/error.hpp"
#include "runtime/session/step_tensors.hpp"
#include "support/elapsed.hpp"

namespace npu {

void check_step_options(const RunModelOptions& options, bool has_states) {
  const auto refuse = [](const char* option, const char* why) {
    throw Error(ErrorCode::kUsage, std::string(option) + ": " + why);
  };
  if (!has_states) {
    const char* kWhy = "the model has no states (npu.states of npu-ir(5))";
    if (options.steps) refuse("--steps", kWhy);
    if (!options.state_in.empty()) refuse("--state-in", kWhy);
    if (!options.state_out.empty()) refuse("--state-out", kWhy);
    return;
  }
  if (options.bench != 0) refuse("--bench", "the model has states; time its steps with --steps N");
  if (options.executor.in_flight > 1) {
    refuse("--in-flight", "the model has states, so a step waits for the one before it");
  }
  if (options.groups.wanted()) {
    refuse("--verify",
           "results within a model that has states are not compared; leave out "
           "--each, --isolate and --bisect");
  }
}

SavedStates states_before(const RunModelOptions& options) {
  return options.state_in.empty() ? SavedStates() : read_saved_states(options.state_in);
}

Runs run_steps(Executor& executor, DeviceStates& states, const Graph& graph,
               const std::vector<Tensor>& inputs, const RunModelOptions& options) {
  const SavedStates before = states_before(options);
  if (!options.state_in.empty()) {
    try {
      states.set_values(before.values);
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), {.file = options.state_in});
    }
  }
  const std::int64_t count = options.steps.value_or(1);
  OutputStack stack(count);
  Runs runs;
  const auto start = Clock::now();
  for (std::int64_t step = 0; step < count; ++step) {
    if (options.deadline && Clock::now() >= *options.deadline) {
      throw Error(ErrorCode::kInfeasible, "the deadline is over before step " +
                                              std::to_string(step) +
                                              "; allow more with --deadline");
    }
    runs.outputs =
        without_states(graph, executor.run(inputs_of_step(graph, inputs, step), &runs.last,
                                           !options.trace.empty() && step + 1 == count));
    if (options.steps) stack.add(runs.outputs);
    if (step == 0) {
      runs.first = runs.last;
    } else {
      runs.times.push_back(runs.last.total_us / 1000);
    }
  }
  runs.seconds = milliseconds_since(start) / 1000;
  if (options.steps) runs.outputs = stack.take();
  if (!options.state_out.empty()) {
    write_saved_states(options.state_out, {states.values(), before.position + count});
  }
  return runs;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Runs a plan of npu-plan: loads it (plan_loader.cpp), opens its devices, runs it once and then as
// often as asked for (plan_executor.cpp), compares, and reports. The cost is that of these steps.
#include "npu/gnn/gnn_runner.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "gnn/run/plan_devices.hpp"
#include "gnn/run/plan_executor.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/rank_run.hpp"
#include "npu/gnn/features.hpp"
#include "npu/gnn/verify_plan.hpp"
#include "npu/support/elapsed.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/statistics.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

RunResult simulated(const RunOptions& options, Diagnostics& diagnostics) {
  RunResult result;
  const Plan plan = read_runnable_plan(options.plan);
  result.report.k = plan.k;
  result.report.predicted_ms = plan.makespan_ms;
  result.report.simulated_ms = verify_plan(options.plan, diagnostics).makespan_ms;
  return result;
}

// Tells how far all runs are, task by task.
class RunProgress {
 public:
  explicit RunProgress(const RunOptions& options) : options_(options) {}

  void set_tasks(const TaskGraph& graph) {
    for (const auto& layer : graph.layers) tasks_ += layer.size();
  }
  void start(std::int32_t run) { run_ = run; }

  bool task_ended(std::int32_t layer) {
    ++done_;
    if (!options_.progress) return true;
    const auto total = static_cast<double>(tasks_) * (options_.bench + 1);
    const std::string what =
        options_.bench > 0 ? "run " + std::to_string(run_) + " of " + std::to_string(options_.bench)
                           : "layer " + std::to_string(layer);
    return options_.progress(static_cast<double>(done_) / total, what);
  }

 private:
  const RunOptions& options_;
  std::size_t tasks_ = 0;
  std::size_t done_ = 0;
  std::int32_t run_ = 0;
};

// What the plan says that a device takes for a subgraph in a layer.
std::optional<double> predicted_ms(
    const std::map<std::pair<std::int32_t, std::int64_t>, const DeviceTimes*>& predicted,
    const ShareTask& task, std::int32_t layer, const std::string& device) {
  const auto found = predicted.find({layer, task.subgraph});
  if (found == predicted.end()) return std::nullopt;
  for (const auto& [name, ms] : *found->second) {
    if (name == device) return ms;
  }
  return std::nullopt;
}

std::vector<RunStep> steps_of(const PlanExecutor& executor, const Plan& plan) {
  std::map<std::pair<std::int32_t, std::int64_t>, const DeviceTimes*> predicted;
  for (const PlanAssignment& assignment : plan.assignments) {
    predicted[{assignment.layer, assignment.subgraph}] = &assignment.device_ms;
  }
  std::vector<RunStep> steps;
  const auto& states = executor.scheduler().tasks();
  for (std::size_t l = 0; l < states.size(); ++l) {
    const auto layer = static_cast<std::int32_t>(l) + 1;
    for (std::size_t t = 0; t < states[l].size(); ++t) {
      const ShareTask& task = executor.graph().layers[l][t];
      const SchedulerTask& state = states[l][t];
      const std::string& device = plan.devices[static_cast<std::size_t>(state.device)].name;
      steps.push_back({layer, task.subgraph, task.first, task.last, state.device, state.start_ms,
                       state.end_ms, state.moved, predicted_ms(predicted, task, layer, device)});
    }
  }
  return steps;
}

// `times` of all runs, the first one first.
void add_times(const std::vector<double>& times, bool is_bench, RunReport& report) {
  report.first_ms = times.front();
  std::vector<double> sorted = times;
  if (sorted.size() > 1) sorted.erase(sorted.begin());
  std::sort(sorted.begin(), sorted.end());
  report.measured_ms = upper_percentile(sorted, 50);
  if (!is_bench) return;
  report.bench = {static_cast<std::int64_t>(sorted.size()), report.measured_ms, sorted.front(),
                  upper_percentile(sorted, 90)};
}

// Predictions are of the backends that were measured.
void warn_of_other_backends(const Plan& plan, const std::vector<GnnDevice>& devices,
                            Diagnostics& diagnostics) {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::string& measured = plan.devices[d].backend;
    if (measured.empty() || devices[d].instance == nullptr || devices[d].backend == measured) {
      continue;
    }
    diagnostics.warning({}, "device '" + devices[d].name + "' runs on " + devices[d].backend +
                                "; the plan goes by times of " + measured);
  }
}

std::string precision_of(const Plan& plan, const RunOptions& options) {
  if (!options.precision.empty()) return options.precision;
  return plan.files.precision.empty() ? "f32" : plan.files.precision;
}

void warn_of_other_precision(const Plan& plan, const RunOptions& options,
                             Diagnostics& diagnostics) {
  const std::string measured = precision_of(plan, {});
  const std::string chosen = precision_of(plan, options);
  if (chosen == measured) return;
  diagnostics.warning({}, "the plan runs in " + chosen + " and goes by times of " + measured +
                              "; npu-profile --precision " + chosen + " measures others");
}

void write_trace(const RunOptions& options, const RunResult& result) {
  if (!options.trace.empty()) write_file_atomically(options.trace, run_trace(result.report));
}

void compare_and_write(const RunOptions& options, bool is_narrow, RunResult& result) {
  if (!options.expect.empty()) {
    const Tensor expected = read_features(options.expect);
    result.report.comparison = compare_tensors(result.output, expected,
                                               {options.rtol.value_or(is_narrow ? 2e-2 : 1e-4),
                                                options.atol.value_or(is_narrow ? 2e-2 : 1e-5)});
    result.within = result.report.comparison->ok;
  }
  if (options.outputs.ends_with(".npy")) {
    write_npy(options.outputs, result.output);
  } else if (!options.outputs.empty()) {
    write_safetensors(options.outputs, {{"out", result.output}});
  }
  write_trace(options, result);
}

ExecutorOptions executor_options(const RunOptions& options, RankRun* ranks, RunProgress& progress) {
  ExecutorOptions result;
  result.padding = options.padding;
  result.goes_on = [&](std::int32_t layer) { return progress.task_ended(layer); };
  if (ranks != nullptr) {
    result.before_layer = [ranks](Tensor& input) { ranks->before_layer(input); };
  }
  return result;
}

// `ranks` is null for a plan of one process, which is then `plan`.
RunResult computed(const RunOptions& options, RankRun* ranks, Plan plan, Diagnostics& diagnostics) {
  RunResult result;
  RunReport& report = result.report;
  PhaseTimes times;
  const auto load_start = Clock::now();
  LoadedPlan loaded;
  CompileCache cache(options.cache);
  ProgramCounts counts;
  std::vector<GnnDevice> devices;
  RunProgress progress(options);
  std::unique_ptr<PlanExecutor> executor;
  const auto prepare = [&] {
    loaded =
        ranks == nullptr ? load_plan(std::move(plan), options, times) : ranks->load(options, times);
    const PhaseTimes::Scope phase(times, "devices and programs");
    devices = open_devices(loaded.plan, options, cache, counts);
    executor = std::make_unique<PlanExecutor>(loaded, devices, options.plan,
                                              executor_options(options, ranks, progress));
  };
  if (ranks == nullptr) {
    prepare();
  } else {
    ranks->prepare_together(prepare);
  }
  warn_of_other_backends(loaded.plan, devices, diagnostics);
  warn_of_other_precision(loaded.plan, options, diagnostics);
  progress.set_tasks(executor->graph());
  report.load_ms = milliseconds_since(load_start);
  std::vector<double> run_ms;
  for (std::int32_t run = 0; run <= options.bench; ++run) {
    progress.start(run);
    const auto start = Clock::now();
    executor->execute();
    run_ms.push_back(milliseconds_since(start));
    times.add("run", run_ms.back());
  }
  result.output = executor->output();
  report_progress(options.progress, 1, "write");
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  for (const std::string& failure : executor->scheduler().failures()) {
    diagnostics.warning({}, failure);
  }
  report.k = loaded.plan.k;
  report.predicted_ms = loaded.plan.makespan_ms;
  report.output = result.output.shape();
  if (ranks != nullptr) report.output[0] = ranks->node_count();
  for (const PlanDevice& device : loaded.plan.devices) report.devices.push_back(device.name);
  report.steps = steps_of(*executor, loaded.plan);
  add_times(run_ms, options.bench > 0, report);
  report.compile_ms = executor->blocks().compile_ms();
  report.static_compiles = counts.compiled;
  report.cache_hits = counts.cache_hits;
  report.fused_reductions = executor->blocks().fused_reductions();
  report.products_first = executor->blocks().products_first();
  report.precision = precision_of(loaded.plan, options);
  report.reexecuted = executor->scheduler().moved_count();
  {
    const PhaseTimes::Scope phase(times, "compare and write");
    if (ranks == nullptr) {
      compare_and_write(options, report.precision == "bf16", result);
    } else {
      if (!options.outputs.empty()) ranks->write(options.outputs, result.output);
      report.ranks = ranks->finish();
      if (ranks->rank() == 0) write_trace(options, result);
    }
  }
  result.times = std::move(times);
  return result;
}

// One of several processes: all but the first are silent, unless one fails where others do not.
RunResult computed_by_rank(RunOptions options, Diagnostics& diagnostics) {
  try {
    Plan plan = read_runnable_plan(options.plan);
    const std::unique_ptr<RankRun> ranks = RankRun::open(options, plan);
    if (ranks == nullptr || ranks->size() == 1) {
      return computed(options, ranks.get(), std::move(plan), diagnostics);
    }
    if (options.joined) options.joined(ranks->rank(), ranks->size());
    if (ranks->rank() == 0) return computed(options, ranks.get(), {}, diagnostics);
    options.progress = {};
    Diagnostics of_this_rank;
    RunResult result = computed(options, ranks.get(), {}, of_this_rank);
    result.speaks = false;
    return result;
  } catch (const FailedElsewhere&) {
    RunResult result;
    result.speaks = false;
    result.failed = true;
    return result;
  }
}

}  // namespace

RunResult run_plan(const RunOptions& options, Diagnostics& diagnostics) {
  return options.simulate ? simulated(options, diagnostics)
                          : computed_by_rank(options, diagnostics);
}

}  // namespace npu::gnn

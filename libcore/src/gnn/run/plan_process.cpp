// SPDX-License-Identifier: Apache-2.0
// What every process does for a plan: loads it, opens its devices, runs it once and then as often
// as asked for, and reports. The cost is that of these steps.
#include "gnn/run/plan_process.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "gnn/run/plan_devices.hpp"
#include "npu/support/file_io.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"

namespace npu::gnn {
namespace {

// What the plan says that a device takes for a subgraph in a layer.
std::optional<double> predicted_ms(
    const std::map<std::pair<std::int32_t, std::int64_t>, const DeviceTimes*>& predicted,
    const ExecutedTask& task, const std::string& device) {
  const auto found = predicted.find({task.layer, task.subgraph});
  if (found == predicted.end()) return std::nullopt;
  for (const auto& [name, ms] : *found->second) {
    if (name == device) return ms;
  }
  return std::nullopt;
}

std::vector<PlanRunStep> steps_of(const PlanRun& run, const GnnPlan& plan) {
  std::map<std::pair<std::int32_t, std::int64_t>, const DeviceTimes*> predicted;
  for (const PlanAssignment& assignment : plan.choice.assignments) {
    predicted[{assignment.layer, assignment.subgraph}] = &assignment.device_ms;
  }
  std::vector<PlanRunStep> steps;
  for (const ExecutedTask& task : run.executed()) {
    const std::string& device = plan.devices[static_cast<std::size_t>(task.device)].name;
    steps.push_back({task.layer, task.subgraph, task.first, task.last, task.device, task.start_ms,
                     task.end_ms, task.moved, predicted_ms(predicted, task, device)});
  }
  return steps;
}

// `times` of all runs, the first one first.
void add_times(const std::vector<double>& times, bool is_bench, RunPlanReport& report) {
  report.first_ms = times.front();
  std::vector<double> sorted = times;
  if (sorted.size() > 1) sorted.erase(sorted.begin());
  std::sort(sorted.begin(), sorted.end());
  report.measured_ms = upper_percentile(sorted, 50);
  if (!is_bench) return;
  report.bench = {static_cast<std::int64_t>(sorted.size()), report.measured_ms, sorted.front(),
                  upper_percentile(sorted, 90)};
}

}  // namespace

bool RunProgress::task_ended(std::int32_t layer) {
  ++done_;
  if (!options_.progress) return true;
  const auto total = static_cast<double>(tasks_) * (options_.bench + 1);
  const std::string what =
      options_.bench > 0 ? "run " + std::to_string(run_) + " of " + std::to_string(options_.bench)
                         : "layer " + std::to_string(layer);
  return options_.progress(static_cast<double>(done_) / total, what);
}

PlanProcess::PlanProcess(const RunPlanOptions& options, const GnnPlan& plan)
    : options_(options), cache_(options.cache), progress_(options) {
  if (!options.units.empty()) expected_ = index_head(plan, precision_of(plan, options.precision));
}

RunPlanResult PlanProcess::run(Diagnostics& diagnostics) {
  RunPlanResult result;
  const auto load_start = Clock::now();
  prepare();
  warn_of_others(diagnostics);
  PlanRun& plan = plan_run();
  progress_.set_tasks(plan.task_count());
  result.report.load_ms = milliseconds_since(load_start);
  std::vector<double> run_ms;
  for (std::int32_t run = 0; run <= options_.bench; ++run) {
    progress_.start(run);
    const auto start = Clock::now();
    plan.execute();
    run_ms.push_back(milliseconds_since(start));
    times_.add("run", run_ms.back());
  }
  report_progress(options_.progress, 1, "write");
  for (const std::string& warning : cache_.take_warnings()) diagnostics.warning({}, warning);
  for (const std::string& failure : plan.failures()) diagnostics.warning({}, failure);
  report(run_ms, result.report);
  {
    const PhaseTimes::Scope phase(times_, "compare and write");
    finish(run_ms.back(), result);
  }
  result.times = std::move(times_);
  return result;
}

void PlanProcess::open_devices() {
  devices_ = gnn::open_devices(loaded_.plan, options_, cache_, counts_);
  if (options_.units.empty()) return;
  blocks_.emplace(options_.units);
  expected_.weights = weights_digest(loaded_.weights);
  blocks_->check_plan(expected_);
  blocks_->check_backends(devices_);
}

PlanExecutorOptions PlanProcess::executor_options() {
  PlanExecutorOptions result;
  result.units = blocks_ ? &*blocks_ : nullptr;
  result.padding = options_.padding;
  result.goes_on = [this](std::int32_t layer) { return progress_.task_ended(layer); };
  return result;
}

void PlanProcess::write_trace(const RunPlanResult& result) const {
  if (!options_.trace.empty()) write_file_atomically(options_.trace, run_trace(result.report));
}

// Predictions are of the backends and the precision that were measured.
void PlanProcess::warn_of_others(Diagnostics& diagnostics) const {
  const GnnPlan& plan = loaded_.plan;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const std::string& measured = plan.devices[d].backend;
    if (measured.empty() || devices_[d].instance == nullptr || devices_[d].backend == measured) {
      continue;
    }
    diagnostics.warning({}, "device '" + devices_[d].name + "' runs on " + devices_[d].backend +
                                "; the plan goes by times of " + measured);
  }
  const std::string measured = precision_of(plan, {});
  const std::string chosen = precision_of(plan, options_.precision);
  if (chosen == measured) return;
  diagnostics.warning({}, "the plan runs in " + chosen + " and goes by times of " + measured +
                              "; npu-profile --precision " + chosen + " measures others");
}

void PlanProcess::report(const std::vector<double>& run_ms, RunPlanReport& report) {
  const PlanRun& run = plan_run();
  report.k = loaded_.plan.choice.k;
  report.predicted_ms = loaded_.plan.predicted.makespan_ms;
  report.output = {loaded_.nodes, loaded_.model.layers.back().output_features};
  for (const PlanDevice& device : loaded_.plan.devices) report.devices.push_back(device.name);
  report.steps = steps_of(run, loaded_.plan);
  add_times(run_ms, options_.bench > 0, report);
  report.compile_ms = run.blocks().compile_ms();
  report.static_compiles = counts_.compiled;
  report.cache_hits = counts_.cache_hits;
  if (blocks_) report.units = run.blocks().loaded_units();
  report.fused_reductions = run.blocks().fused_reductions();
  report.products_first = run.blocks().products_first();
  report.precision = precision_of(loaded_.plan, options_.precision);
  report.reexecuted = run.moved_count();
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Runs a plan of npu-plan: loads it (plan_loader.cpp), opens its devices, runs it once and then as
// often as asked for (plan_executor.cpp), compares, and reports. The cost is that of these steps.
#include "gnn/run/gnn_runner.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "gnn/graph/features.hpp"
#include "gnn/plan/verify_plan.hpp"
#include "gnn/run/plan_devices.hpp"
#include "gnn/run/plan_executor.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/rank_exchange.hpp"
#include "gnn/run/rank_run.hpp"
#include "gnn/run/tensor_rows.hpp"
#include "gnn/run/unit_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/elapsed.hpp"
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

  void set_tasks(std::size_t count) { tasks_ = count; }
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
    const ExecutedTask& task, const std::string& device) {
  const auto found = predicted.find({task.layer, task.subgraph});
  if (found == predicted.end()) return std::nullopt;
  for (const auto& [name, ms] : *found->second) {
    if (name == device) return ms;
  }
  return std::nullopt;
}

std::vector<RunStep> steps_of(const PlanRun& run, const Plan& plan) {
  std::map<std::pair<std::int32_t, std::int64_t>, const DeviceTimes*> predicted;
  for (const PlanAssignment& assignment : plan.assignments) {
    predicted[{assignment.layer, assignment.subgraph}] = &assignment.device_ms;
  }
  std::vector<RunStep> steps;
  for (const ExecutedTask& task : run.executed()) {
    const std::string& device = plan.devices[static_cast<std::size_t>(task.device)].name;
    steps.push_back({task.layer, task.subgraph, task.first, task.last, task.device, task.start_ms,
                     task.end_ms, task.moved, predicted_ms(predicted, task, device)});
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

void warn_of_other_precision(const Plan& plan, const RunOptions& options,
                             Diagnostics& diagnostics) {
  const std::string measured = precision_of(plan, {});
  const std::string chosen = precision_of(plan, options.precision);
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

// The units that a run takes its programs from, and the plan that they have to be for.
struct UnitsOfRun {
  UnitIndex expected;
  std::optional<UnitStore> store;

  void open(const RunOptions& options, const LoadedPlan& loaded,
            const std::vector<GnnDevice>& devices) {
    if (options.units.empty()) return;
    store.emplace(options.units);
    expected.weights = weights_digest(loaded.weights);
    store->check_plan(expected);
    store->check_backends(devices);
  }
  const UnitStore* get() const { return store ? &*store : nullptr; }
};

ExecutorOptions executor_options(const RunOptions& options, RankRun* ranks, const UnitStore* units,
                                 RunProgress& progress) {
  ExecutorOptions result;
  result.units = units;
  result.padding = options.padding;
  result.goes_on = [&](std::int32_t layer) { return progress.task_ended(layer); };
  if (ranks != nullptr) {
    result.before_layer = [ranks](std::size_t layer, Tensor& input) {
      ranks->exchange().begin(layer, input);
    };
    result.late = ranks->late_rows();
  }
  return result;
}

// The sums that cross between the devices of a plan for one process, if there are any.
struct SumsOfRun {
  std::optional<RankExchange> sums;

  void open(const LoadedPlan& loaded, const RunOptions& options, ExecutorOptions& executor) {
    if (loaded.exchange == nullptr) return;
    const DeviceLayout& layout = *loaded.exchange;
    sums.emplace(layout.rows, nullptr, layout.row_bytes, layout.factors, options.threads);
    executor.before_layer = [this](std::size_t layer, Tensor& input) { sums->begin(layer, input); };
  }
};

ExchangeReport exchange_report(const DeviceExchange& planned, const PlanExecutor& executor,
                               const SumsOfRun& sums) {
  ExchangeReport report;
  report.sums_ms = sums.sums ? sums.sums->ms() : 0;
  const std::vector<std::int64_t> rows = executor.rows_crossed(planned.host);
  for (const LayerCrossing& layer : planned.layers) {
    const auto l = static_cast<std::size_t>(layer.layer - 1);
    const std::int64_t crossed = l < rows.size() ? rows[l] : 0;
    report.layers.push_back({layer.layer, crossed, layer.rows, layer.halo});
  }
  return report;
}

// A plan with the rows of its nodes in memory, or with those of a rank in files.
struct RowsOfRun {
  std::optional<PlanExecutor> executor;
  std::optional<RankStream> stream;
  std::vector<float> piece;

  void open(LoadedPlan& loaded, const std::vector<GnnDevice>& devices, const RunOptions& options,
            RankRun* ranks, ExecutorOptions executor_options) {
    if (ranks != nullptr && options.bench == 0) executor_options.features = &loaded.features;
    if (ranks == nullptr || !ranks->streams()) {
      executor.emplace(loaded, devices, options.plan, std::move(executor_options));
      return;
    }
    executor_options.before_layer = {};
    executor_options.features = nullptr;
    executor_options.late = nullptr;
    stream.emplace(loaded, devices, ranks->stream_inputs(options), std::move(executor_options));
  }
  PlanRun& run() {
    if (executor) return *executor;
    return *stream;
  }
  RowReads reads() const { return stream ? stream->reads() : RowReads{}; }
  RowsToWrite output() {
    if (executor) {
      const Tensor& rows = executor->output();
      const std::int64_t width = rows.shape()[1];
      return {width, [&rows, width](std::int64_t begin, std::int64_t /*count*/) {
                return rows.as<float>() + begin * width;
              }};
    }
    return {stream->output().width(), [this](std::int64_t begin, std::int64_t count) {
              std::vector<RowToRead> wanted;
              for (std::int64_t i = 0; i < count; ++i) {
                wanted.push_back({static_cast<std::int32_t>(begin + i), i});
              }
              piece.resize(static_cast<std::size_t>(count * stream->output().width()));
              stream->output().read(wanted, piece.data());
              return static_cast<const float*>(piece.data());
            }};
  }
};

// `ranks` is null for a plan of one process, which is then `plan`.
RunResult computed(const RunOptions& options, RankRun* ranks, Plan plan, UnitsOfRun& units,
                   Diagnostics& diagnostics) {
  RunResult result;
  RunReport& report = result.report;
  PhaseTimes times;
  const auto load_start = Clock::now();
  LoadedPlan loaded;
  CompileCache cache(options.cache);
  ProgramCounts counts;
  std::vector<GnnDevice> devices;
  RunProgress progress(options);
  SumsOfRun sums;
  RowsOfRun rows;
  const auto prepare = [&] {
    loaded =
        ranks == nullptr ? load_plan(std::move(plan), options, times) : ranks->load(options, times);
    const PhaseTimes::Scope phase(times, "devices and programs");
    devices = open_devices(loaded.plan, options, cache, counts);
    if (ranks != nullptr) ranks->limit_buffers(devices);
    units.open(options, loaded, devices);
    ExecutorOptions executor = executor_options(options, ranks, units.get(), progress);
    sums.open(loaded, options, executor);
    rows.open(loaded, devices, options, ranks, std::move(executor));
  };
  if (ranks == nullptr) {
    prepare();
  } else {
    ranks->prepare_together(prepare);
  }
  warn_of_other_backends(loaded.plan, devices, diagnostics);
  warn_of_other_precision(loaded.plan, options, diagnostics);
  PlanRun& plan_run = rows.run();
  progress.set_tasks(plan_run.task_count());
  report.load_ms = milliseconds_since(load_start);
  std::vector<double> run_ms;
  for (std::int32_t run = 0; run <= options.bench; ++run) {
    progress.start(run);
    const auto start = Clock::now();
    plan_run.execute();
    run_ms.push_back(milliseconds_since(start));
    times.add("run", run_ms.back());
  }
  if (rows.executor) result.output = rows_of(rows.executor->output(), 0, loaded.nodes);
  if (loaded.plan.exchange) {
    report.exchange = exchange_report(*loaded.plan.exchange, *rows.executor, sums);
  }
  report_progress(options.progress, 1, "write");
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  for (const std::string& failure : plan_run.failures()) {
    diagnostics.warning({}, failure);
  }
  report.k = loaded.plan.k;
  report.predicted_ms = loaded.plan.makespan_ms;
  if (ranks != nullptr) report.predicted_ms = ranks->predicted_ms().value_or(report.predicted_ms);
  report.output = {ranks == nullptr ? loaded.nodes : ranks->node_count(),
                   loaded.model.layers.back().output_features};
  for (const PlanDevice& device : loaded.plan.devices) report.devices.push_back(device.name);
  report.steps = steps_of(plan_run, loaded.plan);
  add_times(run_ms, options.bench > 0, report);
  report.compile_ms = plan_run.blocks().compile_ms();
  report.static_compiles = counts.compiled;
  report.cache_hits = counts.cache_hits;
  if (units.store) report.units = plan_run.blocks().loaded_units();
  report.fused_reductions = plan_run.blocks().fused_reductions();
  report.products_first = plan_run.blocks().products_first();
  report.precision = precision_of(loaded.plan, options.precision);
  report.reexecuted = plan_run.moved_count();
  {
    const PhaseTimes::Scope phase(times, "compare and write");
    if (ranks == nullptr) {
      compare_and_write(options, report.precision == "bf16", result);
    } else {
      if (!options.outputs.empty()) ranks->write(options.outputs, rows.output());
      report.ranks = ranks->finish(plan_run.started(), run_ms.back(), rows.reads());
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
    UnitsOfRun units;
    if (!options.units.empty()) {
      units.expected = index_head(plan, precision_of(plan, options.precision));
    }
    const std::unique_ptr<RankRun> ranks = RankRun::open(options, plan);
    if (ranks == nullptr || ranks->size() == 1) {
      return computed(options, ranks.get(), std::move(plan), units, diagnostics);
    }
    if (options.joined) options.joined(ranks->rank(), ranks->size());
    if (ranks->rank() == 0) return computed(options, ranks.get(), {}, units, diagnostics);
    options.progress = {};
    Diagnostics of_this_rank;
    RunResult result = computed(options, ranks.get(), {}, units, of_this_rank);
    result.speaks = false;
    return result;
  } catch (const FailedElsewhere&) {
    RunResult result;
    result.speaks = false;
    return result;
  }
}

}  // namespace

RunResult run_plan(const RunOptions& options, Diagnostics& diagnostics) {
  return options.simulate ? simulated(options, diagnostics)
                          : computed_by_rank(options, diagnostics);
}

}  // namespace npu::gnn

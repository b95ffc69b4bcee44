// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-run: makes a document or a bundle ready, runs it, compares and reports.
//
// A document is compiled, through the cache, with the weights that it names; a bundle is already
// compiled and is only checked and mapped. From there on both are a PreparedModel and follow one
// path: an executor runs it once and, on request, more often; the outputs are compared with those
// of ReferenceRuns; and the records become a RunReport. The cost is that of the backends.
#include "npu/runtime/run_model.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "device/backend.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/log.hpp"
#include "runtime/backend_ops.hpp"
#include "runtime/prepared_model.hpp"
#include "runtime/reference_runs.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/run_options.hpp"
#include "runtime/run_summary.hpp"
#include "runtime/session/step_runs.hpp"
#include "runtime/timed_runs.hpp"
#include "runtime/trace.hpp"

namespace npu {
namespace {

/// The report of the runs themselves, without comparisons.
RunReport report_of(const Graph& graph, const PreparedModel& model, const Executor& executor,
                    const Runs& runs, const RunModelOptions& options) {
  const PlanMetrics metrics = plan_metrics(graph, model.plan, model.target);
  const PredictedSteps predicted(graph, model.plan, model.target);
  RunReport report;
  report.model = graph.model_name();
  report.target = model.target.name;
  report.precision = options.precision;
  report.compile = model.compile;
  report.bundle = model.bundle;
  if (model.request) {
    report.entry = {.name = model.request->entry_name,
                    .valid = model.request->valid,
                    .padded_share = model.request->padded_share};
  }
  const std::vector<std::string> names = output_names(graph, model);
  for (std::size_t i = 0; i < runs.outputs.size(); ++i) {
    report.outputs.push_back(
        {.name = names[i], .shape = runs.outputs[i].shape(), .dtype = runs.outputs[i].dtype()});
  }
  report.taps = model.tap_rows;
  report.placement = summarize_placement(metrics, model.target, runs.last);
  report.coverage = tag_report(graph, model.target);
  report.steps = summarize_steps(model.plan, predicted, runs.last);
  report.overlap = executor.overlaps();
  report.weight_tensors = executor.weight_uploads();
  report.weight_bytes = executor.weight_bytes();
  report.memory = executor.memory();
  report.predicted_ms = predicted.total_ms(metrics.predicted_us);
  report.measured_ms = runs.last.total_us / 1000;
  report.first_ms = runs.first.total_us / 1000;
  report.load_ms = model.ready_ms + executor.load_ms();
  report.int8_macs = executor.int8_macs();
  report.states = executor.states();
  if (!report.states.empty()) {
    report.position = states_before(options).position + options.steps.value_or(1);
  }
  report.backends = executor.backend_versions();
  report.is_cut_short = runs.is_cut_short;
  report.is_late = runs.is_late;
  report.recovered = runs.is_recovered ? 1 : 0;
  if (!runs.times.empty()) report.bench = summarize_bench(runs.times, runs.seconds);
  if (options.executor.in_flight > 1) {
    report.in_flight = {.runs = options.executor.in_flight, .is_same = runs.is_same};
  }
  return report;
}

/// Makes all runs, on devices that are opened again, with models that are loaded again, if one is
/// lost: once, since nothing that a run leaves behind is read by another one.
Runs run_and_recover(std::unique_ptr<Executor>& executor,
                     const std::function<std::unique_ptr<Executor>()>& load,
                     const std::vector<Tensor>& inputs, const RunModelOptions& options,
                     OpenDevices& open) {
  executor = load();
  try {
    return run_all(*executor, inputs, options);
  } catch (const BackendError& error) {
    if (error.status() != NPU_DEVICE_LOST) throw;
    log(LogModule::kRun, LogLevel::kInfo,
        [&] { return "the devices are opened again: " + error.message(); });
  }
  executor.reset();
  open.clear();
  if (options.executor.stop != nullptr) options.executor.stop->check_asked();
  executor = load();
  Runs runs = run_all(*executor, inputs, options);
  runs.is_recovered = true;
  return runs;
}

/// Runs, compares, times and reports.
RunReport run_prepared(const Graph& graph, PreparedModel& model, const RunModelOptions& options,
                       Diagnostics& diagnostics) {
  const bool has_states = graph.npu_member("states") != nullptr;
  check_step_options(options, has_states);
  if (options.steps && model.request && !model.request->is_exact) {
    throw Error(ErrorCode::kUsage, "--steps: the inputs are smaller than the entry '" +
                                       model.request->entry_name + "'; steps are not padded");
  }
  const ReferenceRuns references(graph, model, options, diagnostics);
  if (diagnostics.has_errors()) return {};
  ExecutorOptions devices = executor_options(options);
  devices.taps = model.taps;
  devices.times = !options.trace.empty();
  devices.queues = true;  // those of references block, beside queues that are open
  std::unique_ptr<Executor> loaded;
  if (has_states) devices.states = std::make_shared<DeviceStates>();
  const auto load = [&] { return load_executor(graph, model, devices); };
  Runs runs;
  if (has_states) {
    loaded = load();
    runs = run_steps(*loaded, *devices.states, graph, model.inputs, options);
  } else {
    runs = run_and_recover(loaded, load, model.inputs, options, model.devices);
  }
  const Executor& executor = *loaded;
  // A run that was in its last step when it was asked to end has ended well.
  if (options.executor.stop != nullptr) options.executor.stop->check_asked();
  if (model.request && !options.steps)
    cut_outputs(*model.request, output_names(graph, model), runs.outputs);
  RunReport report = report_of(graph, model, executor, runs, options);
  OpenDevices open = executor.devices();
  open.insert(model.devices.begin(), model.devices.end());
  references.compare(runs.outputs, open, report);
  if (!options.trace.empty()) {
    write_file_atomically(options.trace, write_trace(graph, model.plan, runs.last));
  }
  if (!options.outputs.empty()) {
    write_outputs(output_names(graph, model), runs.outputs, options.outputs);
  }
  return report;
}

/// A document that is tagged lacks a plan only because a program was forgotten.
void check_has_plan(const Graph& graph, Diagnostics& diagnostics) {
  if (graph.npu_member("partition") != nullptr) return;
  const auto tagged = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                   [](const Node& node) { return node.device.has_value(); });
  if (tagged == graph.nodes().end()) return;
  diagnostics.error({.file = graph.file}, "node '" + tagged->name +
                                              "' has a device, but the document has no partitions; "
                                              "run npu-partition first");
}

RunReport run_document(Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics) {
  check_has_plan(graph, diagnostics);
  if (diagnostics.has_errors()) return {};
  PreparedModel model = prepare_document(graph, options, diagnostics);
  if (diagnostics.has_errors()) return {};
  RunReport report = run_prepared(graph, model, options, diagnostics);
  if (!model.note.empty()) diagnostics.note({.file = graph.file}, model.note);
  return report;
}

RunReport run_opened(const Bundle& bundle, const RunModelOptions& options,
                     Diagnostics& diagnostics) {
  Graph graph;
  PreparedModel model = prepare_bundle(bundle, graph, options, diagnostics);
  if (diagnostics.has_errors()) return {};
  return run_prepared(graph, model, options, diagnostics);
}

RunModelOptions with_precision(RunModelOptions options, const std::string& precision) {
  if (options.precision.empty()) options.precision = precision;
  return options;
}

/// Adds the file to a backend's error, which names only node and argument.
template <typename Body>
RunReport placing_errors(const std::string& file, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    const bool is_placed = !error.location().file.empty() || error.code() == ErrorCode::kUsage ||
                           error.code() == ErrorCode::kIo;
    if (is_placed) throw;
    throw Error(error.code(), error.message(), {.file = file});
  }
}

}  // namespace

RunReport run_model(Graph& graph, const RunModelOptions& given, Diagnostics& diagnostics) {
  const RunModelOptions options = with_precision(given, "f32");
  return placing_errors(graph.file, [&] { return run_document(graph, options, diagnostics); });
}

RunReport run_bundle(const Bundle& bundle, const RunModelOptions& given, Diagnostics& diagnostics) {
  const RunModelOptions options = with_precision(given, bundle.precision());
  return placing_errors(bundle.name(), [&] { return run_opened(bundle, options, diagnostics); });
}

std::string list_registered_ops(const RunModelOptions& options, const std::string& device) {
  const Target target =
      select_devices(load_target(options.where.target.empty() ? "host" : options.where.target),
                     options.where.devices, options.where.excluded);
  return format_backend_ops(target, device, executor_options(options));
}

}  // namespace npu

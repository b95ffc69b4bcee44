// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-run: makes a document or a bundle ready, runs it, compares and reports.
//
// A document is compiled, through the cache, with the weights that it names; a bundle is already
// compiled and is only checked and mapped. From there on both are a ReadyModel and follow one path:
// an executor runs it once and, on request, more often; the outputs are compared with a file, with
// a run in full precision or with one on a single device; and the records become a RunReport. Other
// files do the rest: run_inputs (files in and out), compare_outputs, run_summary (records to rows),
// run_report (rows to text). The cost is that of the backends.
#include "npu/runtime/run_model.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "compile/boundary_layouts.hpp"
#include "device/custom_op_library.hpp"
#include "device/isa_level.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "runtime/backend_ops.hpp"
#include "runtime/check_blobs.hpp"
#include "runtime/compare_outputs.hpp"
#include "runtime/groups/compare_groups.hpp"
#include "runtime/place_model.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/run_summary.hpp"
#include "runtime/tap_tensors.hpp"
#include "runtime/timed_runs.hpp"
#include "runtime/trace.hpp"
#include "runtime/whole_weights.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// The options that the devices are opened with. Libraries are checked here, so that a bad one is
/// refused even if no step of the plan needs it.
ExecutorOptions executor_options(const RunModelOptions& options) {
  ExecutorOptions result = options.executor;
  result.stop = nullptr;  // only the runs of the plan itself are ended early
  for (const std::string& library : options.load_ops) load_custom_ops(library);
  if (!options.load_ops.empty()) result.backend_options["load_ops"] = options.load_ops;
  if (options.promote) result.backend_options["promote"] = true;
  return result;
}

}  // namespace

std::string list_registered_ops(const RunModelOptions& options, const std::string& device) {
  const Target target =
      select_devices(load_target(options.where.target.empty() ? "host" : options.where.target),
                     options.where.devices, options.where.excluded);
  return format_backend_ops(target, device, executor_options(options));
}

namespace {

/// A model that is ready to run, from a document or a bundle.
struct ReadyModel {
  Target target;
  PartitionPlan plan;
  std::vector<Tensor> weights;  ///< those that its programs or its outputs need
  std::vector<CompiledPartition> partitions;
  OpenDevices devices;
  std::vector<std::string> taps;     ///< results that its programs hand out in a run
  std::vector<TapSummary> tap_rows;  ///< of all results that were asked for
  double ready_ms = 0;               ///< reading or compiling it
  std::optional<CompileSource> compile;
  std::optional<BundleSource> bundle;
};

/// The report of the runs themselves, without comparisons.
RunReport report_of(const Graph& graph, const Graph& shown, const ReadyModel& model,
                    const Executor& executor, const Runs& runs, const std::string& precision,
                    std::int32_t in_flight) {
  const PlanMetrics metrics = plan_metrics(graph, model.plan, model.target);
  const PredictedSteps predicted(graph, model.plan, model.target);
  RunReport report;
  report.model = graph.model_name();
  report.target = model.target.name;
  report.precision = precision;
  report.compile = model.compile;
  report.bundle = model.bundle;
  for (std::size_t i = 0; i < runs.outputs.size(); ++i) {
    report.outputs.push_back({.name = shown.tensor(shown.graph_outputs()[i]).name,
                              .shape = runs.outputs[i].shape(),
                              .dtype = runs.outputs[i].dtype()});
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
  report.backends = executor.backend_versions();
  report.is_cut_short = runs.is_cut_short;
  report.is_late = runs.is_late;
  report.recovered = runs.is_recovered ? 1 : 0;
  if (!runs.times.empty()) report.bench = summarize_bench(runs.times, runs.seconds);
  if (in_flight > 1) report.in_flight = {.runs = in_flight, .is_same = runs.is_same};
  return report;
}

bool measures_precision(const RunModelOptions& options) {
  return options.measure_precision && is_narrow_precision(options.precision);
}

/// What the comparisons of the options compile anew.
struct References {
  std::vector<Tensor> weights;  ///< every weight of the graph, folded results included
  Graph whole;                  ///< the graph with nothing folded: another way to the same results
  std::vector<Tensor> whole_weights;
};

/// `shown` is the graph with the taps as outputs; `load` returns the weights of a graph but for
/// folded results.
References make_references(const Graph& graph, const Graph& shown, const ReadyModel& model,
                           const RunModelOptions& options, const CompileOptions& compile,
                           const std::function<std::vector<Tensor>(const Graph&)>& load,
                           const Diagnostics& diagnostics) {
  References references;
  if (measures_precision(options) || options.groups.wanted()) {
    references.weights = load(graph);
    if (diagnostics.has_errors()) return references;
    fold_constants(graph, model.target, compile, nullptr, references.weights);
  }
  if (!options.verify_device.empty()) {
    references.whole = shown;
    unfold_nodes(references.whole);
    references.whole_weights = load(references.whole);
  }
  return references;
}

CompileOptions compile_options(const RunModelOptions& options) {
  const ExecutorOptions devices = executor_options(options);
  CompileOptions compile;
  compile.precision = options.precision;
  compile.threads = devices.threads;
  compile.backend_options = devices.backend_options;
  compile.control.deadline = options.deadline;
  return compile;
}

/// A graph with the results that its runs hand out, too, as outputs behind the others; without
/// any, nothing is copied.
Graph with_taps(const Graph& graph, const std::vector<std::string>& taps) {
  if (taps.empty()) return {};
  Graph shown = graph;
  add_outputs(shown, taps);
  return shown;
}

/// Compares the plan with the whole graph on one device, group by group.
GroupReport compare_by_group(const Graph& graph, const ReadyModel& model,
                             const std::vector<Tensor>& inputs, const RunModelOptions& options,
                             const References& references, const OpenDevices& open,
                             const ToleranceOptions& tolerance) {
  CompileOptions compile = compile_options(options);
  compile.control = {};  // the deadline is for the run, which was in time
  ExecutorOptions devices = executor_options(options);
  devices.in_flight = 1;
  GroupSides sides;
  sides.graph = &graph;
  sides.plan = &model.plan;
  sides.compiled = &model.partitions;
  sides.runner = {&model.target, compile, devices, weights_by_name(graph, references.weights),
                  open};
  sides.reference = &references.whole;
  sides.reference_device = options.verify_device;
  sides.reference_runner = {&model.target, compile, devices,
                            weights_by_name(references.whole, references.whole_weights), open};
  sides.reference_runner.compile.precision = "f32";
  sides.inputs = inputs;
  sides.tolerance = tolerance;
  return compare_groups(sides, options.groups);
}

/// Makes the comparisons that the options ask for. `outputs` are those of `shown`.
void compare(const Graph& graph, const Graph& shown, const ReadyModel& model,
             const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
             const RunModelOptions& options, const References& references, const OpenDevices& open,
             RunReport& report) {
  ExecutorOptions devices = executor_options(options);
  devices.in_flight = 1;
  const ToleranceOptions tolerance{.rtol = options.rtol,
                                   .atol = options.atol,
                                   .is_narrow = is_narrow_precision(options.precision)};
  if (!options.expect.empty()) {
    report.expect =
        compare_outputs(shown, outputs, expected_outputs(shown, options.expect), tolerance);
  }
  if (measures_precision(options)) {
    Executor reference(graph, model.plan, model.target, references.weights, devices, open);
    const auto end = outputs.begin() + static_cast<std::ptrdiff_t>(graph.graph_outputs().size());
    report.worst_relative_error =
        worst_relative_error({outputs.begin(), end}, reference.run(inputs, nullptr));
  }
  if (!options.verify_device.empty()) {
    const PartitionPlan whole = single_partition_plan(references.whole, options.verify_device);
    Executor reference(references.whole, whole, model.target, references.whole_weights, devices,
                       open);
    RunRecord record;
    const std::vector<Tensor> expected = reference.run(inputs, &record);
    report.verify = compare_outputs(shown, outputs, {expected.begin(), expected.end()}, tolerance);
    report.verify->device = options.verify_device;
    report.verify->ms = record.total_us / 1000;
  }
  if (options.groups.wanted()) {
    report.groups = compare_by_group(graph, model, inputs, options, references, open, tolerance);
  }
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

/// Compiles a model again with row-major values between its partitions.
using CompileAgain = std::function<CompiledModel()>;

/// Loads a model; with row-major values between its partitions if a backend does not load what it
/// has compiled for others.
std::unique_ptr<Executor> load_model(ReadyModel& model,
                                     const std::function<std::unique_ptr<Executor>()>& load,
                                     const CompileAgain& compile_again) {
  std::exception_ptr refusal;
  try {
    return load();
  } catch (const BackendError& error) {
    const bool has_layouts = std::any_of(model.partitions.begin(), model.partitions.end(),
                                         [](const auto& each) { return !each.layouts.empty(); });
    if (!has_layouts || !may_refuse_layouts(error)) throw;
    refusal = std::current_exception();
    log(LogModule::kRun, LogLevel::kInfo,
        [&] { return "compiled again with row-major values: " + error.message(); });
  }
  try {
    CompiledModel compiled = compile_again();
    model.partitions = std::move(compiled.partitions);
    model.devices = std::move(compiled.devices);
  } catch (const Error&) {  // that it cannot be compiled here says less
    std::rethrow_exception(refusal);
  }
  return load();
}

/// Runs, compares, times and reports.
RunReport run_ready(const Graph& graph, const Graph& shown, ReadyModel& model,
                    const std::vector<Tensor>& inputs, const RunModelOptions& options,
                    const References& references, const CompileAgain& compile_again) {
  ExecutorOptions devices = executor_options(options);
  devices.stop = options.executor.stop;
  devices.taps = model.taps;
  devices.times = !options.trace.empty();
  devices.queues = true;  // those of references block, beside queues that are open
  std::unique_ptr<Executor> loaded;
  const auto load_once = [&] {
    return std::make_unique<Executor>(graph, model.plan, model.target, model.weights, devices,
                                      model.partitions, model.devices);
  };
  const auto load = [&] { return load_model(model, load_once, compile_again); };
  const Runs runs = run_and_recover(loaded, load, inputs, options, model.devices);
  const Executor& executor = *loaded;
  // A run that was in its last step when it was asked to end has ended well.
  if (options.executor.stop != nullptr) options.executor.stop->check_asked();
  RunReport report =
      report_of(graph, shown, model, executor, runs, options.precision, options.executor.in_flight);
  OpenDevices open = executor.devices();
  open.insert(model.devices.begin(), model.devices.end());
  compare(graph, shown, model, inputs, runs.outputs, options, references, open, report);
  if (!options.trace.empty()) {
    write_file_atomically(options.trace, write_trace(graph, model.plan, runs.last));
  }
  if (!options.outputs.empty()) write_outputs(shown, runs.outputs, options.outputs);
  return report;
}

void check_options(const RunModelOptions& options, std::size_t outputs, const Target& target) {
  if (!options.verify_device.empty() && target.find_device(options.verify_device) == nullptr) {
    throw Error(ErrorCode::kUsage, "--verify " + options.verify_device + ": target '" +
                                       target.name + "' has no such device");
  }
  const bool holds_one = options.outputs.ends_with(".npy") || options.outputs.ends_with(".pb");
  if (holds_one && outputs != 1) {
    throw Error(ErrorCode::kUsage, "--outputs " + options.outputs +
                                       ": such a file holds one tensor, the graph has " +
                                       std::to_string(outputs) + " outputs; use .safetensors");
  }
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

/// Keeps those of `names` that the programs hand out as taps of a model; returns the others.
std::vector<std::string> take_taps(const Graph& graph, ReadyModel& model,
                                   const std::vector<std::string>& names) {
  const auto places = find_taps(graph, model.plan, model.partitions, names);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!places[i]) {
      missing.push_back(names[i]);
      continue;
    }
    model.taps.push_back(names[i]);
    model.tap_rows.push_back({names[i], places[i]->is_boundary ? TapSummary::From::kBoundary
                                                               : TapSummary::From::kProgram});
  }
  return missing;
}

void add_all(const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& entry : from.entries()) {
    switch (entry.level) {
      case Level::kError:
        to.error(entry.location, entry.text);
        break;
      case Level::kWarning:
        to.warning(entry.location, entry.text);
        break;
      case Level::kNote:
        to.note(entry.location, entry.text);
        break;
    }
  }
}

/// A document on its way to a run.
struct Preparation {
  RunModelOptions options;
  WeightSource weights;
  CompileCache cache;
  std::optional<std::vector<Tensor>> inputs;
  Diagnostics of_inputs;
  std::vector<std::string> taps;     ///< that programs are to hand out
  std::vector<TapSummary> tap_rows;  ///< of those that are outputs
  ReadyModel model;
  std::string note;  ///< how it was placed

  explicit Preparation(RunModelOptions given)
      : options(std::move(given)), weights(options.weights), cache(options.cache) {}
};

/// Compiles a document that is placed: `graph` is left as it runs. Nothing is compiled if there is
/// a fault.
void compile_document(Graph& graph, PlacedModel placed, Preparation& made,
                      Diagnostics& diagnostics) {
  const RunModelOptions& options = made.options;
  ReadyModel& model = made.model;
  model.target = std::move(placed.target);
  check_options(options, graph.graph_outputs().size() + made.taps.size(), model.target);
  if (!made.inputs) {
    made.inputs = gather_inputs(graph, options.inputs, options.random_inputs, made.of_inputs);
  }
  add_all(made.of_inputs, diagnostics);
  model.weights = load_weights(graph, made.weights, diagnostics);
  if (diagnostics.has_errors()) return;
  CompileOptions compile = compile_options(options);
  compile.layouts = true;
  FoldedConstants folded = fold_constants(graph, model.target, compile, &made.cache, model.weights);
  // A plan that was asked for is not changed.
  CompiledModel compiled = placed.by_cost()
                               ? compile_graph(graph, placed.plan, model.target, model.weights,
                                               compile, &made.cache, folded.devices)
                               : compile_plan(graph, placed.plan, model.target, model.weights,
                                              compile, &made.cache, folded.devices);
  folded.devices.clear();  // one that is lost must have no other owner when it is opened again
  warn_of_refusals(graph, compiled, diagnostics);
  model.plan = std::move(compiled.plan);
  model.partitions = std::move(compiled.partitions);
  model.devices = std::move(compiled.devices);
  model.ready_ms += folded.ms + compiled.compile_ms;
  model.compile = {.ms = compiled.compile_ms,
                   .cache_enabled = made.cache.enabled(),
                   .cache_hits = compiled.cache_hits,
                   .cache_misses = compiled.cache_misses};
  made.note = placed.note;
}

/// One round of prepare_document: places and compiles, and returns the taps that nothing hands out
/// so. If the plan alone shows that there are any, nothing is compiled.
std::vector<std::string> prepare_once(Graph& graph, Preparation& made, Diagnostics& diagnostics) {
  PlacedModel placed = place_model(graph, made.options.where, made.options.load_ops, diagnostics);
  if (diagnostics.has_errors()) return {};
  std::vector<std::string> missing = untapped_names(graph, placed.plan, placed.target, made.taps);
  if (!missing.empty()) return missing;
  compile_document(graph, std::move(placed), made, diagnostics);
  if (diagnostics.has_errors()) return {};
  missing = take_taps(graph, made.model, made.taps);
  if (!missing.empty()) {
    log(LogModule::kRun, LogLevel::kInfo, [&] {
      return "compiled again for results that no program hands out: " +
             std::to_string(missing.size());
    });
  }
  return missing;
}

/// Places and compiles a document so that every tap is there: what no program hands out becomes an
/// output, and the document is compiled again.
void prepare_document(Graph& graph, Preparation& made, Diagnostics& diagnostics) {
  made.taps = tapped_names(graph, made.options.taps);
  Graph stated = made.taps.empty() ? Graph() : graph;
  for (;;) {
    Diagnostics found;  // what holds of a round that another one follows holds of that, too
    const auto tell_of_cache = [&] {
      for (const std::string& warning : made.cache.take_warnings()) {
        diagnostics.warning({}, warning);
      }
    };
    std::vector<std::string> missing;
    try {
      missing = prepare_once(graph, made, found);
    } catch (...) {
      tell_of_cache();
      add_all(found, diagnostics);
      throw;
    }
    tell_of_cache();
    if (missing.empty()) {
      add_all(found, diagnostics);
      break;
    }
    // Its programs and weights would stay beside those of the next round.
    const double ready_ms = made.model.ready_ms;
    made.model = {};
    made.model.ready_ms = ready_ms;
    add_outputs(stated, missing);
    graph = stated;
    std::erase_if(made.taps, [&](const std::string& name) {
      return std::find(missing.begin(), missing.end(), name) != missing.end();
    });
    for (const std::string& name : missing) {
      made.tap_rows.push_back({name, TapSummary::From::kOutput});
    }
  }
  made.model.tap_rows.insert(made.model.tap_rows.begin(), made.tap_rows.begin(),
                             made.tap_rows.end());
}

RunReport run_document(Graph& graph, RunModelOptions options, Diagnostics& diagnostics) {
  if (options.precision.empty()) options.precision = "f32";
  check_has_plan(graph, diagnostics);
  if (diagnostics.has_errors()) return {};
  Preparation made(std::move(options));
  // A seed asks for random weights; the file that the document names is then not needed.
  WeightSource& source = made.weights;
  if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph);
  prepare_document(graph, made, diagnostics);
  if (diagnostics.has_errors()) return {};
  const Graph tapped = with_taps(graph, made.model.taps);
  const Graph& shown = made.model.taps.empty() ? graph : tapped;
  const References references = make_references(
      graph, shown, made.model, made.options, compile_options(made.options),
      [&](const Graph& whole) { return load_weights(whole, source, diagnostics); }, diagnostics);
  if (diagnostics.has_errors()) return {};
  const auto compile_again = [&] {
    return compile_plan(graph, made.model.plan, made.model.target, made.model.weights,
                        compile_options(made.options), &made.cache, made.model.devices);
  };
  RunReport report =
      run_ready(graph, shown, made.model, *made.inputs, made.options, references, compile_again);
  if (!made.note.empty()) diagnostics.note({.file = graph.file}, made.note);
  return report;
}

/// A bundle is compiled, so that its programs hand out a tap, or nobody does.
void find_bundled_taps(const Graph& graph, ReadyModel& model, const RunModelOptions& options) {
  const std::vector<std::string> missing =
      take_taps(graph, model, tapped_names(graph, options.taps));
  if (!missing.empty()) {
    throw Error(ErrorCode::kUsage, "--tap: no program of the bundle hands out '" + missing.front() +
                                       "'; run the document");
  }
}

RunReport run_opened(const Bundle& bundle, const RunModelOptions& given, Diagnostics& diagnostics) {
  const auto start = Clock::now();
  RunModelOptions options = given;
  if (!options.precision.empty() && options.precision != bundle.precision()) {
    throw Error(ErrorCode::kUsage, "--precision " + options.precision +
                                       ": the bundle is compiled for " + bundle.precision() +
                                       "; compile the model again");
  }
  options.precision = bundle.precision();
  Graph graph = read_graph(bundle.document(), bundle.name() + " (document)", diagnostics);
  if (diagnostics.has_errors()) return {};
  graph.file = bundle.name();
  if (graph.npu_member("partition") == nullptr)
    throw Error(ErrorCode::kParse, "its document has no plan", {.file = bundle.name()});
  // Backends that are not loaded yet take the bundle's level, so that it runs on a better CPU, too.
  const auto level = bundle_isa_level(bundle);
  if (level && *level < isa_level()) limit_isa_level(kIsaLevels[*level]);
  PlacedModel placed = place_model(graph, options.where, {}, diagnostics);
  ReadyModel model;
  model.target = std::move(placed.target);
  model.plan = std::move(placed.plan);
  if (diagnostics.has_errors()) return {};
  model.weights = bundled_weights(bundle, graph);
  model.partitions = bundled_partitions(bundle, model.plan, model.target);
  find_bundled_taps(graph, model, options);
  const Graph tapped = with_taps(graph, model.taps);
  const Graph& shown = model.taps.empty() ? graph : tapped;
  check_options(options, shown.graph_outputs().size(), model.target);
  check_bundled_blobs(model.partitions, model.target, executor_options(options), bundle.name(),
                      model.devices, diagnostics);
  model.ready_ms = bundle.open_ms() + milliseconds_since(start);
  model.bundle = {bundle.size(), bundle.open_ms(), bundle_cpu_family(bundle)};

  const std::vector<Tensor> inputs =
      gather_inputs(graph, options.inputs, options.random_inputs, diagnostics);
  if (diagnostics.has_errors()) return {};
  const References references = make_references(
      graph, shown, model, options, compile_options(options),
      [&](const Graph& whole) {
        return whole_weights(bundle, whole, options.weights, diagnostics);
      },
      diagnostics);
  if (diagnostics.has_errors()) return {};
  const auto compile_again = [&] {
    const CompileOptions compile = compile_options(options);
    Diagnostics faults;
    std::vector<Tensor> weights = whole_weights(bundle, graph, options.weights, faults);
    if (faults.has_errors()) {
      throw Error(ErrorCode::kInvalidGraph, "the bundle lacks weights", {.file = bundle.name()});
    }
    fold_constants(graph, model.target, compile, nullptr, weights);
    return compile_plan(graph, model.plan, model.target, weights, compile, nullptr, model.devices);
  };
  return run_ready(graph, shown, model, inputs, options, references, compile_again);
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

RunReport run_model(Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics) {
  return placing_errors(graph.file, [&] { return run_document(graph, options, diagnostics); });
}

RunReport run_bundle(const Bundle& bundle, const RunModelOptions& options,
                     Diagnostics& diagnostics) {
  return placing_errors(bundle.name(), [&] { return run_opened(bundle, options, diagnostics); });
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The work behind npu-run: find plan, weights and inputs, run, compare, time, and report.
#include "npu/runtime/run_model.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <unordered_map>

#include "npu/compile/compiler.hpp"
#include "npu/device/custom_op_library.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/runtime/backend_ops.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/runtime/random_tensor.hpp"
#include "npu/runtime/trace.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/progress.hpp"
#include "npu/support/text.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/npy.hpp"

namespace npu {
namespace {

double rounded_ms(double ms) { return std::round(ms * 10000) / 10000; }

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

Target choose_target(const Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics) {
  if (graph.npu_member("target") == nullptr) {
    return load_target(options.target.empty() ? "host" : options.target);
  }
  Target target = graph_target(graph);
  if (!options.target.empty() && options.target != target.name) {
    diagnostics.warning({.file = graph.file},
                        "--target " + options.target +
                            " is ignored: the document is tagged for target '" + target.name + "'");
  }
  return target;
}

/// The plan of the document; a document without device tags gets one partition on the last device.
PartitionPlan choose_plan(Graph& graph, const Target& target, Diagnostics& diagnostics) {
  if (graph.npu_member("partition") != nullptr) return read_partition_plan(graph, diagnostics);
  const auto tagged = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                                   [](const Node& node) { return node.device.has_value(); });
  if (tagged != graph.nodes().end()) {
    diagnostics.error({.file = graph.file},
                      "node '" + tagged->name +
                          "' has a device, but the document has no partitions; "
                          "run npu-partition first");
    return {};
  }
  const std::string& device = target.devices.back().name;
  for (Node& node : graph.nodes()) node.device = device;
  return single_partition_plan(graph, device);
}

void place_input(const Graph& graph, TensorId id, Tensor tensor, const std::string& file,
                 std::vector<Tensor>& inputs, Diagnostics& diagnostics) {
  const TensorInfo& info = graph.tensor(id);
  if (tensor.dtype() != info.dtype || tensor.shape() != info.shape) {
    diagnostics.error({.file = file}, "input '" + info.name + "' is " +
                                          type_text(tensor.dtype(), tensor.shape()) +
                                          ", the graph says " + type_text(info.dtype, info.shape));
    return;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (graph.graph_inputs()[i] == id) inputs[i] = std::move(tensor);
  }
}

TensorId find_input(const Graph& graph, std::string_view name) {
  const TensorId id = graph.find_tensor(name);
  return id.valid() && graph.tensor(id).kind == TensorKind::kGraphInput ? id : TensorId{};
}

std::string input_names(const Graph& graph) {
  std::string names;
  for (const TensorId id : graph.graph_inputs()) {
    names += (names.empty() ? "'" : ", '") + graph.tensor(id).name + "'";
  }
  return names.empty() ? "none" : names;
}

/// One --inputs argument.
void read_input_file(const Graph& graph, const std::string& argument, std::vector<Tensor>& inputs,
                     std::vector<char>& given, Diagnostics& diagnostics) {
  const auto mark = [&](TensorId id) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (graph.graph_inputs()[i] == id) given[i] = 1;
    }
  };
  if (argument.ends_with(".npy")) {
    const std::size_t equals = argument.find('=');
    const std::string path = equals == std::string::npos ? argument : argument.substr(equals + 1);
    TensorId id;
    if (equals != std::string::npos) {
      id = find_input(graph, argument.substr(0, equals));
    } else if (graph.graph_inputs().size() == 1) {
      id = graph.graph_inputs().front();
    }
    if (!id.valid()) {
      diagnostics.error(
          {}, "--inputs " + argument +
                  ": expected NAME=FILE.npy with one of the graph's inputs: " + input_names(graph));
      return;
    }
    mark(id);
    place_input(graph, id, read_npy(path, &graph.tensor(id).dtype), path, inputs, diagnostics);
    return;
  }
  const SafetensorsFile file(argument);
  for (const SafetensorsEntry& entry : file.entries()) {
    const TensorId id = find_input(graph, entry.name);
    if (!id.valid()) {
      diagnostics.warning({.file = argument}, "tensor '" + entry.name +
                                                  "' is no input of the graph (" +
                                                  input_names(graph) + "); ignored");
      continue;
    }
    mark(id);
    place_input(graph, id, file.tensor(entry), argument, inputs, diagnostics);
  }
}

std::vector<Tensor> gather_inputs(const Graph& graph, const RunModelOptions& options,
                                  Diagnostics& diagnostics) {
  std::vector<Tensor> inputs(graph.graph_inputs().size());
  std::vector<char> given(inputs.size(), 0);
  for (const std::string& argument : options.inputs) {
    read_input_file(graph, argument, inputs, given, diagnostics);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (given[i] != 0) continue;
    const TensorId id = graph.graph_inputs()[i];
    if (options.random_inputs) {
      inputs[i] = random_input(graph, id, *options.random_inputs);
    } else {
      diagnostics.error({.file = graph.file}, "input '" + graph.tensor(id).name +
                                                  "' has no data: give --inputs FILE or "
                                                  "--random-inputs SEED");
    }
  }
  return inputs;
}

Tolerance tolerance_for(DType dtype, const RunModelOptions& options) {
  const bool is_narrow =
      dtype == DType::kBFloat16 || dtype == DType::kFloat16 || options.precision == "bf16";
  return {options.rtol.value_or(is_narrow ? 2e-2 : 1e-3),
          options.atol.value_or(is_narrow ? 2e-2 : 1e-4)};
}

/// A number, or the string that stands for what JSON cannot write.
Json json_safe(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string value_text(double value) {
  const Json json = json_safe(value);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

Json comparison_json(const std::string& name, const Comparison& comparison,
                     const Tolerance& tolerance) {
  Json json = {{"name", name}, {"ok", comparison.ok}};
  if (!comparison.mismatch.empty()) {
    json["mismatch"] = comparison.mismatch;
    return json;
  }
  json["max_abs"] = json_safe(comparison.max_abs);
  json["max_rel"] = json_safe(comparison.max_rel);
  json["rtol"] = tolerance.rtol;
  json["atol"] = tolerance.atol;
  json["elements"] = comparison.elements;
  json["out_of_tolerance"] = comparison.out_of_tolerance;
  if (comparison.worst_index >= 0) {
    json["worst"] = {{"index", comparison.worst_index},
                     {"actual", json_safe(comparison.worst_actual)},
                     {"expected", json_safe(comparison.worst_expected)}};
  }
  return json;
}

std::string mismatch_text(const std::string& name, const Comparison& comparison) {
  if (!comparison.mismatch.empty()) return "output '" + name + "' " + comparison.mismatch;
  return "output '" + name + "': " + std::to_string(comparison.out_of_tolerance) + " of " +
         std::to_string(comparison.elements) +
         " elements are out of tolerance; the worst is element " +
         std::to_string(comparison.worst_index) + ": " + value_text(comparison.worst_actual) +
         ", expected " + value_text(comparison.worst_expected);
}

/// Compares every output with `expected(i, name)`, which is nothing where there is none.
template <typename Expected>
Json compare_outputs(const Graph& graph, const std::vector<Tensor>& outputs,
                     const RunModelOptions& options, const std::string& against,
                     RunModelResult& result, Expected expected) {
  Json list = Json::array();
  bool ok = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.tensor(graph.graph_outputs()[i]).name;
    const Tolerance tolerance = tolerance_for(outputs[i].dtype(), options);
    Comparison comparison;
    if (const auto tensor = expected(i, name)) {
      comparison = compare_tensors(outputs[i], *tensor, tolerance);
    } else {
      comparison.ok = false;
      comparison.mismatch = "is not in the file";
    }
    ok = ok && comparison.ok;
    if (!comparison.ok)
      result.mismatches.push_back(against + ": " + mismatch_text(name, comparison));
    list.push_back(comparison_json(name, comparison, tolerance));
  }
  result.within = result.within && ok;
  return {{"ok", ok}, {"outputs", std::move(list)}};
}

Json expect_json(const Graph& graph, const std::vector<Tensor>& outputs,
                 const RunModelOptions& options, RunModelResult& result) {
  const SafetensorsFile file(options.expect);
  return compare_outputs(
      graph, outputs, options, "--expect " + options.expect, result,
      [&](std::size_t, const std::string& name) -> std::optional<Tensor> {
        const SafetensorsEntry* entry = file.find(name);
        // A single output may go by any name.
        if (entry == nullptr && outputs.size() == 1 && file.entries().size() == 1) {
          entry = &file.entries().front();
        }
        if (entry == nullptr) return std::nullopt;
        return file.tensor(*entry);
      });
}

void write_outputs(const Graph& graph, const std::vector<Tensor>& outputs,
                   const std::string& path) {
  if (path.ends_with(".npy")) {
    write_npy(path, outputs.front());
    return;
  }
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.tensor(graph.graph_outputs()[i]).name;
    const bool is_repeated = std::any_of(named.begin(), named.end(),
                                         [&](const auto& entry) { return entry.first == name; });
    if (!is_repeated) named.emplace_back(name, outputs[i]);
  }
  write_safetensors(path, named);
}

/// What the steps of a plan take by the document, if that was made by measured times, else by the
/// target's rates.
class PredictedSteps {
 public:
  PredictedSteps(const Graph& graph, const PartitionPlan& plan, const Target& target)
      : graph_(graph), plan_(plan), target_(target) {
    const Json* partition = graph.npu_member("partition");
    const Json* cost = partition == nullptr ? nullptr : find_member(*partition, "cost");
    const Json* stated = cost == nullptr ? nullptr : find_member(*cost, "steps_us");
    if (stated == nullptr || !stated->is_array() || stated->size() != plan.steps.size()) return;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!(*stated)[s].is_number()) continue;
      const bool is_partition = plan.steps[s].kind == PlanStep::Kind::kPartition;
      (is_partition ? partition_us_ : transfer_us_)
          .emplace(plan.steps[s].index, (*stated)[s].get<double>());
    }
  }

  double partition_ms(std::int32_t index) const {
    const auto stated = partition_us_.find(index);
    if (stated != partition_us_.end()) return stated->second / 1000;
    return partition_us(graph_, plan_.partitions[static_cast<std::size_t>(index)], target_) / 1000;
  }
  double transfer_ms(std::int32_t index) const {
    const auto stated = transfer_us_.find(index);
    if (stated != transfer_us_.end()) return stated->second / 1000;
    const Transfer& transfer = plan_.transfers[static_cast<std::size_t>(index)];
    return plan_transfer_us(graph_, plan_, transfer, target_) / 1000;
  }

 private:
  const Graph& graph_;
  const PartitionPlan& plan_;
  const Target& target_;
  std::unordered_map<std::int32_t, double> partition_us_;  // what the document states
  std::unordered_map<std::int32_t, double> transfer_us_;
};

Json steps_json(const PartitionPlan& plan, const Graph& graph, const Target& target,
                const RunRecord& record) {
  Json steps = Json::array();
  const PredictedSteps predicted(graph, plan, target);
  for (const StepRecord& step : record.steps) {
    const double ms = rounded_ms((step.end_us - step.start_us) / 1000);
    if (step.kind == StepRecord::Kind::kPartition) {
      const Partition& partition = plan.partitions[static_cast<std::size_t>(step.index)];
      steps.push_back({{"kind", "partition"},
                       {"id", step.index},
                       {"device", step.device},
                       {"nodes", partition.nodes.size()},
                       {"ms", ms},
                       {"predicted_ms", rounded_ms(predicted.partition_ms(step.index))}});
    } else if (step.kind == StepRecord::Kind::kTransfer) {
      const Transfer& transfer = plan.transfers[static_cast<std::size_t>(step.index)];
      steps.push_back({{"kind", "transfer"},
                       {"id", step.index},
                       {"device", step.device},
                       {"from", transfer.from},
                       {"to", transfer.to},
                       {"tensors", step.tensors},
                       {"listed_tensors", transfer.tensors.size()},
                       {"bytes", step.bytes},
                       {"ms", ms},
                       {"predicted_ms", rounded_ms(predicted.transfer_ms(step.index))}});
    } else {
      const bool is_input = step.kind == StepRecord::Kind::kInput;
      steps.push_back({{"kind", is_input ? "inputs" : "outputs"},
                       {"device", step.device},
                       {"tensors", step.tensors},
                       {"bytes", step.bytes},
                       {"ms", ms}});
    }
  }
  return steps;
}

Json bench_json(std::vector<double> times, double first_ms, double load_ms) {
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {  // nearest rank
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(times.size())));
    return rounded_ms(times[std::max<std::size_t>(rank, 1) - 1]);
  };
  const std::size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return {{"runs", times.size()},
          {"median_ms", rounded_ms(median)},
          {"min_ms", rounded_ms(times.front())},
          {"p90_ms", quantile(0.9)},
          {"p99_ms", quantile(0.99)},
          {"first_ms", rounded_ms(first_ms)},
          {"load_ms", rounded_ms(load_ms)},
          {"peak_rss_bytes", peak_rss_bytes()}};
}

Json placement_json(const Graph& graph, const PartitionPlan& plan, const Target& target,
                    const RunRecord& record) {
  const PlanMetrics metrics = plan_metrics(graph, plan, target);
  std::map<std::string, double> ms;
  for (const StepRecord& step : record.steps) {
    if (step.kind == StepRecord::Kind::kPartition)
      ms[step.device] += (step.end_us - step.start_us) / 1000;
  }
  Json placement = Json::array();
  for (const Device& device : target.devices) {
    placement.push_back({{"device", device.name},
                         {"backend", device.backend},
                         {"nodes", metrics.nodes_by_device.at(device.name)},
                         {"partitions", metrics.partitions_by_device.at(device.name)},
                         {"ms", rounded_ms(ms[device.name])}});
  }
  return placement;
}

/// What the document's plan says if it was made by measured times, else what the target's rates do.
double predicted_us(const Graph& graph, const PlanMetrics& metrics) {
  const Json* partition = graph.npu_member("partition");
  const Json* stated = partition == nullptr ? nullptr : find_member(*partition, "metrics");
  const Json* us = stated == nullptr ? nullptr : find_member(*stated, "predicted_us");
  const bool measured = partition != nullptr && find_member(*partition, "cost") != nullptr;
  if (!measured || us == nullptr || !us->is_number()) return metrics.predicted_us;
  return us->get<double>();
}

/// What the devices are opened with. Libraries are looked at here, so that a bad one is refused
/// even if no step of the plan needs it.
ExecutorOptions executor_options(const RunModelOptions& options) {
  ExecutorOptions result = options.executor;
  for (const std::string& library : options.load_ops) load_custom_ops(library);
  if (!options.load_ops.empty()) result.backend_options["load_ops"] = options.load_ops;
  if (options.promote) result.backend_options["promote"] = true;
  return result;
}

}  // namespace

std::string list_registered_ops(const RunModelOptions& options, const std::string& device) {
  const Target target = load_target(options.target.empty() ? "host" : options.target);
  return format_backend_ops(target, device, executor_options(options));
}

namespace {

/// Every weight of a bundle's graph: what the bundle has, the rest from where it was compiled from.
std::vector<Tensor> whole_weights(const Bundle& bundle, const Graph& graph,
                                  const std::vector<Tensor>& bundled,
                                  const RunModelOptions& options, Diagnostics& diagnostics) {
  bool complete = true;
  for (std::size_t i = 0; i < bundled.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    complete =
        complete && (tensor.kind != TensorKind::kWeight ||
                     (bundled[i].dtype() == tensor.dtype && bundled[i].shape() == tensor.shape));
  }
  if (complete) return bundled;
  WeightSource source = options.weights;
  const Json* seed = find_member(bundle.manifest(), "random_weights");
  if (source.file.empty() && !source.random_seed && seed != nullptr && seed->is_number_unsigned()) {
    source.random_seed = seed->get<std::uint64_t>();
  }
  return load_weights(graph, source, diagnostics);
}

/// A model that is ready to run, wherever it came from.
struct ReadyModel {
  Target target;
  PartitionPlan plan;
  std::vector<Tensor> weights;  ///< those that its programs or its outputs need
  std::vector<CompiledPartition> partitions;
  std::map<std::string, std::shared_ptr<DeviceInstance>> devices;
  double ready_ms = 0;  ///< reading or compiling it
  Json provenance;      ///< member `compile` or `bundle` of the report
};

/// Runs, compares, times and reports. `all_weights` gives every weight of the graph, for
/// comparisons that compile it anew.
RunModelResult run_ready(const Graph& graph, const ReadyModel& model,
                         const std::vector<Tensor>& inputs, const RunModelOptions& options,
                         const std::function<std::vector<Tensor>()>& all_weights) {
  RunModelResult result;
  const ExecutorOptions devices = executor_options(options);
  const PartitionPlan& plan = model.plan;
  const Target& target = model.target;
  Executor executor(graph, plan, target, model.weights, devices, model.partitions, model.devices);
  const double load_ms = model.ready_ms + executor.load_ms();
  RunRecord first;
  const std::vector<Tensor> outputs = executor.run(inputs, &first, !options.trace.empty());
  std::vector<double> times;
  RunRecord last = first;
  for (std::int64_t i = 0; i < options.bench; ++i) {
    executor.run(inputs, &last, !options.trace.empty());
    times.push_back(last.total_us / 1000);
  }

  const PlanMetrics metrics = plan_metrics(graph, plan, target);
  Json& report = result.report;
  report["model"] = graph.model_name();
  report["target"] = target.name;
  report["precision"] = options.precision;
  for (const auto& [key, value] : model.provenance.items()) report[key] = value;
  report["outputs"] = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    report["outputs"].push_back({{"name", graph.tensor(graph.graph_outputs()[i]).name},
                                 {"shape", outputs[i].shape()},
                                 {"dtype", dtype_name(outputs[i].dtype())}});
  }
  report["placement"] = placement_json(graph, plan, target, last);
  report["steps"] = steps_json(plan, graph, target, last);
  std::int64_t transfers = 0;
  std::int64_t transferred_tensors = 0;
  std::int64_t transfer_bytes = 0;
  for (const StepRecord& step : last.steps) {
    if (step.kind != StepRecord::Kind::kTransfer || step.tensors == 0) continue;
    ++transfers;
    transferred_tensors += step.tensors;
    transfer_bytes += step.bytes;
  }
  report["transfers"] = transfers;
  report["transferred_tensors"] = transferred_tensors;
  report["transfer_bytes"] = transfer_bytes;
  report["overlap"] = executor.overlaps();
  report["weights"] = {{"tensors", executor.weight_uploads()}, {"bytes", executor.weight_bytes()}};
  report["predicted_ms"] = rounded_ms(predicted_us(graph, metrics) / 1000);
  report["measured_ms"] = rounded_ms(last.total_us / 1000);
  report["first_ms"] = rounded_ms(first.total_us / 1000);
  report["load_ms"] = rounded_ms(load_ms);
  report["backends"] = executor.backend_versions();
  if (!times.empty()) report["bench"] = bench_json(times, first.total_us / 1000, load_ms);
  if (!options.expect.empty()) report["expect"] = expect_json(graph, outputs, options, result);
  if (options.measure_precision && options.precision == "bf16") {
    Executor reference(graph, plan, target, all_weights(), devices);
    report["worst_relative_error"] =
        json_safe(worst_relative_error(outputs, reference.run(inputs, nullptr)));
  }
  if (!options.verify_device.empty()) {
    const PartitionPlan whole = single_partition_plan(graph, options.verify_device);
    Executor reference(graph, whole, target, all_weights(), devices);
    RunRecord record;
    const std::vector<Tensor> expected = reference.run(inputs, &record);
    report["verify"] = compare_outputs(
        graph, outputs, options, "--verify " + options.verify_device, result,
        [&](std::size_t i, const std::string&) -> std::optional<Tensor> { return expected[i]; });
    report["verify"]["device"] = options.verify_device;
    report["verify"]["ms"] = rounded_ms(record.total_us / 1000);
  }
  if (!options.trace.empty()) write_file_atomically(options.trace, write_trace(graph, plan, last));
  if (!options.outputs.empty()) write_outputs(graph, outputs, options.outputs);
  return result;
}

void check_options(const RunModelOptions& options, const Graph& graph, const Target& target) {
  if (!options.verify_device.empty() && target.find_device(options.verify_device) == nullptr) {
    throw Error(ErrorCode::kUsage, "--verify " + options.verify_device + ": target '" +
                                       target.name + "' has no such device");
  }
  if (options.outputs.ends_with(".npy") && graph.graph_outputs().size() != 1) {
    throw Error(ErrorCode::kUsage,
                "--outputs " + options.outputs + ": a .npy file holds one tensor, the graph has " +
                    std::to_string(graph.graph_outputs().size()) + " outputs; use .safetensors");
  }
}

RunModelResult run_document(Graph& graph, RunModelOptions options, Diagnostics& diagnostics) {
  if (options.precision.empty()) options.precision = "f32";
  const ExecutorOptions devices = executor_options(options);
  ReadyModel model;
  model.target = choose_target(graph, options, diagnostics);
  model.plan = choose_plan(graph, model.target, diagnostics);
  check_options(options, graph, model.target);
  if (diagnostics.has_errors()) return {};
  const std::vector<Tensor> inputs = gather_inputs(graph, options, diagnostics);
  WeightSource source = options.weights;
  // A seed asks for made-up weights; the file that the document names is not needed then.
  if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph);
  model.weights = load_weights(graph, source, diagnostics);
  if (diagnostics.has_errors()) return {};

  CompileCache cache(options.cache);
  CompileOptions compile;
  compile.precision = options.precision;
  compile.threads = devices.threads;
  compile.backend_options = devices.backend_options;
  CompiledModel compiled =
      compile_plan(graph, model.plan, model.target, model.weights, compile, &cache);
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  model.partitions = std::move(compiled.partitions);
  model.devices = std::move(compiled.devices);
  model.ready_ms = compiled.compile_ms;
  model.provenance["compile"] = {{"ms", rounded_ms(compiled.compile_ms)},
                                 {"cache", cache.enabled()},
                                 {"cache_hits", compiled.cache_hits},
                                 {"cache_misses", compiled.cache_misses}};
  return run_ready(graph, model, inputs, options, [&] { return model.weights; });
}

}  // namespace

namespace {

RunModelResult run_opened(const Bundle& bundle, const RunModelOptions& given,
                          Diagnostics& diagnostics) {
  const auto start = std::chrono::steady_clock::now();
  RunModelOptions options = given;
  if (!options.precision.empty() && options.precision != bundle.precision()) {
    throw Error(ErrorCode::kUsage, "--precision " + options.precision +
                                       ": the bundle is compiled for " + bundle.precision() +
                                       "; compile the model again");
  }
  options.precision = bundle.precision();
  Graph graph = read_graph(bundle.document(), bundle.name(), diagnostics);
  if (diagnostics.has_errors()) return {};
  ReadyModel model;
  model.target = choose_target(graph, options, diagnostics);
  if (graph.npu_member("partition") == nullptr) {
    throw Error(ErrorCode::kParse, "its document has no plan", {.file = bundle.name()});
  }
  model.plan = read_partition_plan(graph, diagnostics);
  check_options(options, graph, model.target);
  if (diagnostics.has_errors()) return {};
  model.weights = bundled_weights(bundle, graph);
  model.partitions = bundled_partitions(bundle, model.plan, model.target);
  model.ready_ms =
      bundle.open_ms() +
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  model.provenance["bundle"] = {{"bytes", bundle.size()},
                                {"open_ms", rounded_ms(bundle.open_ms())}};

  const std::vector<Tensor> inputs = gather_inputs(graph, options, diagnostics);
  const bool compiles_again =
      !options.verify_device.empty() || (options.measure_precision && options.precision == "bf16");
  std::vector<Tensor> all_weights;
  if (compiles_again && !diagnostics.has_errors()) {
    all_weights = whole_weights(bundle, graph, model.weights, options, diagnostics);
  }
  if (diagnostics.has_errors()) return {};
  return run_ready(graph, model, inputs, options, [&] { return all_weights; });
}

/// A backend names node and argument, but does not know the file.
template <typename Body>
RunModelResult placing_errors(const std::string& file, Body&& body) {
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

RunModelResult run_model(Graph& graph, const RunModelOptions& options, Diagnostics& diagnostics) {
  return placing_errors(graph.file, [&] { return run_document(graph, options, diagnostics); });
}

RunModelResult run_bundle(const Bundle& bundle, const RunModelOptions& options,
                          Diagnostics& diagnostics) {
  return placing_errors(bundle.name(), [&] { return run_opened(bundle, options, diagnostics); });
}

namespace {

std::string number_text(const Json& json) {
  return json.is_string() ? json.get<std::string>() : fixed_text(json.get<double>(), 3);
}

std::string scientific_text(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", json.get<double>());
  return text.data();
}

std::string comparison_table(const Json& comparison) {
  std::vector<std::vector<std::string>> rows{
      {"output", "result", ">max abs", ">max rel", ">outside"}};
  for (const Json& output : comparison["outputs"]) {
    if (const Json* mismatch = find_member(output, "mismatch")) {
      rows.push_back({output["name"].get<std::string>(), mismatch->get<std::string>(), "", "", ""});
    } else {
      rows.push_back({output["name"].get<std::string>(),
                      output["ok"].get<bool>() ? "ok" : "differs",
                      scientific_text(output["max_abs"]), scientific_text(output["max_rel"]),
                      output["out_of_tolerance"].dump() + " of " + output["elements"].dump()});
    }
  }
  return table_text(rows);
}

}  // namespace

std::string format_run_report(const Json& report) {
  std::vector<std::vector<std::string>> placement{
      {"device", "backend", ">nodes", ">partitions", ">ms"}};
  for (const Json& row : report["placement"]) {
    placement.push_back({row["device"].get<std::string>(), row["backend"].get<std::string>(),
                         row["nodes"].dump(), row["partitions"].dump(), number_text(row["ms"])});
  }
  std::string text = table_text(placement) + "\n";
  std::vector<std::vector<std::string>> steps{
      {"step", "device", ">nodes", ">tensors", ">bytes", ">ms", ">predicted ms"}};
  for (const Json& row : report["steps"]) {
    const std::string kind = row["kind"].get<std::string>();
    const auto field = [&](const char* key) {
      const Json* value = find_member(row, key);
      return value == nullptr ? std::string() : value->dump();
    };
    const Json* bytes = find_member(row, "bytes");
    const Json* predicted = find_member(row, "predicted_ms");
    const std::string name = kind == "partition" ? "partition " + field("id")
                             : kind == "transfer"
                                 ? "transfer " + field("from") + " -> " + field("to")
                                 : kind;
    steps.push_back({name, row["device"].get<std::string>(), field("nodes"), field("tensors"),
                     bytes == nullptr ? "" : bytes_text(bytes->get<double>()),
                     number_text(row["ms"]), predicted == nullptr ? "" : number_text(*predicted)});
  }
  text += table_text(steps) + "\n";
  std::vector<std::vector<std::string>> totals{{"total", ">"}};
  if (const Json* error = find_member(report, "worst_relative_error")) {
    totals.push_back({"worst relative error", scientific_text(*error)});
  }
  totals.push_back({"transfers", report["transfers"].dump()});
  totals.push_back({"transferred", bytes_text(report["transfer_bytes"].get<double>())});
  totals.push_back({"weights", bytes_text(report["weights"]["bytes"].get<double>())});
  totals.push_back({"load ms", number_text(report["load_ms"])});
  totals.push_back({"first run ms", number_text(report["first_ms"])});
  totals.push_back({"measured ms", number_text(report["measured_ms"])});
  totals.push_back({"predicted ms", number_text(report["predicted_ms"])});
  if (const Json* bench = find_member(report, "bench")) {
    for (const auto& [key, name] : {std::pair{"median_ms", "median ms"},
                                    {"min_ms", "min ms"},
                                    {"p90_ms", "p90 ms"},
                                    {"p99_ms", "p99 ms"}}) {
      totals.push_back({name, number_text((*bench)[key])});
    }
    totals.push_back({"peak memory", bytes_text((*bench)["peak_rss_bytes"].get<double>())});
  }
  text += table_text(totals);
  if (const Json* expect = find_member(report, "expect")) {
    text += "\nagainst the expected outputs\n" + comparison_table(*expect);
  }
  if (const Json* verify = find_member(report, "verify")) {
    text += "\nagainst the whole graph on " + (*verify)["device"].get<std::string>() + " (" +
            number_text((*verify)["ms"]) + " ms)\n" + comparison_table(*verify);
  }
  return text;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile: place the document if it says nothing of devices, find weights,
// compile, and measure what a lower precision costs.
//
// The error of bf16 is measured, not estimated: the model runs in both precisions on random inputs,
// and each output's largest difference is divided by its largest magnitude. Relative errors of
// elements near 0 would say nothing about a result as a whole. Cost: the backends'.
#include "npu/runtime/compile_model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/custom_op_library.hpp"
#include "device/device_model.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "runtime/prepare_compile.hpp"
#include "runtime/random_tensor.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kSamples = 3;

double measure_error(const Graph& graph, const CompiledModel& model, const Target& target,
                     const std::vector<Tensor>& weights, const CompileOptions& options,
                     CompileCache& cache) {
  ExecutorOptions devices;
  devices.threads = options.threads;
  devices.backend_options = options.backend_options;
  CompileOptions exact = options;
  exact.precision = "f32";
  const CompiledModel reference_model =
      compile_plan(graph, model.plan, target, weights, exact, &cache, model.devices);
  Executor executor(graph, model.plan, target, weights, devices, model.partitions, model.devices);
  Executor reference(graph, model.plan, target, weights, devices, reference_model.partitions,
                     reference_model.devices);
  double worst = 0;
  for (std::uint64_t seed = 0; seed < kSamples; ++seed) {
    std::vector<Tensor> inputs;
    for (const TensorId id : graph.graph_inputs()) inputs.push_back(random_input(graph, id, seed));
    worst = std::max(
        worst, worst_relative_error(executor.run(inputs, nullptr), reference.run(inputs, nullptr)));
  }
  return worst;
}

/// A backend names node and argument, but does not know the file.
template <typename Body>
void placing_compile_errors(const Graph& graph, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (!error.location().file.empty() || error.code() == ErrorCode::kUsage) throw;
    throw Error(error.code(), error.message(), {.file = graph.file});
  }
}

}  // namespace

double worst_relative_error(const std::vector<Tensor>& actual,
                            const std::vector<Tensor>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (is_floating_point(actual[i].dtype())) {
      worst = std::max(worst, relative_error(actual[i], expected[i]));
    }
  }
  return worst;
}

const Tensor* PreparedBefore::find(const TensorInfo& weight) const {
  const TensorId id = graph == nullptr ? TensorId{} : graph->find_tensor(weight.name);
  if (!id.valid() || graph->tensor(id).weight_key != weight.weight_key) return nullptr;
  const Tensor& tensor = compile->weights.at(index_of(id));
  const bool is_same = tensor.data() != nullptr && tensor.dtype() == weight.dtype &&
                       tensor.shape() == weight.shape && !graph->tensor(id).is_constant;
  return is_same ? &tensor : nullptr;
}

PreparedCompile prepare_compile(Graph& graph, const CompileModelOptions& options,
                                CompileCache& cache, Diagnostics& diagnostics,
                                const PreparedBefore& before) {
  PreparedCompile prepared;
  for (const std::string& library : options.load_ops) load_custom_ops(library);
  prepared.options = options.compile;
  prepared.options.layouts = true;
  Json& devices = prepared.options.backend_options;
  if (!options.load_ops.empty()) devices["load_ops"] = options.load_ops;
  if (options.promote) devices["promote"] = true;
  prepared.placed = place_model(graph, options.where, options.load_ops, diagnostics);
  if (diagnostics.has_errors()) return prepared;
  WeightSource source = options.weights;
  if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph);
  prepared.has_random_weights = source.random_seed && source.file.empty();
  prepared.weights = load_weights(graph, source, diagnostics,
                                  [&](const TensorInfo& weight) { return before.find(weight); });
  if (diagnostics.has_errors()) return prepared;
  placing_compile_errors(graph, [&] {
    prepared.folded =
        fold_constants(graph, prepared.placed.target, prepared.options, &cache, prepared.weights);
  });
  return prepared;
}

CompileModelResult finish_compile(Graph& graph, PreparedCompile prepared,
                                  const CompileModelOptions& options, CompileCache& cache,
                                  KnownPartitions known, Diagnostics& diagnostics) {
  CompileModelResult result;
  const CompileOptions& compile = prepared.options;
  const Target& target = prepared.placed.target;
  const std::vector<Tensor>& weights = prepared.weights;
  std::optional<double> worst_error;
  std::vector<DeviceMemoryNeed> needs;
  placing_compile_errors(graph, [&] {
    result.model = compile_graph(graph, prepared.placed.plan, target, weights, compile, &cache,
                                 prepared.folded.devices, std::move(known));
    std::vector<MemoryReport> reports;
    for (std::size_t i = 0; i < result.model.partitions.size(); ++i) {
      reports.push_back(reported_memory(graph, result.model.plan.partitions[i],
                                        *result.model.partitions[i].report));
    }
    needs = memory_needs(graph, result.model.plan, target, result.model.partitions, reports);
    add_memory_limits(needs, target, memory_limit_of(compile.backend_options),
                      result.model.devices);
    check_memory(needs, graph.file);
    if (options.measure_precision && compile.precision != "f32") {
      worst_error = measure_error(graph, result.model, target, weights, compile, cache);
    }
  });
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  warn_of_refusals(graph, result.model, diagnostics);
  if (prepared.placed.by_cost()) {
    diagnostics.note({.file = graph.file}, prepared.placed.note);
  }
  result.report = compile_report(result.model, prepared.folded);
  result.report.cache_enabled = cache.enabled();
  result.report.precision = compile.precision;
  result.report.worst_relative_error = worst_error;
  result.report.memory = std::move(needs);
  result.content = bundle_content(graph, result.model, target, weights, compile);
  if (prepared.has_random_weights) {
    result.content.provenance["random_weights"] = *options.weights.random_seed;
  }
  result.target = std::move(prepared.placed.target);
  result.weights = std::move(prepared.weights);
  return result;
}

CompileModelResult compile_model(Graph& graph, const CompileModelOptions& options,
                                 Diagnostics& diagnostics) {
  CompileCache cache(options.cache);
  PreparedCompile prepared = prepare_compile(graph, options, cache, diagnostics);
  if (diagnostics.has_errors()) return {};
  return finish_compile(graph, std::move(prepared), options, cache, {}, diagnostics);
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile: place the document if it says nothing of devices, find weights,
// compile, and measure what a lower precision costs.
//
// The error of bf16 is measured, not estimated: the model runs in both precisions on random inputs,
// and each output's largest difference is divided by its largest magnitude. Relative errors of
// elements near 0 would say nothing about a result as a whole. Cost: the backends'.
#include "npu/runtime/compile_model.hpp"

#include <algorithm>

#include "device/custom_op_library.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "runtime/place_model.hpp"
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

CompileModelResult compile_model(Graph& graph, const CompileModelOptions& options,
                                 Diagnostics& diagnostics) {
  CompileModelResult result;
  for (const std::string& library : options.load_ops) load_custom_ops(library);
  CompileOptions compile = options.compile;
  compile.layouts = true;
  if (!options.load_ops.empty()) compile.backend_options["load_ops"] = options.load_ops;
  if (options.promote) compile.backend_options["promote"] = true;

  const PlacedModel placed = place_model(graph, options.where, options.load_ops, diagnostics);
  const Target& target = placed.target;
  if (diagnostics.has_errors()) return result;
  WeightSource source = options.weights;
  if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph);
  std::vector<Tensor> weights = load_weights(graph, source, diagnostics);
  if (diagnostics.has_errors()) return result;

  CompileCache cache(options.cache);
  std::optional<double> worst_error;
  std::vector<DeviceMemoryNeed> needs;
  FoldedConstants folded;
  try {
    folded = fold_constants(graph, target, compile, &cache, weights);
    result.model =
        compile_graph(graph, placed.plan, target, weights, compile, &cache, folded.devices);
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
  } catch (const Error& error) {
    // A backend names node and argument, but does not know the file.
    if (!error.location().file.empty() || error.code() == ErrorCode::kUsage) throw;
    throw Error(error.code(), error.message(), {.file = graph.file});
  }
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  warn_of_refusals(graph, result.model, diagnostics);
  if (placed.by_cost()) diagnostics.note({.file = graph.file}, placed.note);
  result.report = compile_report(result.model, folded);
  result.report.cache_enabled = cache.enabled();
  result.report.precision = compile.precision;
  result.report.worst_relative_error = worst_error;
  result.report.memory = std::move(needs);
  result.content = bundle_content(graph, result.model, target, weights, compile);
  if (options.weights.random_seed && source.file.empty()) {
    result.content.provenance["random_weights"] = *options.weights.random_seed;
  }
  result.target = target;
  result.weights = std::move(weights);
  return result;
}

}  // namespace npu

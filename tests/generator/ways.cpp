// SPDX-License-Identifier: Apache-2.0
#include "ways.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "device/isa_level.hpp"
#include "frontend/frontend.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/align.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/target/select_devices.hpp"
#include "npu/tensor/safetensors.hpp"
#include "onnx_network.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/quantize/quantize.hpp"
#include "profile/calibrate_model.hpp"
#include "runtime/place_model.hpp"

namespace npu::test {
namespace {

void stop_on_errors(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level == Level::kError) throw Error(ErrorCode::kInvalidGraph, diagnostic.text);
  }
}

/// As the next program of a pipe reads it.
Graph through_pipe(const Graph& graph) {
  Diagnostics diagnostics;
  Graph read = read_graph(write_graph(graph), "<stdin>", diagnostics);
  stop_on_errors(diagnostics);
  return read;
}

Graph quantized(const Graph& graph, const std::vector<Tensor>& inputs, bool for_this_cpu) {
  // Samples are read from files alone.
  const std::string file = std::filesystem::temp_directory_path() /
                           ("npu_generator_" + std::to_string(getpid()) + ".safetensors");
  std::vector<std::pair<std::string, Tensor>> samples;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    samples.emplace_back(graph.tensor(graph.graph_inputs()[i]).name, inputs[i]);
  write_safetensors(file, samples);
  Diagnostics diagnostics;
  CalibrateOptions options{.samples = {{std::nullopt, file}},
                           .target = "host",
                           .weights = {},
                           .threads = 1,
                           .error_samples = 0};
  const TensorRanges ranges = calibrate_model(graph, options, {}, diagnostics);
  std::filesystem::remove(file);
  stop_on_errors(diagnostics);
  Graph result = graph;
  QuantizeOptions precision;
  if (for_this_cpu) precision.target = "host";
  quantize_model(result, ranges, precision, diagnostics);
  stop_on_errors(diagnostics);
  return through_pipe(result);
}

std::vector<Tensor> weights_of(const Graph& graph, const std::map<std::string, Tensor>& data) {
  std::vector<Tensor> weights(graph.tensors().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind != TensorKind::kWeight || tensor.is_folded()) continue;
    weights[i] = data.at(tensor.name);
  }
  return weights;
}

/// What the document or the model that it was imported from holds itself.
void add_weights(const Graph& graph, std::map<std::string, Tensor>& data) {
  const auto is_missing = [&](const TensorInfo& tensor) {
    return tensor.kind == TensorKind::kWeight && !data.contains(tensor.name);
  };
  if (std::none_of(graph.tensors().begin(), graph.tensors().end(), is_missing)) return;
  Diagnostics diagnostics;
  Graph own = graph;
  const std::vector<Tensor> loaded = load_weights(own, {}, diagnostics);
  stop_on_errors(diagnostics);
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    if (is_missing(graph.tensors()[i])) data[graph.tensors()[i].name] = loaded[i];
  }
}

void place(Graph& graph, const Way& way) {
  Diagnostics diagnostics;
  TagOptions tags;
  for (const auto& [node, device] : way.moved) tags.force.push_back({device, node});
  tag_ops(graph, select_devices(load_target(way.target), way.devices, {}), tags, diagnostics);
  stop_on_errors(diagnostics);
  if (way.fused) {
    graph = through_pipe(graph);
    fuse_ops(graph, {}, diagnostics);
  }
  graph = through_pipe(graph);
  PartitionOptions options;
  options.strategy = way.strategy;
  partition_graph(graph, options, diagnostics);
  if (!way.align.empty()) {
    graph = through_pipe(graph);
    align_layout(graph, {.algorithm = way.align}, diagnostics);
  }
  stop_on_errors(diagnostics);
  graph = through_pipe(graph);
}

/// Two runs at once, which give the same.
std::vector<Tensor> run_twice(Executor& executor, const std::vector<Tensor>& inputs) {
  const auto first = executor.start(inputs, nullptr);
  const auto second = executor.start(inputs, nullptr);
  std::vector<Tensor> outputs = executor.wait(first);
  if (!same_bits(outputs, executor.wait(second)))
    throw Error(ErrorCode::kFailed, "two runs in flight differ");
  return outputs;
}

}  // namespace

Run run_graph(Graph graph, std::map<std::string, Tensor> data, const std::vector<Tensor>& inputs,
              const Way& way) {
  Run run{.graph = {}, .data = std::move(data), .devices = {}, .inputs = inputs, .outputs = {}};
  if (way.precision == "int8") graph = quantized(graph, inputs, way.for_this_cpu);
  add_weights(graph, run.data);
  run.graph = graph;
  place(graph, way);
  Diagnostics diagnostics;
  PlacedModel placed = place_model(graph, {}, {}, diagnostics);
  stop_on_errors(diagnostics);
  std::vector<Tensor> weights = weights_of(graph, run.data);
  CompileOptions compile;
  compile.precision = way.precision == "int8" ? "f32" : way.precision;
  compile.threads = way.threads;
  compile.layouts = true;
  FoldedConstants folded = fold_constants(graph, placed.target, compile, nullptr, weights);
  CompiledModel model = way.bundle ? compile_graph(graph, placed.plan, placed.target, weights,
                                                   compile, nullptr, folded.devices)
                                   : compile_plan(graph, placed.plan, placed.target, weights,
                                                  compile, nullptr, folded.devices);
  for (const FoldedNode& node : graph.folded()) run.devices[node.node.name] = "folded";
  for (const Node& node : graph.nodes()) run.devices[node.name] = node.device.value_or("");
  ExecutorOptions options;
  options.threads = way.threads;
  options.queues = way.in_flight > 1;
  options.in_flight = way.in_flight;
  const auto execute = [&](Executor& executor) {
    return way.in_flight > 1 ? run_twice(executor, inputs) : executor.run(inputs, nullptr);
  };
  if (!way.bundle) {
    Executor executor(graph, model.plan, placed.target, weights, options, model.partitions,
                      model.devices);
    run.outputs = execute(executor);
    return run;
  }
  const auto bundle = Bundle::from_bytes(
      bundle_bytes(bundle_content(graph, model, placed.target, weights, compile)), "network.npub");
  const Graph bundled = read_valid_graph(bundle->document(), bundle->name());
  const PartitionPlan plan = read_partition_plan(bundled, diagnostics);
  stop_on_errors(diagnostics);
  Executor executor(bundled, plan, placed.target, bundled_weights(*bundle, bundled), options,
                    bundled_partitions(*bundle, plan, placed.target), model.devices);
  run.outputs = execute(executor);
  return run;
}

Run run_network(const Network& network, const Way& way) {
  if (way.opset == 0) {
    // Calibration reads weights from the document.
    const Json document = network.document(way.precision == "int8");
    return run_graph(read_valid_graph(document.dump(), "network.json"), network.data(),
                     network.inputs(), way);
  }
  Diagnostics diagnostics;
  std::optional<Graph> graph =
      import_model("", onnx_model_of(network, way.opset, way.onnx_seed), {}, diagnostics);
  stop_on_errors(diagnostics);
  if (!graph) throw Error(ErrorCode::kInvalidGraph, "no frontend takes it");
  const auto data = network.data();
  std::vector<Tensor> inputs;
  for (const TensorId id : graph->graph_inputs()) inputs.push_back(data.at(graph->tensor(id).name));
  return run_graph(*std::move(graph), {}, inputs, way);
}

Way draw_way(Random& random, const Network& network, const NetworkStyle& style) {
  NodeDraw dice(random, "", DType::kFloat32);
  Way way;
  const std::int64_t kind = dice.pick(0, 99);
  if (kind < 12) way.devices = {"cpu"};
  bool has_products = false;
  for (const NetworkNode& node : network.nodes) {
    has_products = has_products || is_product(fusion_role(node.op));
    if (kind >= 75 && style.opset == 0 && style.turn < 0 && dice.chance(35) && node.op != kGetitem)
      way.moved[network.name_of(node)] = "cpu";
  }
  way.fused = dice.chance(65);
  way.bundle = dice.chance(40);
  way.align = dice.one_of<const char*>({"", "", "greedy", "optimal"});
  way.strategy =
      dice.one_of({Strategy::kConvex, Strategy::kConvex, Strategy::kConvex, Strategy::kContiguous,
                   Strategy::kMinCut, Strategy::kBlocks, Strategy::kResources});
  way.threads = static_cast<std::int32_t>(dice.pick(1, 2));
  way.opset = style.opset;
  way.onnx_seed = random();
  if (style.dtype != DType::kFloat32) return way;
  const std::int64_t precision = dice.pick(0, 99);
  const bool is_plain = !style.has_specials && !style.may_be_empty;
  const std::int64_t int8 = style.is_chain ? 60 : has_products ? 30 : 8;
  if (is_plain && precision < int8) {
    way.precision = "int8";
    way.for_this_cpu = way.onnx_seed % 4 != 0;
  } else if (is_plain && precision < int8 + 15) {
    way.precision = "f16";
  } else if (precision > (is_plain ? 94 : 54) && isa_level() > *find_isa_level("generic")) {
    way.precision = "bf16";
  }
  return way;
}

Way draw_gpu_way(Random& random) {
  NodeDraw dice(random, "", DType::kFloat32);
  Way way{.target = dice.chance(50) ? "opencl" : "trio", .devices = {}};
  way.fused = dice.chance(70);
  way.bundle = dice.chance(40);
  way.threads = static_cast<std::int32_t>(dice.pick(1, 2));
  if (way.target == "opencl") way.in_flight = dice.chance(30) ? 2 : 1;  // the others have no queues
  return way;
}

std::string Way::commands(const std::string& file) const {
  const std::string inputs = file.substr(0, file.rfind('.')) + ".inputs.safetensors";
  std::string text = "npu-tag " + file;
  if (precision == "int8") {
    text = "npu-profile --calibrate " + inputs + " " + file + " -o ranges.json && " +
           "npu-align --quantize int8 " + (for_this_cpu ? "--target host " : "") +
           "--ranges ranges.json " + file + " | npu-tag";
  }
  if (target != "host") text += " --target " + target;
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : ",") + device;
  if (!list.empty() && list != "npu,cpu") text += " --devices " + list;
  for (const auto& [node, device] : moved) text += " --force " + device + "=" + node;
  if (fused) text += " | npu-fuse";
  text += " | npu-partition";
  for (const StrategyInfo& info : partition_strategies()) {
    if (info.strategy == strategy && strategy != Strategy::kConvex)
      text += " --strategy " + std::string(info.name);
  }
  if (!align.empty()) text += " | npu-align --algorithm " + align;
  const std::string run = " --threads " + std::to_string(threads) + " --inputs " + inputs +
                          (in_flight > 1 ? " --in-flight 2" : "");
  const std::string as =
      precision == "f32" || precision == "int8" ? "" : " --precision " + precision;
  return text + (bundle ? " | npu-compile --threads " + std::to_string(threads) + as +
                              " -o network.npub && npu-run network.npub" + run
                        : " | npu-run" + as + run);
}

}  // namespace npu::test

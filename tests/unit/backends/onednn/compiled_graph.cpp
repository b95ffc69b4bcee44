// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/compiled_graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "reference.hpp"
#include "test_paths.hpp"

namespace npu::test::onednn {

namespace {

/// What a graph gives by definition; nothing for an op that has none.
std::vector<std::vector<double>> results_by_definition(const CompiledGraph& compiled) {
  Run run;
  run.graph = compiled.graph;
  for (std::size_t i = 0; i < compiled.weights.size(); ++i) {
    const TensorInfo& info = compiled.graph.tensors()[i];
    if (info.kind == TensorKind::kWeight) run.data[info.name] = compiled.weights[i];
  }
  for (const Node& node : compiled.graph.nodes()) run.devices[node.name] = "cpu";
  run.inputs = compiled.inputs;
  std::vector<std::vector<double>> results;
  try {
    for (const Values& output : reference(run, "f32")) {
      std::vector<double>& values = results.emplace_back();
      for (const Bounded& each : output.data) {
        REQUIRE(each.is_known());
        values.push_back(static_cast<double>(static_cast<float>(each.value)));
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidGraph) throw;
    results.clear();
  }
  return results;
}

/// What the device cpu gives, or by definition in a build that has no such device.
std::vector<std::vector<double>> expected_results(const CompiledGraph& compiled) {
  if (!NPU_TEST_HAS_BACKENDS) return results_by_definition(compiled);
  ::setenv("NPU_BACKEND_PATH", backend_dir(), 1);
  const Target target = load_target("host");
  Graph graph = compiled.graph;
  for (Node& node : graph.nodes()) node.device = "cpu";
  const PartitionPlan plan = single_partition_plan(graph, "cpu");
  ExecutorOptions options;
  options.threads = 1;
  std::vector<std::vector<double>> results;
  for (const Tensor& output : compile_and_load(graph, plan, target, compiled.weights, options)
                                  .run(compiled.inputs, nullptr)) {
    std::vector<double>& values = results.emplace_back();
    for (std::int64_t i = 0; i < output.element_count(); ++i) {
      values.push_back(static_cast<double>(output.as<float>()[i]));
    }
  }
  return results;
}

Tensor random_values(const TensorInfo& info, std::mt19937& engine) {
  Tensor tensor(info.dtype, info.shape);
  if (info.dtype == DType::kBool) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.as_mutable<bool>()[i] = engine() % 3 != 0;
    }
    return tensor;
  }
  const bool is_variance = info.name.find("var") != std::string::npos;
  std::uniform_real_distribution<float> distribution(is_variance ? 0.5F : -1.0F, 1.0F);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.as_mutable<float>()[i] = distribution(engine);
  }
  return tensor;
}

npu_tensor view(const Tensor& tensor, const char* name) {
  return tensor_view(name, static_cast<npu_dtype>(tensor.dtype()), tensor.shape(), tensor.data(),
                     tensor.bytes());
}

/// Of one run: those of the report's steps are those of the nodes that they name.
void check_times(const CompiledGraph& compiled, const std::vector<npu_span>& by_step,
                 std::vector<npu_span> by_node) {
  const Json& steps = compiled.report.at("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json* node = find_member(steps[i], "node");
    if (node == nullptr) continue;
    const NodeId id = compiled.graph.find_node(node->get<std::string>());
    REQUIRE(id.valid());
    by_node[static_cast<std::size_t>(id.value)].end -= by_step[i].end - by_step[i].begin;
  }
  for (const npu_span& left : by_node) CHECK(left.end == left.begin);
}

}  // namespace

CompiledGraph::CompiledGraph(const GraphBuilder& builder, const std::string& options,
                             int compile_threads, const std::string& device_options)
    : graph(builder.build()),
      text(with_groups(builder.text())),
      device(open_device(compile_threads, device_options)) {
  std::mt19937 engine(5);
  weights.resize(graph.tensors().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (graph.tensors()[i].kind == TensorKind::kWeight) {
      weights[i] = random_values(graph.tensors()[i], engine);
    }
  }
  for (const TensorId id : graph.graph_inputs()) {
    inputs.push_back(random_values(graph.tensor(id), engine));
  }
  std::vector<npu_tensor> views;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (graph.tensors()[i].kind != TensorKind::kWeight) continue;
    views.push_back(view(weights[i], graph.tensors()[i].name.c_str()));
  }
  CallError error;
  const npu_status status =
      api().compile(device.get(), text, views, options.c_str(), &blob, &error);
  INFO(error.text);
  REQUIRE(status == NPU_OK);
  std::string bytes;
  REQUIRE(api().blob_report(device.get(), blob, &bytes, &error) == NPU_OK);
  report = Json::parse(bytes);
}

std::vector<Tensor> CompiledGraph::run(npu_device* on) const {
  LoadedModel model;
  Program program;
  CallError error;
  const npu_status status = load(on, blob, {}, model, program, error);
  INFO(error.text);
  REQUIRE(status == NPU_OK);
  std::vector<Buffer> arguments;
  for (const Tensor& input : inputs) {
    npu_buffer* buffer = nullptr;
    REQUIRE(api().import_tensor(on, view(input, ""), &buffer, &error) == NPU_OK);
    arguments.emplace_back(buffer);
  }
  std::vector<Buffer> outputs;
  for (const TensorId id : graph.graph_outputs()) {
    const TensorInfo& info = graph.tensor(id);
    npu_buffer* buffer = nullptr;
    REQUIRE(api().create_buffer(on, static_cast<npu_dtype>(info.dtype), info.shape, &buffer,
                                &error) == NPU_OK);
    outputs.emplace_back(buffer);
  }
  std::vector<npu_span> by_step(report.at("steps").size());
  std::vector<npu_span> by_node(graph.nodes().size());
  auto profile = sized_struct<npu_profile>();
  profile.steps = by_step.data();
  profile.step_count = by_step.size();
  profile.nodes = by_node.data();
  profile.node_count = by_node.size();
  for (int repeat = 0; repeat < 2; ++repeat) {  // a second run meets used memory
    REQUIRE(api().run(program.get(), handles(arguments), handles(outputs), &error, &profile) ==
            NPU_OK);
  }
  check_times(*this, by_step, by_node);
  ++profile.step_count;
  CHECK(api().run(program.get(), handles(arguments), handles(outputs), &error, &profile) ==
        NPU_INVALID);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorInfo& info = graph.tensor(graph.graph_outputs()[i]);
    Tensor result(info.dtype, info.shape);
    REQUIRE(api().read(outputs[i].get(), result.mutable_data(), result.bytes(), &error) == NPU_OK);
    results.push_back(result);
  }
  return results;
}

double CompiledGraph::error_against_cpu(npu_device* on) {
  const auto expected = expected_results(*this);
  const auto actual = run(on);
  double worst = 0;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    double largest = 1e-3;
    double difference = 0;
    REQUIRE(std::ssize(expected[o]) == actual[o].element_count());
    for (std::size_t i = 0; i < expected[o].size(); ++i) {
      const auto a = static_cast<double>(actual[o].as<float>()[i]);
      const double b = expected[o][i];
      REQUIRE(std::isfinite(a));
      largest = std::max(largest, std::abs(b));
      difference = std::max(difference, std::abs(a - b));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

bool has_bits_by_threads(const CompiledGraph& compiled) {
  const Json& steps = compiled.report.at("steps");
  return std::any_of(steps.begin(), steps.end(),
                     [](const Json& step) { return step.at("bits_by_threads").get<bool>(); });
}

void check_threads(const CompiledGraph& compiled, const GraphBuilder& graph,
                   std::initializer_list<int> counts) {
  const bool may_differ = has_bits_by_threads(compiled);
  const auto results = compiled.run(compiled.device.get());
  for (const int threads : counts) {
    INFO(threads << " threads");
    CompiledGraph other(graph, "{}", threads);
    if (may_differ) {
      CHECK(other.error_against_cpu() < 2e-5);
      continue;
    }
    const auto again = other.run(other.device.get());
    CHECK(std::memcmp(results[0].data(), again[0].data(), results[0].bytes()) == 0);
  }
}

bool runs_kernel(const CompiledGraph& compiled, const std::string& name) {
  for (const Json& step : compiled.report.at("steps")) {
    if (step.at("kernel") == name) return true;
  }
  return false;
}

void check_chosen(const CompiledGraph& compiled, const std::string& name) {
  if (has_avx2()) {
    CHECK(runs_kernel(compiled, name));
    return;
  }
  bool is_explained = false;
  for (const Json& step : compiled.report.at("steps")) {
    const Json* why = find_member(step, "why");
    for (const Json& each : why == nullptr ? Json::array() : *why) {
      is_explained = is_explained || (each.at("kernel") == name &&
                                      each.at("reason") == "it needs AVX2, AVX-512 or NEON");
    }
  }
  CHECK(is_explained);
}

void check_bfloat16(const GraphBuilder& builder, double most) {
  const std::string options = kBFloat16;
  if (has_avx2()) {
    for (const char* rate : {kFastBFloat16, kSlowBFloat16}) {
      CompiledGraph rounded(builder, options, 2, rate);
      INFO(rate);
      CHECK(rounded.error_against_cpu() < most);
    }
    return;
  }
  const Device device = open_device(1);
  const std::string text = builder.text();
  std::string blob;
  CallError error;
  CHECK(api().compile(device.get(), text, {}, options.c_str(), &blob, &error) == NPU_UNSUPPORTED);
  CHECK(std::string(error.text) ==
        "precision bf16 needs a CPU with AVX2, AVX-512 or NEON; the level here is '" + isa_level() +
            "'");
}

GraphBuilder& add_norm(GraphBuilder& graph, const std::string& name, const std::string& input,
                       const Shape& shape) {
  const Shape channels{shape[1]};
  for (const char* part : {"weight", "bias", "mean", "var"}) graph.weight(name + part, channels);
  graph.node(name, "aten.batch_norm.default",
             {input, "p_" + name + "weight", "p_" + name + "bias", "p_" + name + "mean",
              "p_" + name + "var"},
             shape,
             {{"training", false}, {"momentum", 0.1}, {"eps", 1e-3}, {"cudnn_enabled", true}});
  return graph;
}

GraphBuilder residual_block(std::int64_t channels) {
  GraphBuilder graph;
  const Shape shape{1, channels, 8, 8};
  graph.input("x", shape);
  graph.weight("w1", {channels, channels, 3, 3}).weight("w2", {channels, channels, 3, 3});
  graph.node("a", "aten.relu.default", {"x"}, shape);
  graph.node("c1", "aten.conv2d.default", {"a", "p_w1"}, shape, {{"padding", {1, 1}}});
  add_norm(graph, "n1", "c1", shape).node("r1", "aten.relu_.default", {"n1"}, shape);
  graph.node("c2", "aten.conv2d.default", {"r1", "p_w2"}, shape, {{"padding", {1, 1}}});
  add_norm(graph, "n2", "c2", shape).node("s", "aten.add_.Tensor", {"n2", "a"}, shape);
  graph.node("y", "aten.relu_.default", {"s"}, shape).output("y");
  return graph;
}

}  // namespace npu::test::onednn

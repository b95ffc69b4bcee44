// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles a graph: the number of kernels and reorders, the memory that they
// take, and that folding, fusing, merging and placing change no result. Results are compared with
// the cpu device's.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::CallError;
using test::GraphBuilder;
using test::onednn::api;
using test::onednn::Buffer;
using test::onednn::handles;
using test::onednn::has_avx2;
using test::onednn::has_avx512;
using test::onednn::load;
using test::onednn::open_device;
using DevicePointer = test::onednn::Device;

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

/// A graph compiled for the npu, its data, and what the cpu device computes.
struct Compiled {
  explicit Compiled(const GraphBuilder& builder, const std::string& options = "{}",
                    int compile_threads = 2, const std::string& device_options = "{}")
      : graph(builder.build()),
        text(test::onednn::with_groups(builder.text())),
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
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  static npu_tensor view(const Tensor& tensor, const char* name) {
    return test::tensor_view(name, static_cast<npu_dtype>(tensor.dtype()), tensor.shape(),
                             tensor.data(), tensor.bytes());
  }

  std::vector<Tensor> run(npu_device* on) const {
    test::onednn::LoadedModel model;
    test::onednn::Program program;
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
    auto profile = test::sized_struct<npu_profile>();
    profile.steps = by_step.data();
    profile.step_count = by_step.size();
    profile.nodes = by_node.data();
    profile.node_count = by_node.size();
    for (int repeat = 0; repeat < 2; ++repeat) {  // a second run meets used memory
      REQUIRE(api().run(program.get(), handles(arguments), handles(outputs), &error, &profile) ==
              NPU_OK);
    }
    check_times(by_step, by_node);
    ++profile.step_count;
    CHECK(api().run(program.get(), handles(arguments), handles(outputs), &error, &profile) ==
          NPU_INVALID);
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorInfo& info = graph.tensor(graph.graph_outputs()[i]);
      Tensor result(info.dtype, info.shape);
      REQUIRE(api().read(outputs[i].get(), result.mutable_data(), result.bytes(), &error) ==
              NPU_OK);
      results.push_back(result);
    }
    return results;
  }

  /// Of one run: those of the report's steps are those of the nodes that they name.
  void check_times(const std::vector<npu_span>& by_step, std::vector<npu_span> by_node) const {
    const Json& steps = report.at("steps");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Json* node = find_member(steps[i], "node");
      if (node == nullptr) continue;
      const NodeId id = graph.find_node(node->get<std::string>());
      REQUIRE(id.valid());
      by_node[static_cast<std::size_t>(id.value)].end -= by_step[i].end - by_step[i].begin;
    }
    for (const npu_span& left : by_node) CHECK(left.end == left.begin);
  }

  /// The largest difference from the cpu device, relative to the largest value.
  double error_against_cpu() { return error_against_cpu(device.get()); }
  double error_against_cpu(npu_device* on) {
    ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1);
    const Target target = load_target("host");
    for (Node& node : graph.nodes()) node.device = "cpu";
    const PartitionPlan plan = single_partition_plan(graph, "cpu");
    ExecutorOptions options;
    options.threads = 1;
    const auto expected = Executor(graph, plan, target, weights, options).run(inputs, nullptr);
    const auto actual = run(on);
    double worst = 0;
    for (std::size_t o = 0; o < expected.size(); ++o) {
      double largest = 1e-3;
      double difference = 0;
      for (std::int64_t i = 0; i < expected[o].element_count(); ++i) {
        const auto a = static_cast<double>(actual[o].as<float>()[i]);
        const auto b = static_cast<double>(expected[o].as<float>()[i]);
        REQUIRE(std::isfinite(a));
        largest = std::max(largest, std::abs(b));
        difference = std::max(difference, std::abs(a - b));
      }
      worst = std::max(worst, difference / largest);
    }
    return worst;
  }

  std::int64_t count(const char* key) const { return report.at(key).get<std::int64_t>(); }

  Graph graph;
  std::string text;
  DevicePointer device;
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  std::string blob;
  Json report;
};

/// Whether the report says of a kernel that another number of threads may change bits.
bool has_bits_by_threads(const Compiled& compiled) {
  const Json& steps = compiled.report.at("steps");
  return std::any_of(steps.begin(), steps.end(),
                     [](const Json& step) { return step.at("bits_by_threads").get<bool>(); });
}

/// Other numbers of threads cut the work in other ways, which changes no bit of most kernels.
void check_threads(const Compiled& compiled, const GraphBuilder& graph,
                   std::initializer_list<int> counts) {
  const bool may_differ = has_bits_by_threads(compiled);
  const auto results = compiled.run(compiled.device.get());
  for (const int threads : counts) {
    INFO(threads << " threads");
    Compiled other(graph, "{}", threads);
    if (may_differ) {
      CHECK(other.error_against_cpu() < 5e-6);
      continue;
    }
    const auto again = other.run(other.device.get());
    CHECK(std::memcmp(results[0].data(), again[0].data(), results[0].bytes()) == 0);
  }
}

bool runs_kernel(const Compiled& compiled, const std::string& name) {
  for (const Json& step : compiled.report.at("steps")) {
    if (step.at("kernel") == name) return true;
  }
  return false;
}

/// With AVX2 a kernel of our own runs; else the report says why it was not taken.
void check_chosen(const Compiled& compiled, const std::string& name) {
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

constexpr const char* kBFloat16 = R"({"precision": "bf16"})";
/// Options of a device that multiplies bfloat16 much faster than float32, and much slower.
constexpr const char* kFastBFloat16 = R"({"bfloat16_rate": 100})";
constexpr const char* kSlowBFloat16 = R"({"bfloat16_rate": 0.01})";

/// In bfloat16 if the CPU has it; else that is refused.
void check_bfloat16(const GraphBuilder& builder, double most) {
  const std::string options = kBFloat16;
  if (has_avx2()) {
    for (const char* rate : {kFastBFloat16, kSlowBFloat16}) {
      Compiled rounded(builder, options, 2, rate);
      INFO(rate);
      CHECK(rounded.error_against_cpu() < most);
    }
    return;
  }
  const DevicePointer device = open_device(1);
  const std::string text = builder.text();
  std::string blob;
  CallError error;
  CHECK(api().compile(device.get(), text, {}, options.c_str(), &blob, &error) == NPU_UNSUPPORTED);
  CHECK(std::string(error.text) ==
        "precision bf16 needs a CPU with AVX2, AVX-512 or NEON; the level here is '" +
            test::onednn::isa_level() + "'");
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

/// conv, norm, relu, conv, norm, + input, relu
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

}  // namespace

TEST_CASE("onednn makes two kernels of a residual block's eight nodes", "[onednn][compiler]") {
  const std::int64_t channels = GENERATE(16, 5);
  Compiled compiled(residual_block(channels));
  // relu of the input, two convolutions, and reorders in and out.
  CHECK(compiled.count("nodes") == 8);
  // Five channels pad their blocks, which costs one reorder more.
  CHECK(compiled.count("kernels") <= (channels == 16 ? 5 : 6));
  CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn reports what each kernel computes and which only change layouts",
          "[onednn][compiler]") {
  Compiled compiled(residual_block(16));
  std::vector<std::vector<std::string>> computed;
  std::vector<std::string> borders;
  for (const Json& step : compiled.report.at("steps")) {
    if (const Json* nodes = find_member(step, "nodes")) {
      computed.push_back(nodes->get<std::vector<std::string>>());
      CHECK(computed.back().front() == step.at("node"));
      CHECK(step.at("kind") == "compute");
    }
    for (const char* key : {"reads", "writes"}) {
      if (const Json* tensor = find_member(step, key)) {
        borders.push_back(key + (" " + tensor->get<std::string>()));
      }
    }
  }
  CHECK(computed ==
        std::vector<std::vector<std::string>>{{"c1", "n1", "r1"}, {"c2", "n2", "s", "y"}});
  CHECK(borders == std::vector<std::string>{"writes y"});
  compiled.run(compiled.device.get());
}

TEST_CASE("onednn brings the rows of a layer norm together", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {1, 32, 4, 6}).weight("w", {32}).weight("b", {32});
  graph.node("f", "aten.flatten.using_ints", {"x"}, {1, 32, 24}, {{"start_dim", 2}});
  graph.node("t", "aten.transpose.int", {"f"}, {1, 24, 32}, {{"dim0", 1}, {"dim1", 2}});
  graph.node("y", "aten.layer_norm.default", {"t", "p_w", "p_b"}, Shape{1, 24, 32},
             {{"normalized_shape", {32}}, {"eps", 1e-5}});
  graph.output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  for (const Json& step : compiled.report.at("steps")) {
    INFO(step.dump());
    CHECK((!has_avx2() || step.dump().find("lnorm_ref") == std::string::npos));
  }
}

TEST_CASE("onednn keeps blocks of channels between tokens and pictures", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {1, 48, 16}).weight("w1", {32, 16}).weight("w2", {32, 1, 3, 3});
  graph.weight("w3", {16, 32});
  graph.node("a", "aten.linear.default", {"x", "p_w1"}, Shape{1, 48, 32});
  graph.node("b", "aten.transpose.int", {"a"}, {1, 32, 48}, {{"dim0", 1}, {"dim1", 2}});
  graph.node("c", "aten.view.default", {"b"}, {1, 32, 6, 8}, {{"size", {1, 32, 6, 8}}});
  graph.node("d", "aten.conv2d.default", {"c", "p_w2"}, Shape{1, 32, 6, 8},
             {{"padding", {1, 1}}, {"groups", 32}});
  graph.node("e", "aten.flatten.using_ints", {"d"}, {1, 32, 48}, {{"start_dim", 2}});
  graph.node("f", "aten.transpose.int", {"e"}, {1, 48, 32}, {{"dim0", 1}, {"dim1", 2}});
  graph.node("g", "aten.gelu.default", {"f"}, Shape{1, 48, 32});
  graph.node("y", "aten.linear.default", {"g", "p_w3"}, Shape{1, 48, 16}).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx2() && !has_avx512()) CHECK(compiled.count("reorders") == 0);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn computes a pointwise convolution before interpolations", "[onednn][compiler]") {
  const bool has_copy = GENERATE(true, false);
  GraphBuilder graph;
  const Shape picture{1, 16, 12, 10};
  graph.input("x", {1, 32, 6, 5}).input("z", {1, 16, 3, 10}).input("s", picture);
  graph.node("u", "aten.upsample_bilinear2d.vec", {"x"}, {1, 32, 12, 10},
             {{"output_size", {12, 10}}, {"align_corners", false}});
  graph.node("v", "aten.upsample_nearest2d.vec", {"z"}, picture, {{"output_size", {12, 10}}});
  std::vector<std::string> parts{"u", "v"};
  if (has_copy) parts.insert(parts.begin() + 1, "s");
  const std::int64_t channels = has_copy ? 64 : 48;
  graph.node("t", "aten.cat.default", parts, Shape{1, channels, 12, 10},
             {{"dim", 1}, {"_tensor_list_sizes", {parts.size()}}});
  graph.weight("w", {48, channels, 1, 1}).weight("b", {48});
  graph.node("c", "aten.conv2d.default", {"t", "p_w", "p_b"}, Shape{1, 48, 12, 10});
  graph.node("y", "aten.relu.default", {"c"}, Shape{1, 48, 12, 10}).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  check_threads(compiled, graph, {1, 3});
  const Json& steps = compiled.report.at("steps");
  const bool joins = std::any_of(steps.begin(), steps.end(), [](const Json& step) {
    return step.at("kernel") == "concatenation" || step.at("kernel") == "concat";
  });
  if (has_avx2()) CHECK_FALSE(joins);
}

TEST_CASE("onednn keeps groups of npu-fuse apart", "[onednn][compiler]") {
  const auto kernels = [](int relu_group, int norm_group) {
    GraphBuilder graph;
    const Shape shape{1, 16, 8, 8};
    graph.input("x", shape).weight("w", {16, 16, 3, 3});
    graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape, {{"padding", {1, 1}}});
    graph.key("fusion_group", 0);
    add_norm(graph, "n", "c", shape).key("fusion_group", norm_group);
    graph.node("y", "aten.relu.default", {"n"}, shape).output("y");
    if (relu_group >= 0) graph.key("fusion_group", relu_group);
    Compiled compiled(graph);
    CHECK(compiled.error_against_cpu() < 1e-4);
    return compiled.count("kernels") - compiled.count("reorders");
  };
  CHECK(kernels(0, 0) == 1);
  CHECK(kernels(-1, 0) == 2);  // a node without a group stays alone
  CHECK(kernels(1, 0) == 2);
  CHECK(kernels(1, 1) == 2);  // the norm takes the relu in
}

TEST_CASE("onednn adds products of constants to what is computed", "[onednn][compiler]") {
  const Shape addend = GENERATE(Shape{17}, Shape{4, 17}, Shape{4, 1});
  const double alpha = GENERATE(1.0, 2.0);
  GraphBuilder graph;
  graph.input("x", addend).weight("a", {4, 3}).weight("b", {3, 17});
  graph.node("y", "aten.addmm.default", {"x", "p_a", "p_b"}, Shape{4, 17}, {{"alpha", alpha}});
  Compiled compiled(graph.output("y"));
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn normalizes behind any permutation", "[onednn][compiler]") {
  const std::vector<int> order = GENERATE(std::vector{0, 3, 1, 2}, std::vector{0, 2, 3, 1},
                                          std::vector{3, 2, 1, 0}, std::vector{1, 0, 3, 2});
  const Shape source{3, 8, 2, 5};
  Shape shape;
  for (const int d : order) shape.push_back(source[static_cast<std::size_t>(d)]);
  GraphBuilder graph;
  graph.input("x", source).node("t", "aten.permute.default", {"x"}, shape, {{"dims", order}});
  add_norm(graph, "n", "t", shape).output("n");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn folds norms in front of nothing else into linear weights", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {6, 20}).weight("w", {12, 20}).weight("b", {12});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, Shape{6, 12});
  add_norm(graph, "n", "l", Shape{6, 12})
      .node("y", "aten.relu.default", {"n"}, Shape{6, 12})
      .output("y");
  Compiled compiled(graph);
  CHECK(compiled.count("kernels") == 1);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn keeps what a fused value's other readers need", "[onednn][compiler]") {
  // The convolution's result is read by the relu, and is an output, too: nothing may join.
  GraphBuilder graph;
  const Shape shape{1, 16, 4, 4};
  graph.input("x", shape).weight("w", {16, 16, 1, 1});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape);
  graph.node("r", "aten.relu.default", {"c"}, shape);
  graph.node("t", "aten.add.Tensor", {"r", "x"}, shape);
  graph.node("u", "aten.mul.Tensor", {"t", "c"}, shape);
  graph.output("c").output("u");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn does not add in the memory that the convolution reads", "[onednn][compiler]") {
  const std::int64_t channels = GENERATE(16, 4);
  GraphBuilder graph;
  const Shape shape{1, channels, 6, 6};
  graph.input("x", shape).weight("w", {channels, channels, 3, 3});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape, {{"padding", {1, 1}}});
  graph.node("y", "aten.add.Tensor", {"c", "x"}, shape).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn convolves by Winograd's filters, with any borders and epilogue",
          "[onednn][compiler]") {
  struct Case {
    Shape kernel;
    Shape padding;
    std::int64_t products;  ///< of a tile
  };
  const auto [kernel, padding, products] =
      GENERATE(Case{{3, 3}, {1, 1}, 36}, Case{{3, 3}, {0, 2}, 36}, Case{{5, 5}, {2, 2}, 36},
               Case{{1, 7}, {0, 3}, 10}, Case{{7, 1}, {3, 0}, 10}, Case{{1, 3}, {0, 1}, 6},
               Case{{3, 1}, {0, 0}, 6}, Case{{5, 1}, {4, 0}, 8}, Case{{1, 5}, {0, 1}, 8});
  const std::string epilogue = GENERATE("none", "norm, relu", "add, relu", "silu", "clamp", "mul");
  const std::int64_t batch = epilogue == "none" ? 2 : 1;
  // Neither extents nor channels are multiples of anything but 16.
  const Shape source{batch, 64, 21, 18};
  const Shape target{batch, 48, 21 + 2 * padding[0] - kernel[0] + 1,
                     18 + 2 * padding[1] - kernel[1] + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 64, kernel[0], kernel[1]}).weight("b", {48});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"padding", {padding[0], padding[1]}}});
  if (epilogue == "none") graph.output("c");
  if (epilogue == "norm, relu") {
    add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  }
  if (epilogue == "add, relu" || epilogue == "mul") {
    graph.input("z", target);
    const bool adds = epilogue != "mul";
    graph.node("s", adds ? "aten.add.Tensor" : "aten.mul.Tensor", {"c", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  if (epilogue == "silu") graph.node("y", "aten.silu.default", {"c"}, target).output("y");
  if (epilogue == "clamp") {
    graph.node("y", "aten.hardtanh.default", {"c"}, target, {{"min_val", -5.5}, {"max_val", 4.25}})
        .output("y");
  }
  INFO("kernel " << kernel[0] << " x " << kernel[1] << ", epilogue " << epilogue);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_chosen(compiled, "winograd");
  if (has_avx2()) CHECK(compiled.count("weight_bytes") >= products * 64 * 48 * 4);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves with stride 2 by Winograd's filters", "[onednn][compiler]") {
  const bool is_odd = GENERATE(false, true);
  const std::string epilogue = GENERATE("none", "norm, add, relu");
  const std::int64_t extent = is_odd ? 21 : 18;
  const Shape source{2, 64, extent, 26};
  const Shape target{2, 96, (extent - 1) / 2 + 1, 13};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {96, 64, 3, 3}).weight("b", {96});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {2, 2}}, {"padding", {1, 1}}});
  if (epilogue == "none") {
    graph.output("c");
  } else {
    graph.input("z", target);
    add_norm(graph, "n", "c", target).node("s", "aten.add.Tensor", {"n", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (!has_avx512()) check_chosen(compiled, "winograd");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves videos in space and in time by Winograd's filters",
          "[onednn][compiler]") {
  const Shape source{2, 64, 5, 14, 11};
  const Shape target{2, 96, 5, 14, 11};
  GraphBuilder graph;
  graph.input("x", source).input("z", target).weight("w", {96, 64, 1, 3, 3});
  graph.weight("v", {64, 96, 3, 1, 1}).weight("b", {64});
  graph.node("c", "aten.conv3d.default", {"x", "p_w"}, target, {{"padding", {0, 1, 1}}});
  graph.node("s", "aten.add.Tensor", {"c", "z"}, target);
  graph.node("r", "aten.relu.default", {"s"}, target);
  graph.node("d", "aten.conv3d.default", {"r", "p_v", "p_b"}, source, {{"padding", {1, 0, 0}}});
  graph.output("d");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_chosen(compiled, "winograd");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves pixels that are a dilation apart by Winograd's filters",
          "[onednn][compiler]") {
  const Shape dilation = GENERATE(Shape{2, 2}, Shape{4, 2}, Shape{1, 3});
  const std::string epilogue = GENERATE("none", "norm, relu", "add");
  const Shape shape{2, 64, 24, 18};
  GraphBuilder graph;
  graph.input("x", shape).weight("w", {64, 64, 3, 3}).weight("b", {64});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, shape,
             {{"padding", dilation}, {"dilation", dilation}});
  if (epilogue == "none") graph.output("c");
  if (epilogue == "norm, relu") {
    add_norm(graph, "n", "c", shape).node("y", "aten.relu.default", {"n"}, shape).output("y");
  }
  if (epilogue == "add") {
    graph.input("z", shape).node("s", "aten.add.Tensor", {"c", "z"}, shape).output("s");
  }
  INFO("dilation " << dilation[0] << " x " << dilation[1] << ", epilogue " << epilogue);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  // What is added does not lie like the phases.
  if (epilogue != "add") check_chosen(compiled, "winograd");
  if (epilogue == "add") CHECK_FALSE(runs_kernel(compiled, "winograd"));
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn leaves out taps that read only padding", "[onednn][compiler]") {
  struct Case {
    Shape dilation;
    Shape padding;
    std::int64_t stride;
    const char* kernel;  ///< that is then taken; or one tap is left, or oneDNN chooses
  };
  const auto [dilation, padding, stride, kernel] =
      GENERATE(Case{{12, 13}, {12, 13}, 1, "implicit-gemm"}, Case{{14, 24}, {14, 24}, 1, "one tap"},
               Case{{24, 1}, {24, 1}, 1, "winograd"}, Case{{40, 9}, {40, 9}, 1, "implicit-gemm"},
               Case{{30, 30}, {29, 29}, 1, "implicit-gemm"}, Case{{30, 15}, {30, 15}, 2, "one tap"},
               Case{{30, 30}, {29, 29}, 2, "convolution"});
  const Shape source{2, 64, 14, 14};
  Shape target{2, 64};
  for (std::size_t i = 0; i < 2; ++i) {
    target.push_back((14 + 2 * padding[i] - 2 * dilation[i] - 1) / stride + 1);
  }
  GraphBuilder graph;
  graph.input("x", source).weight("w", {64, 64, 3, 3}).weight("b", {64});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {stride, stride}}, {"padding", padding}, {"dilation", dilation}});
  add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  INFO("dilation " << dilation[0] << " x " << dilation[1]);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (std::string_view(kernel) == "one tap") {
    CHECK(compiled.count("weight_bytes") < 2 * 64 * 64 * 4);
  } else if (std::string_view(kernel) != "convolution") {
    check_chosen(compiled, kernel);
  }
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves a signal of one channel as a product of its windows",
          "[onednn][compiler]") {
  struct Case {
    std::int64_t length;
    std::int64_t taps;
    std::int64_t stride;
    std::int64_t padding;
  };
  // Windows that lie in the signal or beyond it, that fill blocks or do not; one in the padding.
  const auto [length, taps, stride, padding] = GENERATE(
      Case{1000, 80, 4, 40}, Case{1000, 80, 8, 0}, Case{997, 100, 3, 0}, Case{400, 90, 5, 7},
      Case{96, 96, 1, 0}, Case{64, 96, 7, 20}, Case{16, 96, 200, 100});
  const Shape source{3, 1, length};
  const Shape target{3, 48, (length + 2 * padding - taps) / stride + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 1, taps}).weight("b", {48});
  graph.node("c", "aten.conv1d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {stride}}, {"padding", {padding}}});
  add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  INFO(taps << " taps over " << length << ", stride " << stride);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  // Without padding oneDNN has fast kernels for some.
  const bool is_padded = padding != 0 && padding < taps;
  if (has_avx2() && !has_avx512() && is_padded) check_chosen(compiled, "packed-gemm");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn expands and filters by channel in one kernel", "[onednn][compiler]") {
  const std::int64_t taps = GENERATE(3, 5);
  const std::int64_t stride = GENERATE(1, 2);
  const std::int64_t padding = GENERATE(0, 2);
  const std::string function = GENERATE("silu", "hardswish", "hardtanh", "relu", "none");
  const std::int64_t height = GENERATE(37, 6);
  const std::int64_t batch = height == 6 ? 2 : 1;
  const auto extent = [&](std::int64_t n) { return (n + 2 * padding - taps) / stride + 1; };
  const std::int64_t inputs = height == 6 ? 24 : 20;
  const Shape source{batch, inputs, height, 19};
  const Shape middle{batch, 48, height, 19};
  const Shape target{batch, 48, extent(height), extent(19)};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, inputs, 1, 1}).weight("d", {48, 1, taps, taps});
  graph.weight("b", {48});
  graph.node("x1", "aten.relu.default", {"x"}, source);
  const auto add_function = [&](const std::string& name, const std::string& input,
                                const Shape& shape) {
    if (function == "none") return input;
    graph.node(name, "aten." + function + ".default", {input}, shape);
    return name;
  };
  graph.node("c", "aten.conv2d.default", {"x1", "p_w"}, middle);
  add_norm(graph, "n", "c", middle);
  const std::string inner = add_function("f", "n", middle);
  // What the kernel reads later must still be there: the last reader of x1 works in place.
  graph.node("x2", "aten.sigmoid_.default", {"x1"}, source);
  graph.node("e", "aten.conv2d.default", {inner, "p_d", "p_b"}, target,
             {{"stride", {stride, stride}},
              {"padding", {padding, padding}},
              {"dilation", {1, 1}},
              {"groups", 48}});
  graph.output(add_function("g", "e", target)).output("x2");
  INFO(taps << " taps, stride " << stride << ", padding " << padding << ", " << function);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx512() || (has_avx2() && inputs % 8 == 0)) {
    // relu, sigmoid, and one for all the rest.
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
    CHECK(runs_kernel(compiled, "expand-depthwise"));
  }
}

TEST_CASE("onednn computes groups that do not fill vectors", "[onednn][compiler]") {
  struct Case {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t groups;
    std::vector<std::int64_t> stride;
    std::vector<std::int64_t> dilation;
  };
  const auto each = GENERATE(Case{32, 32, 8, {1, 1}, {1, 1}}, Case{16, 48, 16, {1, 1}, {2, 1}},
                             Case{48, 48, 4, {2, 2}, {1, 1}}, Case{64, 16, 8, {1, 2}, {1, 3}},
                             Case{32, 32, 8, {2}, {2}}, Case{24, 24, 8, {1, 1}, {1, 1}});
  const bool is_line = each.stride.size() == 1;
  const auto in_rank = [&](const Shape& shape) {
    return is_line ? Shape{shape[0], shape[1], shape[3]} : shape;
  };
  const auto extent = [&](std::int64_t size, std::size_t i) {
    return (size + 2 - 2 * each.dilation[i] - 1) / each.stride[i] + 1;
  };
  const Shape source = in_rank({2, each.inputs, 9, 20});
  const Shape target =
      in_rank({2, each.outputs, is_line ? 1 : extent(9, 0), extent(20, is_line ? 0 : 1)});
  GraphBuilder graph;
  graph.input("x", source).input("y", target).weight("b", {each.outputs});
  graph.weight("w", in_rank({each.outputs, each.inputs / each.groups, 3, 3}));
  const std::string rank = is_line ? "1" : "2";
  graph.node("x1", "aten.relu.default", {"x"}, source);
  graph.node("c", "aten.conv" + rank + "d.default", {"x1", "p_w", "p_b"}, target,
             {{"stride", each.stride},
              {"padding", std::vector<std::int64_t>(each.stride.size(), 1)},
              {"dilation", each.dilation},
              {"groups", each.groups}});
  graph.node("s", "aten.add.Tensor", {"c", "y"}, target);
  graph.node("r", "aten.relu.default", {"s"}, target).output("r");
  INFO(each.groups << " groups of " << each.inputs << " to " << each.outputs << " channels");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  const bool fills_blocks = each.inputs % 16 == 0 && each.outputs % 16 == 0;
  if (fills_blocks && has_avx2()) CHECK(runs_kernel(compiled, "grouped-convolution"));
}

TEST_CASE("What the report says of threads and bits holds for oneDNN's kernels",
          "[onednn][compiler]") {
  struct Case {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t groups;
    std::int64_t taps;
    std::int64_t stride;
  };
  // Channels that fill no blocks and those that do: direct and pointwise kernels, those by channel,
  // and what its GEMM or its kernels with blocks take.
  const auto [inputs, outputs, groups, taps, stride] =
      GENERATE(Case{3, 20, 1, 3, 2}, Case{37, 21, 1, 1, 1}, Case{64, 48, 1, 3, 2},
               Case{24, 24, 24, 5, 1}, Case{40, 20, 4, 3, 1}, Case{256, 32, 1, 1, 2});
  const std::int64_t extent = (25 + 2 * (taps / 2) - taps) / stride + 1;
  GraphBuilder graph;
  graph.input("x", {2, inputs, 25, 25}).weight("w", {outputs, inputs / groups, taps, taps});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, Shape{2, outputs, extent, extent},
             {{"stride", {stride, stride}},
              {"padding", {taps / 2, taps / 2}},
              {"dilation", {1, 1}},
              {"groups", groups}});
  graph.output("c");
  INFO(inputs << " to " << outputs << " channels, " << groups << " groups, " << taps << " taps");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_threads(compiled, graph, {1, 3, 4});
}

TEST_CASE("onednn's products of one row have the same bits on any number of threads",
          "[onednn][compiler]") {
  // A function that no kernel of the backend's own computes behind a product leaves it to oneDNN.
  GraphBuilder graph;
  graph.input("x", {1, 768}).weight("w", {768, 768}).weight("b", {768});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, Shape{1, 768});
  graph.node("t", "aten.tanh.default", {"l"}, Shape{1, 768}).output("t");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("Runs beside busy neighbours have the same bits as others", "[onednn][compiler]") {
  GraphBuilder graph;
  const Shape extent{1, 64, 40, 40};
  graph.input("x", extent).weight("w", {64, 64, 3, 3}).weight("d", {64, 64, 1, 1});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, extent, {{"padding", {1, 1}}});
  graph.node("r", "aten.relu.default", {"c"}, extent);
  graph.node("e", "aten.conv2d.default", {"r", "p_d"}, extent).output("e");
  Compiled compiled(graph);
  const auto results = compiled.run(compiled.device.get());
  std::atomic<bool> stop = false;
  std::vector<std::thread> neighbours;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    neighbours.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  int different = 0;
  for (int i = 0; i < 200; ++i) {
    const auto again = compiled.run(compiled.device.get());
    different += std::memcmp(results[0].data(), again[0].data(), results[0].bytes()) == 0 ? 0 : 1;
  }
  stop = true;
  for (std::thread& each : neighbours) each.join();
  CHECK(different == 0);
}

TEST_CASE("onednn convolves by Winograd's filters with weights larger than a cache",
          "[onednn][compiler]") {
  // Threads share channels where tiles are few, else tiles; the last 16 channels are alone.
  const Shape extent = GENERATE(Shape{9, 11}, Shape{3, 4}, Shape{30, 29});
  const std::int64_t channels = 272;
  const Shape target{1, channels, extent[0], extent[1]};
  GraphBuilder graph;
  graph.input("x", {1, 160, extent[0], extent[1]}).input("z", target);
  graph.weight("w", {channels, 160, 3, 3}).weight("b", {channels});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target, {{"padding", {1, 1}}});
  graph.node("s", "aten.add.Tensor", {"c", "z"}, target).output("s");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (extent[0] == 3) {  // too few pixels for the weights of any filter
    CHECK(runs_kernel(compiled, "convolution"));
  } else {
    check_chosen(compiled, "winograd");
  }
  check_threads(compiled, graph, {1, 2, 3, 4});
}

TEST_CASE("onednn multiplies matrices in seven products of quarters for eight",
          "[onednn][compiler]") {
  struct Case {
    std::int64_t rows;
    std::int64_t inner;
    std::int64_t columns;
  };
  // One task and several, an odd number of rows, one KC block and several. The first is the
  // smallest of them.
  const auto [rows, inner, columns] =
      GENERATE(Case{32, 512, 256}, Case{57, 544, 320}, Case{113, 800, 256}, Case{230, 1600, 832});
  const std::string epilogue = GENERATE("none", "add", "relu");
  const Shape target{1, rows, columns};
  GraphBuilder graph;
  graph.input("x", {1, rows, inner}).input("z", target);
  graph.weight("w", {columns, inner}).weight("b", {columns});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("l");
  if (epilogue == "add") {
    // In the memory of an operand that nothing else reads.
    graph.node("e", "aten.exp.default", {"z"}, target);
    graph.node("y", "aten.add.Tensor", {"e", "l"}, target).output("y");
  }
  if (epilogue == "relu") graph.node("y", "aten.relu.default", {"l"}, target).output("y");
  INFO(rows << " x " << inner << " x " << columns << ", " << epilogue);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 5e-6);
  check_chosen(compiled, "strassen");
  check_threads(compiled, graph, {1, 3, 7});
}

TEST_CASE("onednn convolves one by one as a product of matrices", "[onednn][compiler]") {
  const std::int64_t height = GENERATE(6, 23);
  const std::string epilogue = GENERATE("none", "norm, add, relu", "silu");
  const Shape source{2, 544, height, 11};
  const Shape target{2, 256, height, 11};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {256, 544, 1, 1}).weight("b", {256});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("c");
  if (epilogue == "silu") graph.node("y", "aten.silu.default", {"c"}, target).output("y");
  if (epilogue == "norm, add, relu") {
    add_norm(graph, "n", "c", target).input("z", target);
    graph.node("s", "aten.add.Tensor", {"n", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  INFO(height << ", " << epilogue);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 5e-6);
  check_chosen(compiled, "strassen");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn multiplies a few rows in one run over the weights", "[onednn][compiler]") {
  const std::int64_t rows = GENERATE(1, 2, 3, 4);
  const std::int64_t inner = GENERATE(5, 64, 331);
  const std::int64_t columns = GENERATE(1, 48, 1003);
  const std::string epilogue = GENERATE("none", "add, relu", "mul");
  const Shape target{rows, columns};
  GraphBuilder graph;
  graph.input("x", {rows, inner}).input("z", target);
  graph.weight("w", {columns, inner}).weight("b", {columns});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("l");
  if (epilogue == "add, relu") {
    // In the memory of an operand that nothing else reads.
    graph.node("e", "aten.tanh.default", {"z"}, target);
    graph.node("s", "aten.add.Tensor", {"l", "e"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  if (epilogue == "mul") graph.node("y", "aten.mul.Tensor", {"z", "l"}, target).output("y");
  INFO(rows << " x " << inner << " x " << columns << ", " << epilogue);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 4e-6);  // of three results, the sums of 331 may cancel
  CHECK(runs_kernel(compiled, "gemv"));
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn multiplies the only pixel of each image with the weights", "[onednn][compiler]") {
  const std::int64_t images = GENERATE(1, 3);
  const Shape source{images, 96, 1, 1};
  const Shape target{images, 48, 1, 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 96, 1, 1}).weight("b", {48});
  graph.node("t", "aten.tanh.default", {"x"}, source);
  graph.node("c", "aten.conv2d.default", {"t", "p_w", "p_b"}, target);
  graph.node("y", "aten.hardswish.default", {"c"}, target).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-6);
  check_chosen(compiled, "gemv");
}

// Of one channel the layout is that of channels last, too, and oneDNN has fast kernels for either,
// but none that reads the one and writes the other.
TEST_CASE("onednn convolves one channel with a long filter by a fast kernel",
          "[onednn][compiler]") {
  const Shape shape{1, 64, 201};
  GraphBuilder graph;
  graph.input("x", {1, 1, 800}).weight("w", {64, 1, 80});
  graph.node("c", "aten.conv1d.default", {"x", "p_w"}, shape,
             {{"stride", Shape{4}}, {"padding", Shape{40}}});
  graph.node("y", "aten.relu.default", {"c"}, shape).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  for (const Json& step : compiled.report.at("steps")) {
    const Json* name = find_member(step, "implementation");
    if (name != nullptr) CHECK_FALSE(name->get<std::string>().starts_with("ref"));
  }
}

TEST_CASE("onednn normalizes inside the convolution of one by one behind a norm",
          "[onednn][compiler]") {
  // By the definition, by quarters, and in two runs of channels with half a panel at the end.
  struct Case {
    std::int64_t source;
    std::int64_t target;
  };
  const auto [channels, features] = GENERATE(Case{48, 256}, Case{512, 256}, Case{1056, 80});
  const std::int64_t batch = GENERATE(1, 2);
  const std::string between = GENERATE("none", "relu");
  const std::string other = GENERATE("none", "reader", "stride", "groups");
  const std::int64_t stride = other == "stride" ? 2 : 1;
  const std::int64_t groups = other == "groups" ? 2 : 1;
  const Shape source{batch, channels, 7, 9};
  const Shape target{batch, features, 6 / stride + 1, 8 / stride + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {features, channels / groups, 1, 1});
  // The source stays as it is for another reader.
  graph.node("e", "aten.tanh.default", {"x"}, source);
  add_norm(graph, "n", "e", source);
  std::string value = "n";
  if (between == "relu") graph.node(value = "r", "aten.relu.default", {"n"}, source);
  graph.node("c", "aten.conv2d.default", {value, "p_w"}, target,
             {{"stride", {stride, stride}}, {"groups", groups}});
  add_norm(graph, "m", "c", target).node("y", "aten.relu.default", {"m"}, target).output("y");
  graph.node("k", "aten.mul.Tensor", {"e", "e"}, source).output("k");
  if (other == "reader") graph.node("o", "aten.exp.default", {value}, source).output("o");
  INFO(channels << ", " << features << ", " << batch << ", " << between << ", " << other);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (other == "none" && has_avx2()) {
    // tanh, mul, and one for the rest.
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
    CHECK(runs_kernel(compiled, channels == 512 ? "strassen" : "packed-gemm"));
  }
  check_threads(compiled, graph, {1, 3});
  check_bfloat16(graph, 5e-2);
}

TEST_CASE("onednn's products of quarters keep rows apart that are unlike", "[onednn][compiler]") {
  constexpr std::int64_t kRows = 65;  // the first and the 34th are paired
  constexpr std::int64_t kWidth = 512;
  GraphBuilder graph;
  const Shape shape{kRows, kWidth};
  graph.input("x", shape).weight("w", {kWidth, kWidth});
  graph.node("y", "aten.linear.default", {"x", "p_w"}, shape).output("y");
  Compiled compiled(graph);
  const auto expected = compiled.run(compiled.device.get());
  const float factor = GENERATE(1e8F, 0.0F, std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity());
  const std::int64_t changed = GENERATE(0, 33, 64);
  auto* row = compiled.inputs[0].as_mutable<float>() + changed * kWidth;
  for (std::int64_t i = 0; i < kWidth; ++i) row[i] *= factor;
  const auto actual = compiled.run(compiled.device.get());
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
    if (i / kWidth == changed) continue;
    REQUIRE(std::abs(actual[0].as<float>()[i] - expected[0].as<float>()[i]) < 1e-4F);
  }
  for (std::int64_t i = 0; factor == 0.0F && i < kWidth; ++i) {
    CHECK(actual[0].as<float>()[changed * kWidth + i] == 0.0F);
  }
}

TEST_CASE("onednn squeezes and excites in one kernel", "[onednn][compiler]") {
  const std::string activation = GENERATE("relu", "silu_", "hardswish");
  const std::string gate = GENERATE("sigmoid", "hardsigmoid_");
  const std::string mean = GENERATE("pool", "mean");
  const Shape extent = GENERATE(Shape{2, 48, 23, 31}, Shape{1, 64, 1, 3});
  const std::int64_t hidden = GENERATE(1, 10);
  const bool with_bias = GENERATE(true, false);
  const Shape squeezed{extent[0], extent[1], 1, 1};
  const Shape middle{extent[0], hidden, 1, 1};
  GraphBuilder graph;
  graph.input("x", extent).weight("u", {hidden, extent[1], 1, 1}).weight("b", {hidden});
  graph.weight("w", {extent[1], hidden, 1, 1}).weight("c", {extent[1]});
  graph.node("r", "aten.relu.default", {"x"}, extent);
  if (mean == "pool") {
    graph.node("m", "aten.adaptive_avg_pool2d.default", {"r"}, squeezed, {{"output_size", {1, 1}}});
  } else {
    graph.node("m", "aten.mean.dim", {"r"}, squeezed, {{"dim", {2, 3}}, {"keepdim", true}});
  }
  using Names = std::vector<std::string>;
  graph.node("h", "aten.conv2d.default", with_bias ? Names{"m", "p_u", "p_b"} : Names{"m", "p_u"},
             middle);
  graph.node("a", "aten." + activation + ".default", {"h"}, middle);
  graph.node("e", "aten.conv2d.default", with_bias ? Names{"a", "p_w", "p_c"} : Names{"a", "p_w"},
             squeezed);
  graph.node("g", "aten." + gate + ".default", {"e"}, squeezed);
  graph.node("y", "aten.mul.Tensor", {"g", "r"}, extent).output("y");
  INFO(activation << ", " << gate << ", " << mean << ", " << hidden);
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx2()) {
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 2);  // relu, and the rest
    CHECK(runs_kernel(compiled, "squeeze-excite"));
  }
  check_threads(compiled, graph, {1, 3});
  check_bfloat16(graph, 3e-2);
}

TEST_CASE("onednn leaves gates alone that are none", "[onednn][compiler]") {
  // The gate belongs to another tensor, or something else reads it.
  const std::string fault = GENERATE("other tensor", "other reader");
  const Shape extent{1, 32, 9, 9};
  const Shape squeezed{1, 32, 1, 1};
  GraphBuilder graph;
  graph.input("x", extent).input("z", extent);
  graph.weight("u", {32, 32, 1, 1}).weight("w", {32, 32, 1, 1});
  graph.node("m", "aten.adaptive_avg_pool2d.default", {"x"}, squeezed, {{"output_size", {1, 1}}});
  graph.node("h", "aten.conv2d.default", {"m", "p_u"}, squeezed);
  graph.node("a", "aten.relu.default", {"h"}, squeezed);
  graph.node("e", "aten.conv2d.default", {"a", "p_w"}, squeezed);
  graph.node("g", "aten.sigmoid.default", {"e"}, squeezed);
  graph.node("y", "aten.mul.Tensor", {fault == "other tensor" ? "z" : "x", "g"}, extent);
  graph.output("y");
  if (fault == "other reader") graph.output("g");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn keeps the result of an expansion that something else reads",
          "[onednn][compiler]") {
  GraphBuilder graph;
  const Shape shape{1, 32, 9, 9};
  graph.input("x", {1, 16, 9, 9}).weight("w", {32, 16, 1, 1}).weight("d", {32, 1, 3, 3});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape);
  const bool adds_behind = GENERATE(false, true);
  if (!adds_behind) graph.output("c");
  graph.node("e", "aten.conv2d.default", {"c", "p_d"}, shape,
             {{"stride", {1, 1}}, {"padding", {1, 1}}, {"dilation", {1, 1}}, {"groups", 32}});
  if (adds_behind) {
    // The depthwise convolution's own epilogue has an operand, which the kernel does not take.
    graph.input("z", shape).node("y", "aten.add.Tensor", {"e", "z"}, shape).output("y");
  } else {
    graph.output("e");
  }
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn writes concatenated channels in place, also nested", "[onednn][compiler]") {
  GraphBuilder graph;
  const auto shape = [](std::int64_t channels) { return Shape{1, channels, 6, 6}; };
  graph.input("x", shape(16));
  graph.node("f0", "aten.relu.default", {"x"}, shape(16));
  std::vector<std::string> features{"f0"};
  for (int i = 1; i <= 3; ++i) {
    const std::string name = std::to_string(i);
    const std::int64_t channels = 16 * i;
    std::string input = "f0";
    if (i > 1) {
      input = "cat" + name;
      graph.node(input, "aten.cat.default", features, shape(channels),
                 {{"dim", 1}, {"_tensor_list_sizes", {i}}});
    }
    graph.weight("w" + name, {16, channels, 3, 3});
    graph.node("f" + name, "aten.conv2d.default", {input, "p_w" + name}, shape(16),
               {{"padding", {1, 1}}});
    features.push_back("f" + name);
  }
  graph.node("y", "aten.cat.default", features, shape(64),
             {{"dim", 1}, {"_tensor_list_sizes", {4}}});
  graph.node("z", "aten.sigmoid.default", {"y"}, shape(64)).output("z").output("f2");
  Compiled compiled(graph);
  // The input's relu goes into the blocked layout once, and f2 out as a result.
  std::int64_t moves = 0;
  for (const Json& step : compiled.report.at("steps")) moves += step.at("kind") == "move" ? 1 : 0;
  CHECK(moves <= 2);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn splits blocked channels without a copy", "[onednn][compiler]") {
  const std::int64_t batch = GENERATE(1, 2);
  const std::int64_t part = GENERATE(32, 24);
  const Shape half{batch, part, 9, 7};
  GraphBuilder graph;
  graph.input("x", {batch, 16, 9, 7}).weight("w", {2 * part, 16, 1, 1});
  graph.weight("v", {part, part, 1, 1}).weight("u", {part, part, 1, 1});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, Shape{batch, 2 * part, 9, 7});
  graph.node("a", "aten.slice.Tensor", {"c"}, half, {{"dim", 1}, {"start", 0}, {"end", part}});
  graph.node("b", "aten.slice.Tensor", {"c"}, half,
             {{"dim", 1}, {"start", part}, {"end", 2 * part}});
  graph.node("d", "aten.conv2d.default", {"a", "p_v"}, half);
  graph.node("e", "aten.conv2d.default", {"b", "p_u"}, half);
  // One half is read again, behind what could have overwritten it.
  graph.node("r", "aten.relu_.default", {"a"}, half);
  graph.node("s", "aten.add.Tensor", {"d", "e"}, half);
  graph.node("y", "aten.mul.Tensor", {"s", "r"}, half).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (batch == 1 && part == 32 && has_avx2()) {
    CHECK(compiled.count("reorders") <= 2);  // of the input and of the output
  }
}

TEST_CASE("onednn copies weights into a concatenation that others write", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {1, 16, 4, 4}).weight("w", {1, 16, 4, 4});
  graph.node("a", "aten.relu.default", {"x"}, Shape{1, 16, 4, 4});
  graph.node("y", "aten.cat.default", {"p_w", "a"}, Shape{1, 32, 4, 4},
             {{"dim", 1}, {"_tensor_list_sizes", {2}}});
  graph.output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn keeps an operand that two nodes of a refused group read", "[onednn][compiler]") {
  // No post-op multiplies and adds the same tensor with a factor: the group is taken apart.
  GraphBuilder graph;
  const Shape shape{1, 16, 4, 4};
  graph.input("x", shape).weight("w", {16, 16, 1, 1});
  graph.node("a", "aten.exp.default", {"x"}, shape);
  graph.node("c", "aten.conv2d.default", {"a", "p_w"}, shape);
  graph.node("s", "aten.add.Tensor", {"a", "c"}, shape);
  graph.node("m", "aten.sub.Tensor", {"s", "a"}, shape, {{"alpha", 0.5}});
  graph.node("y", "aten.mul.Tensor", {"m", "a"}, shape).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn keeps an input that a refused group converted", "[onednn][compiler]") {
  // The input is kept as bfloat16; the group of the convolution reads it first, and is refused.
  GraphBuilder graph;
  const Shape shape{1, 16, 4, 4};
  graph.input("x", shape).input("z", shape).weight("w", {16, 16, 1, 1});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape);
  graph.node("s", "aten.add.Tensor", {"c", "z"}, shape);
  graph.node("m", "aten.sub.Tensor", {"s", "z"}, shape, {{"alpha", 0.5}});
  graph.node("y", "aten.mul.Tensor", {"m", "x"}, shape).output("y");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
  check_bfloat16(graph, 5e-2);
}

TEST_CASE("onednn joins linear nodes with one input and finds attention", "[onednn][compiler]") {
  const bool written_out = GENERATE(false, true);
  const std::string mask = written_out ? GENERATE("", "mask") : "";
  GraphBuilder graph;
  const Shape flat{1, 10, 32};
  const Shape split{1, 10, 4, 8};
  const Shape heads{1, 4, 10, 8};
  graph.input("x", flat);
  for (const std::string name : {"q", "k", "v"}) {
    graph.weight(name, {32, 32}).weight(name + "b", {32});
    graph.node(name + "l", "aten.linear.default", {"x", "p_" + name, "p_" + name + "b"}, flat);
    graph.node(name + "v", "aten.view.default", {name + "l"}, split, {{"size", split}});
    graph.node(name + "t", "aten.transpose.int", {name + "v"}, heads, {{"dim0", 1}, {"dim1", 2}});
  }
  const Shape scores{1, 4, 10, 10};
  if (written_out) {
    graph.node("kt2", "aten.transpose.int", {"kt"}, {1, 4, 8, 10}, {{"dim0", -2}, {"dim1", -1}});
    graph.node("s", "aten.matmul.default", {"qt", "kt2"}, scores);
    graph.node("d", "aten.div.Tensor", {"s"}, scores, {{"other", 2.5}});
    std::string value = "d";
    if (mask == "mask") {
      graph.weight("mask", {10, 10});
      graph.node("m", "aten.add.Tensor", {"d", "p_mask"}, scores);
      value = "m";
    }
    graph.node("p", "aten.softmax.int", {value}, scores, {{"dim", -1}});
    graph.node("o", "aten.matmul.default", {"p", "vt"}, heads);
  } else {
    graph.node("o", "aten.scaled_dot_product_attention.default", {"qt", "kt", "vt"}, heads);
  }
  graph.node("ot", "aten.transpose.int", {"o"}, split, {{"dim0", 1}, {"dim1", 2}});
  graph.node("y", "aten.reshape.default", {"ot"}, flat, {{"shape", flat}});
  graph.weight("w", {32, 32});
  graph.node("z", "aten.linear.default", {"y", "p_w"}, flat);
  graph.node("r", "aten.add.Tensor", {"x", "z"}, flat).output("r");
  Compiled compiled(graph);
  // One product for q, k and v; attention; one product with the sum.
  CHECK(compiled.count("kernels") == 3);
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn reads grouped heads and masks of bool where they are", "[onednn][compiler]") {
  const std::string heads = GENERATE("expand", "copy", "interleave", "enable_gqa");
  const std::string form = GENERATE("op", "added", "selected", "filled", "guarded");
  const bool written_out = form != "op";
  if (written_out && heads == "enable_gqa") return;
  const Shape all{2, 6, 12, 8};
  const Shape scores{2, 6, 10, 12};
  GraphBuilder graph;
  graph.input("q", {2, 6, 10, 8}).input("k", {2, 2, 12, 8}).input("v", {2, 2, 12, 8});
  graph.input("m", {2, 1, 10, 12}, form == "added" ? "float32" : "bool");
  const auto of_all_heads = [&](const std::string& name) {
    const auto step = [&](const char* suffix, const char* op, const std::string& from,
                          const Shape& shape, Json attrs) {
      graph.node(name + suffix, op, {from}, shape, std::move(attrs));
      return name + suffix;
    };
    if (heads == "enable_gqa") return name;
    if (heads == "interleave") {
      return step("i", "aten.repeat_interleave.self_int", name, all, {{"repeats", 3}, {"dim", 1}});
    }
    const Shape apart{2, 2, 3, 12, 8};
    std::string last = step("u", "aten.unsqueeze.default", name, {2, 2, 1, 12, 8}, {{"dim", 2}});
    last = step("e", "aten.expand.default", last, apart, {{"size", apart}});
    if (heads == "copy") last = step("c", "aten.clone.default", last, apart, Json::object());
    return step("r", "aten.reshape.default", last, all, {{"shape", all}});
  };
  const std::string key = of_all_heads("k");
  const std::string value = of_all_heads("v");
  if (!written_out) {
    graph.node("y", "aten.scaled_dot_product_attention.default", {"q", key, value, "m"},
               Shape{2, 6, 10, 8}, {{"enable_gqa", heads == "enable_gqa"}});
  } else {
    // Turned by way of planes, as ONNX's exporters write it.
    graph.node("k1", "aten.view.default", {key}, Shape{12, 12, 8}, {{"size", {12, 12, 8}}});
    graph.node("k2", "aten.transpose.int", {"k1"}, Shape{12, 8, 12}, {{"dim0", 1}, {"dim1", 2}});
    graph.node("k3", "aten.view.default", {"k2"}, Shape{2, 6, 8, 12}, {{"size", {2, 6, 8, 12}}});
    graph.node("k4", "aten.mul.Tensor", {"k3"}, Shape{2, 6, 8, 12}, {{"other", 0.5}});
    graph.node("s", "aten.matmul.default", {"q", "k4"}, scores);
    if (form == "added") graph.node("w", "aten.add.Tensor", {"s", "m"}, scores);
    if (form == "selected") {
      graph.node("w", "aten.where.ScalarOther", {"m", "s"}, scores, {{"other", -3e38}});
    }
    if (form == "filled" || form == "guarded") {
      graph.node("w", "aten.masked_fill.Scalar", {"s", "m"}, scores, {{"value", "-inf"}});
    }
    graph.node("p", "aten.softmax.int", {"w"}, scores, {{"dim", -1}});
    std::string weights = "p";
    if (form == "guarded") {
      graph.node("t", "aten.isnan.default", {"p"}, scores, Json::object(), "bool");
      graph.node("g", "aten.where.ScalarSelf", {"t", "p"}, scores, {{"self", 0}});
      weights = "g";
    }
    graph.node("y", "aten.matmul.default", {weights, value}, Shape{2, 6, 10, 8});
  }
  graph.output("y");
  Compiled compiled(graph);
  INFO(heads << ", " << form << ": " << compiled.report.dump());
  CHECK(compiled.count("kernels") == 1);
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn computes a GELU that is written out as one", "[onednn][compiler]") {
  const bool by_tanh = GENERATE(true, false);
  const Shape shape{5, 48};
  GraphBuilder graph;
  graph.input("x", shape);
  const auto number = [&](const char* name, const char* op, const char* from, double value,
                          const char* key = "other") {
    graph.node(name, op, {from}, shape, {{key, value}});
  };
  number("h", "aten.mul.Tensor", "x", 0.5);
  if (by_tanh) {
    number("p", "aten.pow.Tensor_Scalar", "x", 3.0, "exponent");
    number("c", "aten.mul.Tensor", "p", 0.044715);
    graph.node("s", "aten.add.Tensor", {"x", "c"}, shape);
    number("a", "aten.mul.Tensor", "s", 0.7978845608028654);
    graph.node("f", "aten.tanh.default", {"a"}, shape);
  } else {
    number("a", "aten.mul.Tensor", "x", 0.7071067811865476);
    graph.node("f", "aten.erf.default", {"a"}, shape);
  }
  number("o", "aten.add.Tensor", "f", 1.0);
  graph.node("y", "aten.mul.Tensor", {"h", "o"}, shape).output("y");
  Compiled compiled(graph);
  CHECK(compiled.count("kernels") - compiled.count("reorders") == 1);
  CHECK(runs_kernel(compiled, "elementwise"));
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn masks scores that a view divides into heads", "[onednn][compiler]") {
  const std::string form = GENERATE("filled", "selected", "added", "cut");
  const Shape planes{6, 5, 7};
  const Shape heads = form == "cut" ? Shape{3, 2, 5, 7} : Shape{2, 3, 5, 7};
  const Shape mask = form == "cut" ? Shape{1, 2, 5, 7} : Shape{2, 1, 5, 7};
  GraphBuilder graph;
  graph.input("q", {6, 5, 8}).input("k", {6, 8, 7}).input("v", {6, 7, 8});
  graph.input("m", mask, form == "added" ? "float32" : "bool");
  graph.node("s", "aten.bmm.default", {"q", "k"}, planes);
  graph.node("h", "aten.view.default", {"s"}, heads, {{"size", heads}});
  if (form == "added") {
    graph.node("w", "aten.add.Tensor", {"h", "m"}, heads);
  } else if (form == "selected") {
    graph.node("w", "aten.where.ScalarOther", {"m", "h"}, heads, {{"other", -1e9}});
  } else {
    graph.node("w", "aten.masked_fill.Scalar", {"h", "m"}, heads, {{"value", -1e9}});
  }
  graph.node("b", "aten.view.default", {"w"}, planes, {{"size", planes}});
  graph.node("p", "aten.softmax.int", {"b"}, planes, {{"dim", -1}});
  graph.node("y", "aten.bmm.default", {"p", "v"}, Shape{6, 5, 8}).output("y");
  Compiled compiled(graph);
  INFO(form << ": " << compiled.report.dump());
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn copies repeated elements for ops that do not read them in place",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {2, 3}).input("z", {3, 2, 4, 2});
  graph.node("u", "aten.unsqueeze.default", {"x"}, Shape{2, 1, 3}, {{"dim", 1}});
  graph.node("e", "aten.expand.default", {"u"}, Shape{2, 4, 3}, {{"size", {2, 4, 3}}});
  graph.node("r", "aten.reshape.default", {"e"}, Shape{8, 3}, {{"shape", {8, 3}}});
  graph.node("t", "aten.t.default", {"r"}, Shape{3, 8}).output("t");
  graph.node("v", "aten.view.default", {"t"}, Shape{3, 2, 4}, {{"size", {3, 2, 4}}});
  graph.node("i", "aten.repeat_interleave.self_int", {"v"}, Shape{3, 2, 8},
             {{"repeats", 2}, {"dim", 2}});
  graph.node("w", "aten.view.default", {"i"}, Shape{3, 2, 4, 2}, {{"size", {3, 2, 4, 2}}});
  graph.node("y", "aten.add.Tensor", {"w", "z"}, Shape{3, 2, 4, 2}).output("y");
  graph.node("s", "aten.view.default", {"r"}, Shape{4, 6}, {{"size", {4, 6}}}).output("s");
  graph.node("c", "aten.view.default", {"i"}, Shape{6, 8}, {{"size", {6, 8}}}).output("c");
  Compiled compiled(graph);
  CHECK(compiled.error_against_cpu() == 0);
}

TEST_CASE("onednn subtracts slices without copies", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {4, 8, 6});
  graph.node("a", "aten.slice.Tensor", {"x"}, Shape{4, 7, 6}, {{"dim", 1}, {"start", 1}});
  graph.node("b", "aten.slice.Tensor", {"x"}, Shape{4, 7, 6}, {{"dim", 1}, {"end", 7}});
  graph.node("y", "aten.sub.Tensor", {"a", "b"}, Shape{4, 7, 6}).output("y");
  Compiled compiled(graph);
  CHECK(compiled.report.at("steps").size() == 1);
  CHECK(compiled.error_against_cpu() == 0);
}

TEST_CASE("onednn's arena is at most a tenth above the peak of live bytes", "[onednn][compiler]") {
  GraphBuilder graph = residual_block(32);
  const Compiled compiled(graph);
  const auto arena = compiled.report.at("arena_bytes").get<double>();
  CHECK(arena > 0);
  CHECK(arena <= 1.1 * compiled.report.at("peak_live_bytes").get<double>());
}

TEST_CASE("onednn leaves out nodes that no output needs", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {4});
  graph.node("unused", "aten.exp.default", {"x"}).node("y", "aten.relu.default", {"x"}).output("y");
  Compiled compiled(graph);
  CHECK(compiled.count("kernels") == 1);
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn loads a blob on a device with another number of threads", "[onednn][compiler]") {
  Compiled compiled(residual_block(16), "{}", 2);
  const DevicePointer other = open_device(1);
  CHECK(compiled.error_against_cpu(other.get()) < 1e-4);
}

TEST_CASE("onednn's own kernels give the same bits on any number of threads",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("q", {1, 3, 70, 16})
      .input("k", {1, 3, 40, 16})
      .input("v", {1, 3, 40, 24})
      .input("x", {3, 300})
      .weight("w", {500, 300});
  graph.node("a", "aten.scaled_dot_product_attention.default", {"q", "k", "v"}, Shape{1, 3, 70, 24})
      .node("y", "aten.linear.default", {"x", "p_w"}, Shape{3, 500})
      .node("g", "aten.gelu.default", {"y"}, Shape{3, 500})
      .output("a")
      .output("g");
  Compiled compiled(graph, "{}", 2);
  for (const Json& step : compiled.report.at("steps"))
    CHECK(find_member(step, "implementation") == nullptr);
  const std::vector<Tensor> expected = compiled.run(compiled.device.get());
  for (const int threads : {1, 3, 4}) {
    const DevicePointer other = open_device(threads);
    const std::vector<Tensor> actual = compiled.run(other.get());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("output " << i << " with " << threads << " threads");
      CHECK(std::memcmp(expected[i].data(), actual[i].data(), expected[i].bytes()) == 0);
    }
  }
}

TEST_CASE("onednn's blobs hold a plan, and no sub-IR to lower again", "[onednn][compiler]") {
  const Compiled compiled(residual_block(16));
  const std::string& blob = compiled.blob;
  CHECK(blob.find("op_type") == std::string_view::npos);
  const auto refusal = [&](std::size_t byte, char value) {
    std::string changed = blob;
    changed[byte] = value;
    npu_model* model = nullptr;
    CallError error;
    CHECK(api().load(compiled.device.get(), changed, {}, &model, &error) == NPU_INVALID);
    CHECK(model == nullptr);
    return std::string(error.text);
  };
  CHECK_THAT(refusal(0, 'x'),
             Catch::Contains("was not made by this version of the onednn backend"));
  CHECK_THAT(refusal(8, 77), Catch::Contains("4d, this onednn backend reads format"));
}

TEST_CASE("onednn computes float32 graphs in bfloat16 if asked to and that is faster",
          "[onednn][compiler]") {
  check_bfloat16(residual_block(32), 2e-2);
  if (!has_avx2()) return;
  const std::string level = test::onednn::isa_level();
  const bool multiplies = level == "avx512_bf16" || level == "avx512_fp16" || level == "amx";
  Compiled exact(residual_block(32));
  CHECK(find_member(exact.report, "computes_in") == nullptr);
  for (const char* rate : {kFastBFloat16, kSlowBFloat16}) {
    INFO(rate << " at " << level);
    Compiled compiled(residual_block(32), kBFloat16, 2, rate);
    CHECK(compiled.report.at("precision") == "bf16");
    const bool narrow = multiplies && rate == kFastBFloat16;
    CHECK(compiled.report.at("computes_in") == (narrow ? "bfloat16" : "float32"));
    if (!narrow) continue;
    CHECK(compiled.count("weight_bytes") < exact.count("weight_bytes"));
    CHECK(compiled.error_against_cpu() > exact.error_against_cpu());
  }
}

TEST_CASE("onednn stores in 16 bits what it computes in float32", "[onednn][compiler]") {
  if (!has_avx2()) return;
  const std::string precision = GENERATE("f16", "bf16");
  GraphBuilder graph;
  graph.input("x", {1, 512}).weight("w", {512, 512});
  graph.node("y", "aten.linear.default", {"x", "p_w"}, Shape{1, 512}).output("y");
  Compiled exact(graph);
  Compiled compiled(graph, R"({"precision": ")" + precision + R"("})", 2, kSlowBFloat16);
  CHECK(runs_kernel(compiled, "gemv"));
  CHECK(2 * compiled.count("weight_bytes") == exact.count("weight_bytes"));
  const double error = compiled.error_against_cpu();
  CHECK(error > exact.error_against_cpu());
  CHECK(error < (precision == "f16" ? 1e-3 : 1e-2));
}

TEST_CASE("onednn refuses a rate of bfloat16 that is none", "[onednn][compiler]") {
  for (const char* rate : {"0", "-1", "101", "\"fast\"", "null", "[1]"}) {
    npu_device* device = nullptr;
    CallError error;
    const std::string options = std::string(R"({"bfloat16_rate": )") + rate + "}";
    CHECK(api().open_device(1, options.c_str(), &device, &error) == NPU_INVALID);
    CHECK(std::string(error.text) ==
          "device option 'bfloat16_rate': expected a number above 0 and up to 100");
  }
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles a graph: the number of kernels and reorders, the memory that they
// take, groups, blobs and threads. What it makes of single ops is in the tests of their families.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::CallError;
using test::GraphBuilder;
using test::onednn::add_norm;
using test::onednn::api;
using test::onednn::check_bfloat16;
using test::onednn::check_threads;
using test::onednn::CompiledGraph;
using test::onednn::load;
using test::onednn::open_device;
using DevicePointer = test::onednn::Device;
using test::onednn::residual_block;

}  // namespace

TEST_CASE("onednn makes two kernels of a residual block's eight nodes", "[onednn][compiler]") {
  const std::int64_t channels = GENERATE(16, 5);
  CompiledGraph compiled(residual_block(channels));
  // relu of the input, two convolutions, and reorders in and out.
  CHECK(compiled.count("nodes") == 8);
  // Five channels pad their blocks, which costs one reorder more.
  CHECK(compiled.count("kernels") <= (channels == 16 ? 5 : 6));
  CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn reports what each kernel computes and which only change layouts",
          "[onednn][compiler]") {
  CompiledGraph compiled(residual_block(16));
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
    CompiledGraph compiled(graph);
    CHECK(compiled.error_against_cpu() < 1e-4);
    return compiled.count("kernels") - compiled.count("reorders");
  };
  CHECK(kernels(0, 0) == 1);
  CHECK(kernels(-1, 0) == 2);  // a node without a group stays alone
  CHECK(kernels(1, 0) == 2);
  CHECK(kernels(1, 1) == 2);  // the norm takes the relu in
}

TEST_CASE("onednn keeps what a fused value's other readers need", "[onednn][compiler]") {
  // The convolution's result is read by the relu, and is an output, too: nothing may join.
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,16,4,4]; weight w [16,16,1,1]
    c = conv2d(x, p_w)
    r = relu(c)
    t = aten.add.Tensor(r, x)
    u = aten.mul.Tensor(t, c); output c, u)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
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
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_threads(compiled, graph, {1, 3, 4});
}

TEST_CASE("Runs beside busy neighbours have the same bits as others", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,64,40,40]; weight w [64,64,3,3]; weight d [64,64,1,1]
    c = conv2d(x, p_w) {"padding": [1, 1]}
    r = relu(c)
    e = conv2d(r, p_d); output e)");
  CompiledGraph compiled(graph);
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

TEST_CASE("onednn keeps an operand that two nodes of a refused group read", "[onednn][compiler]") {
  // No post-op multiplies and adds the same tensor with a factor: the group is taken apart.
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,16,4,4]; weight w [16,16,1,1]
    a = exp(x)
    c = conv2d(a, p_w)
    s = aten.add.Tensor(a, c)
    m = aten.sub.Tensor(s, a) {"alpha": 0.5}
    y = aten.mul.Tensor(m, a); output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn keeps an input that a refused group converted", "[onednn][compiler]") {
  // The input is kept as bfloat16; the group of the convolution reads it first, and is refused.
  GraphBuilder graph;
  graph.lines(R"(
    input x, z [1,16,4,4]; weight w [16,16,1,1]
    c = conv2d(x, p_w)
    s = aten.add.Tensor(c, z)
    m = aten.sub.Tensor(s, z) {"alpha": 0.5}
    y = aten.mul.Tensor(m, x); output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
  check_bfloat16(graph, 5e-2);
}

TEST_CASE("onednn's arena is at most a tenth above the peak of live bytes", "[onednn][compiler]") {
  GraphBuilder graph = residual_block(32);
  const CompiledGraph compiled(graph);
  const auto arena = compiled.report.at("arena_bytes").get<double>();
  CHECK(arena > 0);
  CHECK(arena <= 1.1 * compiled.report.at("peak_live_bytes").get<double>());
}

TEST_CASE("onednn leaves out nodes that no output needs", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {4});
  graph.node("unused", "aten.exp.default", {"x"}).node("y", "aten.relu.default", {"x"}).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.count("kernels") == 1);
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn loads a blob on a device with another number of threads", "[onednn][compiler]") {
  CompiledGraph compiled(residual_block(16), "{}", 2);
  const DevicePointer other = open_device(1);
  CHECK(compiled.error_against_cpu(other.get()) < 1e-4);
}

TEST_CASE("onednn's own kernels give the same bits on any number of threads",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input q [1,3,70,16]; input k [1,3,40,16]; input v [1,3,40,24]; input x [3,300]
    weight w [500,300]
    a = scaled_dot_product_attention(q, k, v) [1,3,70,24]
    y = linear(x, p_w) [3,500]
    g = gelu(y); output a, g)");
  CompiledGraph compiled(graph, "{}", 2);
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
  const CompiledGraph compiled(residual_block(16));
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

}  // namespace npu

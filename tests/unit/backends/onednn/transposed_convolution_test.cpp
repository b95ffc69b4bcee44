// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions whose taps do not overlap run as pointwise convolutions: they give what
// libtorch gives, in every rank, fused or not; and the others stay deconvolutions.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "backends/two_devices.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/runtime/weight_store.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

struct Layer {
  std::string op;
  Shape source;
  Shape weight;  ///< [I, O / groups, ..]
  Json attrs;
  Shape result;
};

/// The layer with a bias, a batch norm and a ReLU behind it; with `adds`, with a sum between them.
GraphBuilder network(const Layer& layer, bool adds) {
  const std::int64_t channels = layer.result[1];
  GraphBuilder graph;
  graph.input("x", layer.source).weight("w", layer.weight);
  for (const char* name : {"b", "scale", "shift", "mean", "var"}) {
    graph.weight(name, {channels});
  }
  graph.node("t", layer.op, {"x", "p_w", "p_b"}, layer.result, layer.attrs);
  graph.node("n", "aten.batch_norm.default", {"t", "p_scale", "p_shift", "p_mean", "p_var"},
             layer.result,
             {{"training", false}, {"momentum", 0.1}, {"eps", 1e-3}, {"cudnn_enabled", true}});
  std::string last = "n";
  if (adds) {
    graph.input("z", layer.result);
    graph.node("s", "aten.add.Tensor", {"n", "z"}, layer.result, Json::object());
    last = "s";
  }
  graph.node("y", "aten.relu.default", {last}, layer.result, Json::object());
  graph.output("y");
  return graph;
}

test::DeviceRun run_on(const GraphBuilder& builder, const std::string& device) {
  const Graph graph = builder.build();
  Diagnostics diagnostics;
  const std::vector<Tensor> weights =
      load_weights(graph, {.file = {}, .random_seed = 3}, diagnostics);
  REQUIRE(test::errors_of(diagnostics).empty());
  std::vector<Tensor> inputs;
  for (const TensorId input : graph.graph_inputs()) {
    const TensorInfo& info = graph.tensor(input);
    Tensor values(info.dtype, info.shape);
    for (std::int64_t i = 0; i < values.element_count(); ++i) {
      values.as_mutable<float>()[i] = std::sin(0.7F * static_cast<float>(i));
    }
    inputs.push_back(std::move(values));
  }
  return test::run_on(builder, device, weights, inputs);
}

bool has_deconvolution(const test::DeviceRun& ran) {
  return std::find(ran.kernels.begin(), ran.kernels.end(), "deconvolution") != ran.kernels.end();
}

void check_against_libtorch(const GraphBuilder& graph, const test::DeviceRun& ran,
                            double tolerance) {
  const Tensor expected = run_on(graph, "cpu").result;
  REQUIRE(ran.result.shape() == expected.shape());
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    INFO(i);
    REQUIRE(ran.result.value_as_double(i) == Approx(expected.value_as_double(i)).margin(tolerance));
  }
}

const Layer kDisjoint[] = {
    {"aten.conv_transpose1d.default", {2, 24, 11}, {24, 32, 3}, {{"stride", {3}}}, {2, 32, 33}},
    {"aten.conv_transpose2d.input",
     {2, 20, 5, 7},
     {20, 16, 2, 2},
     {{"stride", {2, 2}}},
     {2, 16, 10, 14}},
    {"aten.conv_transpose2d.input",
     {1, 16, 6, 3},
     {16, 48, 1, 4},
     {{"stride", {1, 4}}},
     {1, 48, 6, 12}},
    {"aten.conv_transpose3d.input",
     {1, 16, 3, 4, 5},
     {16, 32, 2, 1, 3},
     {{"stride", {2, 1, 3}}},
     {1, 32, 6, 4, 15}},
    {"aten.convolution.default",
     {1, 32, 9, 9},
     {32, 16, 2, 2},
     {{"stride", {2, 2}},
      {"padding", {0, 0}},
      {"dilation", {1, 1}},
      {"transposed", true},
      {"output_padding", {0, 0}},
      {"groups", 1}},
     {1, 16, 18, 18}},
};

/// One thing about each is not as it has to be.
const Layer kOthers[] = {
    {"aten.conv_transpose2d.input",
     {1, 16, 5, 5},
     {16, 16, 3, 3},
     {{"stride", {2, 2}}},
     {1, 16, 11, 11}},
    {"aten.conv_transpose2d.input",
     {1, 16, 5, 5},
     {16, 10, 2, 2},
     {{"stride", {2, 2}}},
     {1, 10, 10, 10}},
    {"aten.conv_transpose2d.input",
     {1, 16, 5, 5},
     {16, 16, 2, 2},
     {{"stride", {2, 2}}, {"output_padding", {1, 1}}},
     {1, 16, 11, 11}},
    {"aten.conv_transpose2d.input",
     {1, 16, 5, 5},
     {16, 16, 2, 2},
     {{"stride", {2, 2}}, {"padding", {1, 1}}},
     {1, 16, 8, 8}},
    {"aten.conv_transpose2d.input",
     {1, 16, 5, 5},
     {16, 16, 2, 2},
     {{"stride", {2, 2}}, {"groups", 2}, {"output_padding", {0, 0}}},
     {1, 32, 10, 10}},
};

}  // namespace

TEST_CASE("transposed convolutions of disjoint taps are pointwise ones", "[onednn]") {
  if (!test::use_backends()) return;
  for (const Layer& layer : kDisjoint) {
    const GraphBuilder graph = network(layer, false);
    CAPTURE(graph.text());
    const test::DeviceRun ran = run_on(graph, "npu");
    if (test::onednn::has_avx2()) CHECK_FALSE(has_deconvolution(ran));
    check_against_libtorch(graph, ran, 1e-4);
  }
}

TEST_CASE("a sum behind them keeps them deconvolutions", "[onednn]") {
  if (!test::use_backends()) return;
  const GraphBuilder graph = network(kDisjoint[1], true);
  check_against_libtorch(graph, run_on(graph, "npu"), 1e-4);
}

TEST_CASE("other transposed convolutions stay deconvolutions", "[onednn]") {
  if (!test::use_backends()) return;
  for (const Layer& layer : kOthers) {
    const GraphBuilder graph = network(layer, false);
    CAPTURE(graph.text());
    const test::DeviceRun ran = run_on(graph, "npu");
    CHECK(has_deconvolution(ran));
    check_against_libtorch(graph, ran, 1e-4);
  }
}

}  // namespace npu

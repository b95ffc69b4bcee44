// SPDX-License-Identifier: Apache-2.0
// What stands behind a kernel's node is computed from its whole result: a sum with something large
// is rounded to its last place once, not for each product.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/two_devices.hpp"
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/runtime/weight_store.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

struct SummedLayer {
  std::string op;
  Shape source;
  Shape weight;
  Json attrs;
  Shape result;
};

const SummedLayer kSummedLayers[] = {
    {"aten.conv2d.default",
     {1, 128, 16, 20},
     {2, 128, 3, 3},
     {{"padding", {1, 1}}},
     {1, 2, 16, 20}},
    {"aten.conv2d.default",
     {1, 128, 15, 15},
     {32, 128, 3, 3},
     {{"padding", {1, 1}}, {"stride", {2, 2}}},
     {1, 32, 8, 8}},
    {"aten.conv2d.default",
     {2, 64, 21, 18},
     {48, 64, 3, 3},
     {{"padding", {1, 1}}},
     {2, 48, 21, 18}},
    {"aten.conv2d.default", {1, 256, 7, 7}, {64, 256, 1, 1}, Json::object(), {1, 64, 7, 7}},
    {"aten.conv2d.default", {1, 20, 9, 9}, {24, 20, 3, 3}, {{"padding", {1, 1}}}, {1, 24, 9, 9}},
    {"aten.conv2d.default",
     {1, 32, 12, 12},
     {32, 1, 5, 5},
     {{"padding", {2, 2}}, {"groups", 32}},
     {1, 32, 12, 12}},
    {"aten.conv2d.default",
     {1, 64, 12, 12},
     {64, 4, 3, 3},
     {{"padding", {1, 1}}, {"groups", 16}},
     {1, 64, 12, 12}},
    {"aten.conv3d.default",
     {1, 32, 4, 10, 10},
     {32, 32, 3, 3, 3},
     {{"padding", {1, 1, 1}}},
     {1, 32, 4, 10, 10}},
    {"aten.conv1d.default", {2, 48, 40}, {32, 48, 9}, {{"padding", {4}}}, {2, 32, 40}},
    {"aten.conv_transpose2d.input",
     {1, 64, 6, 6},
     {64, 16, 3, 3},
     {{"stride", {2, 2}}},
     {1, 16, 13, 13}},
    {"aten.linear.default", {40, 300}, {70, 300}, Json::object(), {40, 70}},
};

/// Of numbers between 4096 and 8192, in float32.
constexpr double kLastPlace = 4096.0 / (1 << 23);

/// The layer; with `adds`, with numbers from 6000 to 7000 added, whose memory nothing else reads.
GraphBuilder with_sum(const SummedLayer& layer, bool adds) {
  GraphBuilder graph;
  graph.input("x", layer.source).weight("w", layer.weight);
  if (!adds) return graph.node("y", layer.op, {"x", "p_w"}, layer.result, layer.attrs).output("y");
  graph.input("z", layer.result);
  graph.node("large", "aten.relu.default", {"z"}, layer.result);
  graph.node("t", layer.op, {"x", "p_w"}, layer.result, layer.attrs);
  return graph.node("y", "aten.add.Tensor", {"t", "large"}, layer.result).output("y");
}

std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const TensorId input : graph.graph_inputs()) {
    const TensorInfo& info = graph.tensor(input);
    Tensor values(info.dtype, info.shape);
    const bool is_large = info.name == "z";
    for (std::int64_t i = 0; i < values.element_count(); ++i) {
      const float wave = std::sin(0.7F * static_cast<float>(i));
      values.as_mutable<float>()[i] = is_large ? 6500.0F + 500.0F * wave : wave;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

}  // namespace

TEST_CASE("what is added to a layer's result rounds once", "[onednn]") {
  if (!test::use_backends()) return;
  for (const SummedLayer& layer : kSummedLayers) {
    const GraphBuilder alone = with_sum(layer, false);
    const GraphBuilder summed = with_sum(layer, true);
    CAPTURE(summed.text());
    const Graph graph = summed.build();
    Diagnostics diagnostics;
    const std::vector<Tensor> weights =
        load_weights(graph, {.file = {}, .random_seed = 3}, diagnostics);
    const std::vector<Tensor> inputs = inputs_of(graph);
    const test::DeviceRun sum = test::run_on(summed, "npu", weights, inputs);
    CAPTURE(sum.kernels);
    Diagnostics others;
    const Tensor result =
        test::run_on(alone, "npu",
                     load_weights(alone.build(), {.file = {}, .random_seed = 3}, others),
                     {inputs.front()})
            .result;
    REQUIRE(test::errors_of(diagnostics).empty());
    double worst = 0.0;
    for (std::int64_t i = 0; i < result.element_count(); ++i) {
      const double expected = result.value_as_double(i) + inputs.back().value_as_double(i);
      worst = std::max(worst, std::fabs(sum.result.value_as_double(i) - expected));
    }
    CHECK(worst <= kLastPlace);
  }
}

TEST_CASE("a quotient behind a layer is rounded as it says", "[onednn]") {
  if (!test::use_backends()) return;
  const std::string mode = GENERATE("floor", "trunc");
  const bool is_number = GENERATE(true, false);
  const std::string layer = GENERATE("aten.mm.default", "aten.linear.default");
  GraphBuilder graph;
  graph.input("x", {2, 3}).input("w", {3, 3}).input("divisors", {3});
  graph.node("t", layer, {"x", "w"}, Shape{2, 3});
  if (is_number) {
    graph.node("y", "aten.div.Scalar_mode", {"t"}, Shape{2, 3},
               {{"other", -0.75}, {"rounding_mode", mode}});
  } else {
    graph.node("y", "aten.div.Tensor_mode", {"t", "divisors"}, Shape{2, 3},
               {{"rounding_mode", mode}});
  }
  graph.output("y");
  // Every product and sum is exact, and no quotient is near a whole number that it is not; w is its
  // own transpose.
  const float matrix[] = {1, -2, 3, -2, 4, 5, 3, 5, 2};
  const float rows[] = {1, 2, -3, 2, -1, 1};
  const float divisors[] = {-0.75F, 0.75F, 2.0F};
  std::vector<Tensor> inputs;
  for (const auto& [values, shape] :
       {std::pair<const float*, Shape>{rows, {2, 3}}, {matrix, {3, 3}}, {divisors, {3}}}) {
    inputs.emplace_back(DType::kFloat32, shape);
    std::copy_n(values, inputs.back().element_count(), inputs.back().as_mutable<float>());
  }
  const Tensor result = test::run_on(graph, "npu", {}, inputs).result;
  for (std::size_t i = 0; i < 6; ++i) {
    double sum = 0.0;
    for (std::size_t k = 0; k < 3; ++k)
      sum += static_cast<double>(rows[i / 3 * 3 + k]) * static_cast<double>(matrix[k * 3 + i % 3]);
    const double quotient = sum / (is_number ? -0.75 : static_cast<double>(divisors[i % 3]));
    const double expected = mode == "floor" ? std::floor(quotient) : std::trunc(quotient);
    CAPTURE(mode, is_number, layer, quotient);
    CHECK(result.value_as_double(static_cast<std::int64_t>(i)) == expected);
  }
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The kernel of attention over a cache: what it reads in place of its mask.
#include <algorithm>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "lowering/lower_graph.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::opencl {
namespace {

/// Two attentions that share a mask of lengths; the mask is an output if asked for.
Graph attentions(const char* operands, bool gives_mask) {
  const std::string text =
      std::string(R"({"model_name": "cache", "graph_inputs": [
      {"name": "q", "shape": [1, 4, 3, 8], "dtype": "float32"},
      {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
      {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
      {"name": "p", "shape": [3], "dtype": "int64"}, {"name": "n", "shape": [], "dtype": "int64"}],
    "weights": [], "nodes": [
      {"name": "m", "op_type": "npu.length_mask", "inputs": [)") +
      (std::string(operands) == "both" ? R"({"name": "p", "shape": [3], "dtype": "int64"},
                                    {"name": "n", "shape": [], "dtype": "int64"}], "attrs":
                                    {"operands": "both", "keys": 50, "causal": true, "window": 7})"
                                       : R"({"name": "p", "shape": [3], "dtype": "int64"}], "attrs":
                                    {"operands": "positions", "keys": 50, "causal": true})") +
      R"(, "outputs": [{"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}]},
      {"name": "a", "op_type": "aten.scaled_dot_product_attention.default", "inputs": [
        {"name": "q", "shape": [1, 4, 3, 8], "dtype": "float32"},
        {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}], "attrs": {"enable_gqa": true},
        "outputs": [{"name": "a", "shape": [1, 4, 3, 8], "dtype": "float32"}]},
      {"name": "b", "op_type": "aten.scaled_dot_product_attention.default", "inputs": [
        {"name": "a", "shape": [1, 4, 3, 8], "dtype": "float32"},
        {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}], "attrs": {"enable_gqa": true},
        "outputs": [{"name": "b", "shape": [1, 4, 3, 8], "dtype": "float32"}]}],
    "graph_outputs": [{"name": "b", "shape": [1, 4, 3, 8], "dtype": "float32"})" +
      (gives_mask ? R"(, {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"})" : "") + "]}";
  return read_valid_graph(text, "cache.json");
}

}  // namespace

TEST_CASE("attention over a cache reads lengths, and its mask is made for others alone") {
  const bool has_both = GENERATE(false, true);
  const bool gives_mask = GENERATE(false, true);
  Machine machine;
  machine.is_cpu = true;
  const Plan plan = lower_graph(attentions(has_both ? "both" : "positions", gives_mask), machine,
                                [](std::size_t, std::size_t) {})
                        .plan;
  REQUIRE(plan.launches.size() == (gives_mask ? 3U : 2U));
  for (const Launch& launch : plan.launches) {
    const auto reads_input = [&](std::uint64_t which) {
      return std::ranges::any_of(launch.arguments, [&](const Place& place) {
        return place.kind == PlaceKind::kInput && place.value == which;
      });
    };
    CHECK(reads_input(3));              // p
    CHECK(reads_input(4) == has_both);  // n
  }
  CHECK(plan.scratch_bytes == 512);  // the first result, 4 * 3 * 8 floats in pieces of 256 bytes
}

TEST_CASE("a written attention over a cache is one kernel that reads lengths") {
  const bool has_sinks = GENERATE(false, true);
  const bool gives_mask = GENERATE(false, true);
  const bool has_bias = GENERATE(false, true);
  test::GraphBuilder net;
  const Shape scores{1, 4, 3, 50};
  net.input("q", {1, 4, 3, 8}).input("k", {1, 4, 8, 50}).input("v", {1, 4, 50, 8});
  net.input("p", {3}, "int64").input("s", {1, 4, 1, 1});
  net.node("m", "npu.length_mask", {"p"}, Shape{1, 1, 3, 50},
           {{"operands", "positions"}, {"keys", 50}, {"causal", true}}, "bool");
  net.node("o", "aten.logical_not.default", {"m"}, Shape{1, 1, 3, 50}, {}, "bool");
  net.node("a", "aten.matmul.default", {"q", "k"}, scores);
  net.node("b", "aten.div.Tensor", {"a"}, scores, {{"other", 5.0}});
  net.node("c", "aten.tanh.default", {"b"}, scores);
  net.node("d", "aten.mul.Tensor", {"c"}, scores, {{"other", 5.0}});
  std::string value = "d";
  if (has_bias) {
    net.input("z", {4, 1, 50});
    net.node("w", "aten.add.Tensor", {"d", "z"}, scores);
    value = "w";
  }
  net.node("e", "aten.masked_fill.Scalar", {value, "o"}, scores, {{"value", "-inf"}});
  std::string weights = "e";
  const Shape wide{1, 4, 3, 51};
  if (has_sinks) {
    net.node("x", "aten.expand.default", {"s"}, Shape{1, 4, 3, 1}, {{"size", {1, 4, 3, 1}}});
    net.node("f", "aten.cat.default", {"e", "x"}, wide, {{"dim", -1}});
    weights = "f";
  }
  net.node("g", "aten.softmax.int", {weights}, has_sinks ? wide : scores, {{"dim", -1}});
  weights = "g";
  if (has_sinks) {
    net.node("h", "aten.slice.Tensor", {"g"}, scores, {{"dim", -1}, {"start", 0}, {"end", -1}});
    weights = "h";
  }
  net.node("y", "aten.matmul.default", {weights, "v"}, Shape{1, 4, 3, 8}).output("y");
  if (gives_mask) net.output("m");
  Graph graph = net.build();
  for (Node& node : graph.nodes()) {
    if (node.name == "m" || node.name == "o" || node.name == "x") continue;
    node.fusion_group = 1;
    node.json["fusion_pattern"] = "cached-attention";
  }
  Machine machine;
  machine.is_cpu = true;
  const Plan plan = lower_graph(graph, machine, [](std::size_t, std::size_t) {}).plan;
  REQUIRE(plan.launches.size() == (gives_mask ? 2U : 1U));
  CHECK(plan.scratch_bytes == 0);
  const auto reads_input = [&](std::uint64_t which) {
    return std::ranges::any_of(plan.launches.back().arguments, [&](const Place& place) {
      return place.kind == PlaceKind::kInput && place.value == which;
    });
  };
  CHECK(reads_input(3));               // p
  CHECK(reads_input(4) == has_sinks);  // s
  CHECK(reads_input(5) == has_bias);   // z
}

}  // namespace npu::opencl

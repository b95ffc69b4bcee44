// SPDX-License-Identifier: Apache-2.0
// Contraction of fusion groups, and parts of the contracted graph.
#include "partition/fused_graph.hpp"

#include <random>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/error.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;

namespace {

std::vector<std::int32_t> list(std::span<const std::int32_t> values) {
  return {values.begin(), values.end()};
}

// a -> b -> d and a -> c -> d, with b and c of one group and on the other device.
GraphBuilder diamond() {
  GraphBuilder builder;
  builder.lines(R"(
    input x
    a = relu(x) @npu
    b = relu(a) @cpu fusion_group=7
    c = relu(a) @cpu fusion_group=7
    d = aten.add.Tensor(b, c) @npu; output d)");
  return builder;
}

}  // namespace

TEST_CASE("fused graph: a group becomes one node with each neighbour once") {
  const Graph graph = diamond().build();
  const FusedGraph fused = build_fused_graph(graph);
  REQUIRE(fused.size() == 3);
  CHECK(fused.device_names == std::vector<std::string>{"npu", "cpu"});
  CHECK(fused.device == std::vector<std::int32_t>{0, 1, 0});
  CHECK(fused.fused_node_of == std::vector<std::int32_t>{0, 1, 1, 2});
  CHECK(fused.members[1].size() == 2);
  CHECK(list(fused.successors(0)) == std::vector<std::int32_t>{1});  // not twice
  CHECK(list(fused.successors(1)) == std::vector<std::int32_t>{2});
  CHECK(fused.predecessor_count == std::vector<std::int32_t>{0, 1, 1});
  CHECK(fused.order == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE("fused graph: the empty graph") {
  const FusedGraph fused = build_fused_graph(GraphBuilder().input("x").output("x").build());
  CHECK(fused.size() == 0);
  CHECK(fused.order.empty());
}

TEST_CASE("fused graph: no device, two devices, and a path that leaves a group") {
  GraphBuilder untagged;
  untagged.input("x").node("a", "aten.relu.default", {"x"}).output("a");
  CHECK_THROWS_AS(build_fused_graph(untagged.build()), Error);

  Graph two = diamond().build();
  two.nodes()[2].device = "npu";
  CHECK_THROWS_WITH(build_fused_graph(two), Catch::Matchers::Contains("nodes on two devices"));

  Graph hole = diamond().build();
  for (Node& node : hole.nodes()) {
    node.device = "npu";
    node.fusion_group.reset();
  }
  hole.nodes()[0].fusion_group = 1;
  hole.nodes()[3].fusion_group = 1;
  CHECK_THROWS_WITH(build_fused_graph(hole), Catch::Matchers::Contains("is not convex"));
}

TEST_CASE("fused graph: what counts as float32 between integers stays together") {
  const std::string library = "quantized_decomposed.";
  // q -> x -> y -> r in float64, and a neighbour; with `back`, r goes back into the region.
  const auto region = [&](bool has_group, bool goes_back) {
    GraphBuilder builder;
    builder.input("q", {4}, "uint8")
        .node("x", library + "dequantize_per_tensor.default", {"q"}, Shape{4}, Json::object(),
              "float64")
        .on("npu")
        .node("y", "aten.sigmoid.default", {"x"}, Shape{4}, Json::object(), "float64")
        .on("npu");
    if (has_group) builder.key("fusion_group", 3);
    builder
        .node("r", library + "quantize_per_tensor.default", {"y"}, Shape{4}, Json::object(),
              "uint8")
        .on("npu");
    if (has_group) builder.key("fusion_group", 3);
    builder.node("n", "aten.alias.default", {"r"}, Shape{4}, Json::object(), "uint8").on("npu");
    if (goes_back) {
      builder
          .node("b", library + "dequantize_per_tensor.default", {"n"}, Shape{4}, Json::object(),
                "float64")
          .on("npu")
          .node("s", "aten.add.Tensor", {"x", "b"}, Shape{4}, Json::object(), "float64")
          .on("npu")
          .node("t", library + "quantize_per_tensor.default", {"s"}, Shape{4}, Json::object(),
                "uint8")
          .on("npu")
          .output("t");
    }
    return builder.output("n").build();
  };
  for (const bool has_group : {false, true}) {
    const FusedGraph fused = build_fused_graph(region(has_group, false));
    CHECK(fused.fused_node_of == std::vector<std::int32_t>{0, 0, 0, 1});
  }
  // A cycle if it was one unit.
  const FusedGraph apart = build_fused_graph(region(false, true));
  CHECK(apart.size() == 7);
  // One of them elsewhere, by hand: nothing has to be together.
  Graph forced = region(false, false);
  forced.nodes()[1].device = "cpu";
  CHECK(build_fused_graph(forced).size() == 4);
}

TEST_CASE("fused graph: a part has the edges inside and nothing else") {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    const Graph graph = random_builder(random, {.nodes = 1 + round % 30, .devices = 2}).build();
    const FusedGraph fused = build_fused_graph(graph);
    std::vector<std::int32_t> part;
    for (const std::int32_t node : fused.order) {
      if (random() % 3 != 0) part.push_back(node);
    }
    std::vector<std::int32_t> local(fused.size(), -1);
    const FusedGraph own = induced_fused_graph(fused, part, local);
    CHECK(std::count(local.begin(), local.end(), -1) == static_cast<std::ptrdiff_t>(local.size()));
    REQUIRE(own.size() == part.size());
    std::vector<std::int32_t> entering(part.size(), 0);
    for (std::size_t i = 0; i < part.size(); ++i) {
      CHECK(own.device[i] == fused.device[static_cast<std::size_t>(part[i])]);
      CHECK(own.order[i] == static_cast<std::int32_t>(i));
      std::vector<std::int32_t> expected;
      for (const std::int32_t next : fused.successors(part[i])) {
        const auto found = std::find(part.begin(), part.end(), next);
        if (found == part.end()) continue;
        expected.push_back(static_cast<std::int32_t>(found - part.begin()));
        ++entering[static_cast<std::size_t>(expected.back())];
      }
      CHECK(list(own.successors(static_cast<std::int32_t>(i))) == expected);
    }
    CHECK(own.predecessor_count == entering);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Which nodes npu-tag folds.
#include "passes/tag/find_constants.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/json.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

// npu computes constants of mul and view when it compiles, and lacks arange, index and the like.
Target two_devices() {
  return parse_target(parse_json(R"({
    "name": "two",
    "devices": [
      {"name": "npu", "backend": "onednn", "dtypes": ["float32"], "fusion": ["constant"],
       "ops": [{"types": ["aten.relu.default", "aten.add.Tensor", "aten.mul.Tensor",
                          "aten.view.default"]}],
       "peak_flops": {"float32": 1}, "memory_bandwidth": 1},
      {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1},
       "memory_bandwidth": 1}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1}]
  })",
                                 "two.json"),
                      "two.json");
}

Graph tagged(Graph graph, const TagOptions& options = {}, const Target& target = two_devices()) {
  Diagnostics diagnostics;
  tag_ops(graph, target, options, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  return graph;
}

std::string folded(const Graph& graph) {
  std::string names;
  for (const FoldedNode& each : graph.folded()) {
    names += each.node.name + ' ';
    CHECK(each.node.device_reason == "constant");
    CHECK_FALSE(each.node.device.has_value());
  }
  return names;
}

// relu(x) + w * arange(4)
GraphBuilder grid() {
  return GraphBuilder().lines(R"(
    input x; weight w [4]
    a = relu(x)
    grid = arange() {"end": 4}
    scaled = aten.mul.Tensor(grid, p_w)
    b = aten.add.Tensor(a, scaled); output b)");
}

}  // namespace

TEST_CASE("what a device computes when it compiles stays there, what it lacks is folded") {
  const Graph graph = tagged(grid().build());
  CHECK(folded(graph) == "grid ");
  // With its operand a weight, this is a constant of the npu.
  CHECK(graph.node(graph.find_node("scaled")).device == "npu");
}

TEST_CASE("a constant that another device reads is folded with all that it is made of") {
  const Graph graph = tagged(graph_of(R"(
    input x; weight w [4]
    twice = aten.mul.Tensor(p_w) {"other": 2}
    flat = view(twice) {"size": [4]}
    y = atan2(x, flat); output y)"));
  CHECK(folded(graph) == "twice flat ");
}

TEST_CASE("a view of a weight beside its reader is no work, and stays") {
  const Graph graph = tagged(graph_of(R"(
    input x; weight w [2,2]
    flat = permute(p_w) {"dims": [1, 0]}
    y = atan2(x, flat) [2,2]; output y)"));
  CHECK(folded(graph).empty());
  CHECK(graph.node(graph.find_node("flat")).device == "cpu");
}

TEST_CASE("of some operands only the type counts") {
  // new_zeros has no element of x; copies of it change it one after the other.
  const Graph graph = tagged(graph_of(R"(
    input x [4,4]; weight v []
    a = relu(x)
    mask = new_zeros(a) [4] {"size": [4]}
    part = aten.slice.Tensor(mask) [2] {"dim": 0, "end": 2}
    set = aten.fill_.Tensor(part, p_v)
    all = slice_scatter(mask, set) {"dim": 0, "end": 2}
    like = ones_like(a)
    b = aten.add.Tensor(a, all)
    c = aten.add.Tensor(b, like)
    d = exp(a); output c, d)"));
  CHECK(folded(graph) == "mask part set all like ");
  CHECK(graph.tensor(graph.find_tensor("a")).consumers.size() == 2);
}

TEST_CASE("what differs from run to run is not folded") {
  const Graph graph = tagged(graph_of(R"(
    input x; weight w [4]
    noise = dropout(p_w) {"p": 0.5, "train": true}
    any = aten.empty.memory_format() {"size": [4]}
    mine = aten.bernoulli.p(p_w) {"p": 0.5}
    sin = sin(noise)
    y = aten.add.Tensor(x, sin)
    z = aten.add.Tensor(y, any)
    u = aten.add.Tensor(z, mine); output u)"));
  CHECK(folded(graph).empty());
}

TEST_CASE("a result that is larger than what it is made of is not folded") {
  const std::int64_t large = (std::int64_t{16} << 20) / 4;  // 16 MiB of float32
  const auto made = [&](std::int64_t count, const Shape& weight) {
    return folded(tagged(GraphBuilder()
                             .input("x", {count})
                             .weight("w", weight)
                             .node("big", "aten.repeat.default", {"p_w"}, Shape{count},
                                   {{"repeats", {count / weight[0]}}})
                             .node("y", "aten.add.Tensor", {"x", "big"})
                             .output("y")
                             .build()));
  };
  CHECK(made(large, {2}) == "big ");
  CHECK(made(2 * large, {2}).empty());
  CHECK(made(2 * large, {2 * large}) == "big ");
}

TEST_CASE("what is placed by hand is not folded") {
  TagOptions options;
  options.force = {{"cpu", "grid"}};
  const Graph graph = tagged(grid().build(), options);
  CHECK(folded(graph).empty());
  CHECK(graph.node(graph.find_node("grid")).device_reason == "forced");
  options = {};
  options.fold = false;
  CHECK(folded(tagged(grid().build(), options)).empty());
}

TEST_CASE("without a device to compute it nothing is folded") {
  Target target = two_devices();
  for (Device& device : target.devices) device.backend.clear();
  CHECK(folded(tagged(grid().build(), {}, target)).empty());
}

TEST_CASE("a list of results is folded with all that take it apart") {
  const Graph graph = tagged(graph_of(R"(
    input x; weight w [8]
    twice = sin(p_w)
    halves = aten.split.Tensor(twice) [4] [4] {"split_size": 4}
    first = getitem(halves_0, halves_1) {"index": 0}
    last = getitem(halves_0, halves_1) {"index": 1}
    y = aten.add.Tensor(x, first)
    z = atan2(y, last); output z)"));
  CHECK(folded(graph) == "twice halves first last ");
}

TEST_CASE("tagging again finds the same, and says whether anything changed") {
  Graph graph = tagged(grid().build());
  const std::string text = write_graph(graph);
  Diagnostics diagnostics;
  CHECK_FALSE(tag_ops(graph, two_devices(), {}, diagnostics));
  CHECK(write_graph(graph) == text);
  TagOptions options;
  options.fold = false;
  CHECK(tag_ops(graph, two_devices(), options, diagnostics));
  CHECK(folded(graph).empty());
  CHECK(graph.node(graph.find_node("grid")).device == "cpu");
  CHECK(graph.node(graph.find_node("grid")).device_reason == "unsupported op");
}

TEST_CASE("a fault leaves the graph as it was") {
  Graph graph = tagged(grid().build());
  const std::string text = write_graph(graph);
  TagOptions options;
  options.force = {{"npu", "grid"}};
  Diagnostics diagnostics;
  CHECK_FALSE(tag_ops(graph, two_devices(), options, diagnostics));
  CHECK(diagnostics.has_errors());
  CHECK(write_graph(graph) == text);
}

TEST_CASE("folded nodes are counted apart") {
  const TagReport report = tag_report(tagged(grid().build()), two_devices());
  CHECK(report.nodes == 3);
  CHECK(report.folded == 1);
  REQUIRE_FALSE(report.rows.empty());
  CHECK(report.rows.back().op_type == "aten.arange.default");
  CHECK(report.rows.back().device.empty());
  CHECK(report.rows.back().reason == "constant");
  const auto metrics = tag_metrics(report);
  CHECK(metrics.at("nodes_folded") == 1);
  CHECK(metrics.at("coverage_nodes") == 1);
  CHECK(metrics.at("unsupported_ops") == 0);
}

// SPDX-License-Identifier: Apache-2.0
// A document that says nothing of devices is placed by cost; what it says counts otherwise.
#include "runtime/place_model.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/json.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

// npu is ten times as fast, lacks tanh, and is far away: a transfer takes longer than any node.
Target far_away() {
  return parse_target(parse_json(R"({
    "name": "far",
    "devices": [
      {"name": "npu", "backend": "onednn", "dtypes": ["float32"],
       "ops": [{"types": ["aten.relu.default", "aten.matmul.default"]}],
       "peak_flops": {"float32": 1e12}, "memory_bandwidth": 1e11},
      {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1e11},
       "memory_bandwidth": 1e10}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9, "latency_us": 1000}]
  })",
                                 "far.json"),
                      "far.json");
}

// matmul, then `op`, then relu.
Graph chain(const std::string& op) {
  return GraphBuilder()
      .input("x", {64, 64})
      .weight("w", {64, 64})
      .node("y", "aten.matmul.default", {"x", "p_w"})
      .node("t", op, {"y"})
      .node("z", "aten.relu.default", {"t"})
      .output("z")
      .build();
}

PlacedModel placed(Graph& graph, const DeviceChoice& where = {}) {
  Diagnostics diagnostics;
  PlacedModel result = place_model(graph, where, {}, diagnostics);
  CHECK(diagnostics.entries().empty());
  return result;
}

std::string devices(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) text += node.device.value_or("-") + ' ';
  return text;
}

}  // namespace

TEST_CASE("a transfer that costs more than it saves is not made") {
  Graph graph = chain("aten.tanh.default");
  graph.set_npu_member("target", *far_away().json);
  const PlacedModel result = placed(graph);
  CHECK(devices(graph) == "cpu cpu cpu ");
  CHECK(result.plan.partitions.size() == 1);
  CHECK(result.target.name == "far");
  CHECK(result.note.starts_with(
      "placed by cost for target 'far': nodes: cpu 3; partitions: 1; predicted ms: 0.0"));
  Graph all_npu = chain("aten.relu.default");
  all_npu.set_npu_member("target", *far_away().json);
  CHECK(placed(all_npu).by_cost());
  CHECK(devices(all_npu) == "npu npu npu ");
}

TEST_CASE("no device that runs the whole model is predicted to be faster") {
  for (const char* op : {"aten.tanh.default", "aten.relu.default"}) {
    Graph graph = chain(op);
    graph.set_npu_member("target", *far_away().json);
    const PlacedModel result = placed(graph);
    const double us = plan_metrics(graph, result.plan, result.target).predicted_us;
    CHECK(us <=
          plan_metrics(graph, single_partition_plan(graph, "cpu"), result.target).predicted_us);
  }
}

TEST_CASE("devices that are asked for are the only ones") {
  Graph graph = chain("aten.relu.default");
  const PlacedModel result = placed(graph, {.devices = {"cpu"}});
  CHECK(devices(graph) == "cpu cpu cpu ");
  CHECK(result.target.devices.size() == 1);
  Graph other = chain("aten.relu.default");
  placed(other, {.excluded = {"npu"}});
  CHECK(devices(other) == "cpu cpu cpu ");
}

TEST_CASE("what a document says of devices is kept, and options that say else are not used") {
  Graph graph = chain("aten.tanh.default");
  Diagnostics tags;
  tag_ops(graph, far_away(), {}, tags);
  const std::string tagged = devices(graph);
  CHECK(tagged == "npu cpu npu ");
  Diagnostics diagnostics;
  const PlacedModel result =
      place_model(graph, {.target = "host", .devices = {"cpu"}}, {}, diagnostics);
  CHECK_FALSE(result.by_cost());
  CHECK(result.plan.partitions.size() == 3);
  CHECK(devices(graph) == tagged);
  REQUIRE(diagnostics.entries().size() == 2);
  CHECK(diagnostics.entries()[0].text ==
        "--target host is ignored: the document is tagged for target 'far'");
  CHECK(diagnostics.entries()[1].text == "--devices is ignored: the document is tagged already");
  // The plan that is there now is read again.
  Graph again = read_valid_graph(write_graph(graph), "again.json");
  Diagnostics none;
  CHECK(place_model(again, DeviceChoice{}, {}, none).plan.partitions.size() == 3);
  CHECK(test::errors_of(none) == std::vector<std::string>{});
}

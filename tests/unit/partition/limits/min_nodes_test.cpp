// SPDX-License-Identifier: Apache-2.0
// Partitions that are too small go to the next device that runs them.
#include "partition/limits/min_nodes.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

// npu runs relu and neg, gpu also exp, cpu everything; view costs nothing on the npu.
Target three_devices() {
  return parse_target(Json::parse(R"({"name": "three", "devices": [
    {"name": "npu", "ops": [{"types": ["aten.relu.default", "aten.neg.default", "aten.view.default"]}],
     "aliases": ["aten.view.default"], "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
    {"name": "gpu", "ops": [{"types": ["aten.relu.default", "aten.exp.default"]}],
     "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
    "links": [{"from": "npu", "to": "gpu", "bandwidth": 1e9, "latency_us": 1},
              {"from": "npu", "to": "cpu", "bandwidth": 1e9, "latency_us": 1},
              {"from": "gpu", "to": "cpu", "bandwidth": 1e9, "latency_us": 1}]})"),
                      "three.json");
}

std::string devices_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) text += (text.empty() ? "" : " ") + *node.device;
  return text;
}

std::string ops_chain(Graph& graph, std::int64_t min_nodes) {
  partition_with_min_nodes(graph, three_devices(), min_nodes, partition_convex);
  return devices_of(graph);
}

}  // namespace

TEST_CASE("min nodes: the empty graph stays empty") {
  Graph graph = GraphBuilder().build();
  CHECK(partition_with_min_nodes(graph, three_devices(), 5, partition_convex).partitions.empty());
}

TEST_CASE("min nodes: 0 and 1 change nothing") {
  for (const std::int64_t least : {0, 1}) {
    Graph graph = nodes_of({"a aten.relu.default x @npu"}).output("a").build();
    CHECK(ops_chain(graph, least) == "npu");
    CHECK_FALSE(graph.nodes()[0].device_reason.has_value());
  }
}

TEST_CASE("min nodes: a small partition goes to the next device that runs all of it") {
  // gpu has relu, so a goes there; then the gpu partition is too small as well, and a goes to the
  // cpu.
  Graph graph = nodes_of({"a aten.relu.default x @npu"}).output("a").build();
  CHECK(ops_chain(graph, 2) == "cpu");
  CHECK(graph.nodes()[0].device_reason == "min nodes");
  // The gpu does not run neg: both nodes go to the cpu, not one of them to the gpu.
  graph = nodes_of({"a aten.relu.default x @npu", "b aten.neg.default a @npu"}).output("b").build();
  CHECK(ops_chain(graph, 3) == "cpu cpu");
}

TEST_CASE("min nodes: a partition of exactly that many nodes stays") {
  Graph graph =
      nodes_of({"a aten.relu.default x @npu", "b aten.neg.default a @npu"}).output("b").build();
  CHECK(ops_chain(graph, 2) == "npu npu");
}

TEST_CASE("min nodes: a node that joins its new neighbours makes them large enough") {
  // relu moves from the npu to the gpu, where two exp wait: three nodes there are enough.
  Graph graph = nodes_of({"a aten.exp.default x @gpu", "b aten.relu.default a @npu",
                          "c aten.exp.default b @gpu"})
                    .output("c")
                    .build();
  const PartitionPlan plan = partition_with_min_nodes(graph, three_devices(), 1, partition_convex);
  CHECK(plan.partitions.size() == 3);
  graph.nodes()[0].device_reason = "forced";
  graph.nodes()[2].device_reason = "forced";
  const PartitionPlan joined =
      partition_with_min_nodes(graph, three_devices(), 3, partition_convex);
  CHECK(steps_of(graph, joined) == Lines{"gpu: a b c"});
  CHECK(graph.nodes()[1].device_reason == "min nodes");
}

TEST_CASE("min nodes: partitions on the last device stay, however small") {
  Graph graph = nodes_of({"a aten.relu.default x @cpu"}).output("a").build();
  CHECK(ops_chain(graph, 100) == "cpu");
  CHECK_FALSE(graph.nodes()[0].device_reason.has_value());
}

TEST_CASE("min nodes: a node that was forced or kept holds its partition") {
  for (const char* reason : {"forced", "kept"}) {
    CAPTURE(reason);
    Graph graph = GraphBuilder()
                      .input("x")
                      .node("a", "aten.relu.default", {"x"})
                      .on("npu")
                      .node("b", "aten.relu.default", {"a"})
                      .on("npu")
                      .key("device_reason", reason)
                      .output("b")
                      .build();
    CHECK(ops_chain(graph, 100) == "npu npu");
    graph.nodes()[1].device_reason = "unsupported op";
    CHECK(ops_chain(graph, 100) == "cpu cpu");
  }
}

TEST_CASE("min nodes: nodes that cost nothing do not count") {
  GraphBuilder builder;
  builder.lines(R"(
    input x
    a = relu(x) @npu
    b = view(a) {"size": [4]} @npu
    c = view(b) {"size": [4]} @npu; output c)");
  Graph graph = builder.build();
  CHECK(ops_chain(graph, 2) == "cpu cpu cpu");  // one node that counts
}

TEST_CASE("min nodes: ends, and leaves no partition below it that could move") {
  std::mt19937 random(29);
  const std::vector<std::string> ops{"aten.relu.default", "aten.neg.default", "aten.exp.default",
                                     "aten.sin.default"};
  const Target target = three_devices();
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    GraphBuilder builder;
    builder.input("x");
    const int count = 1 + round % 15;
    for (int n = 0; n < count; ++n) {
      const std::string& op = ops[random() % 4];
      const std::string from = n == 0 || random() % 4 == 0
                                   ? "x"
                                   : "n" + std::to_string(random() % static_cast<unsigned>(n));
      builder.node("n" + std::to_string(n), op, {from});
      builder.on(op == ops[0] || op == ops[1] ? "npu" : op == ops[2] ? "gpu" : "cpu");
    }
    Graph graph = builder.build();
    const std::int64_t least = 2 + round % 3;
    const PartitionPlan plan = partition_with_min_nodes(graph, target, least, partition_convex);
    check_plan(graph, plan);
    for (const Partition& partition : plan.partitions) {
      // Every op runs on the cpu, so nothing holds a small partition elsewhere.
      if (partition.device != "cpu")
        CHECK(static_cast<std::int64_t>(partition.nodes.size()) >= least);
    }
  }
}

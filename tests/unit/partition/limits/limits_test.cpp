// SPDX-License-Identifier: Apache-2.0
// Limits on the number of partitions and on their memory.
#include "partition/limits/limits.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/passes/tag.hpp"
#include "partition/limits/working_set.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// npu runs relu, much faster than cpu, which runs everything.
Target two_devices(double latency_us) {
  Json json = Json::parse(R"({"name": "two", "devices": [
    {"name": "npu", "ops": [{"types": ["aten.relu.default"]}], "peak_flops": {"float32": 1e12},
     "memory_bandwidth": 1e12},
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e12}]})");
  json["links"][0]["latency_us"] = latency_us;
  return parse_target(json, "two.json");
}

Graph tagged(const GraphBuilder& builder, const Target& target) {
  Graph graph = builder.build();
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

}  // namespace

TEST_CASE("max partitions: the island that saves most time stays, not the one with most nodes") {
  // relu of 4 elements three times; sin; relu of 4 million elements; sin.
  const Target target = two_devices(1);
  GraphBuilder builder;
  builder.lines(R"(
    input x [4]; input y [4000000]
    s0 = sin(x)
    r0 = relu(s0)
    r1 = relu(r0)
    r2 = relu(r1)
    s1 = sin(r2)
    s2 = sum(s1) []
    s3 = aten.add.Tensor(y, s2)
    big = relu(s3)
    s4 = sin(big); output s4)");
  for (const Strategy strategy : {Strategy::kContiguous, Strategy::kConvex, Strategy::kMinCut}) {
    CAPTURE(static_cast<int>(strategy));
    Graph graph = tagged(builder, target);
    Diagnostics diagnostics;
    const PartitionResult result =
        partition_graph(graph, {.strategy = strategy, .max_partitions = 3}, diagnostics);
    CHECK(result.metrics.partitions == 3);
    CHECK(graph.nodes()[7].device == "npu");
    for (std::size_t n = 1; n < 4; ++n) CHECK(graph.nodes()[n].device == "cpu");
  }
  // Without the strategy's own reason, the limit's stands there.
  Graph graph = tagged(builder, target);
  Diagnostics diagnostics;
  partition_graph(graph, {.strategy = Strategy::kConvex, .max_partitions = 3}, diagnostics);
  CHECK(graph.nodes()[1].device_reason == "max partitions");
}

TEST_CASE("max partitions: what hands have placed is a reason to fail") {
  const Target target = two_devices(1);
  Graph graph = tagged(GraphBuilder().lines(R"(
    input x
    a = relu(x)
    b = sin(a)
    c = relu(b); output c)"),
                       target);
  graph.nodes()[0].device_reason = "forced";
  graph.nodes()[2].device_reason = "kept";
  Diagnostics diagnostics;
  try {
    partition_graph(graph, {.max_partitions = 2}, diagnostics);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.message() ==
          "--max-partitions 2: the plan needs 3 partitions; use --max-partitions 3 or more");
  }
}

TEST_CASE("min flops: small work goes to the next device, whatever its number of nodes") {
  const Target target = two_devices(0);
  Graph graph = tagged(GraphBuilder().lines(R"(
    input x [10]; input y [1000]
    a = relu(x)
    b = relu(a)
    c = sin(b)
    d = aten.add.Tensor(y, c)
    e = relu(d); output e)"),
                       target);
  Diagnostics diagnostics;
  // a and b have 20 FLOPs, e 1,000.
  partition_graph(graph, {.min_flops = 500}, diagnostics);
  CHECK(graph.nodes()[0].device_reason == "min flops");
  CHECK(graph.nodes()[1].device == "cpu");
  CHECK(graph.nodes()[4].device == "npu");
}

TEST_CASE("memory limit: the fewest runs that fit, and a node that never does") {
  // A chain of ten results of 400 bytes: a run of any length holds its input and two of them.
  const Target target = two_devices(0);
  GraphBuilder builder;
  builder.input("x", {100});
  for (int n = 0; n < 10; ++n) {
    builder.weight("w" + std::to_string(n), {100})
        .node("n" + std::to_string(n), "aten.add.Tensor",
              {n == 0 ? "x" : "n" + std::to_string(n - 1), "p_w" + std::to_string(n)});
  }
  builder.output("n9");
  Graph graph = tagged(builder, target);
  Diagnostics diagnostics;
  // 400 for the input, 400 for each weight, 800 for two results: three nodes need 2,400.
  const PartitionResult result = partition_graph(graph, {.memory_limit = 2400}, diagnostics);
  CHECK(result.plan.partitions.size() == 4);
  for (const Partition& partition : result.plan.partitions) {
    CHECK(working_set_bytes(graph, partition.nodes) <= 2400);
  }
  check_plan(graph, result.plan);
  Graph again = tagged(builder, target);
  try {
    partition_graph(again, {.memory_limit = 1000}, diagnostics);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.message() == "node 'n0' needs 1200 bytes alone; use --memory-limit 1200 or more");
  }
}

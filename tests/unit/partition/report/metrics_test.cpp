// SPDX-License-Identifier: Apache-2.0
// Counts and predictions of a plan, with the arithmetic done by hand.
#include "npu/partition/metrics.hpp"

#include <cmath>

#include "catch.hpp"
#include "cost/roofline.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/partition_json.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// Rates that make microseconds easy: 1e9 per second is 1000 per microsecond.
Target two_devices() {
  return parse_target(Json::parse(R"({"name": "two", "devices": [
    {"name": "npu", "ops": [{"types": ["aten.relu.default", "aten.mm.default"]}], "aliases": ["aten.view.default"],
     "peak_flops": {"float32": 4e9, "bfloat16": 8e9}, "memory_bandwidth": 2e9, "launch_overhead_us": 5},
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9, "launch_overhead_us": 1}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9, "latency_us": 3},
              {"from": "cpu", "to": "npu", "bandwidth": 2e9, "latency_us": 7}]})"),
                      "two.json");
}

bool near(double actual, double expected) { return std::abs(actual - expected) < 1e-9; }

// npu: a -> cpu: b -> npu: c = relu(b + nothing); a has a second reader on the cpu in a later run.
GraphBuilder small_model() {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1000]
    a = relu(x) @npu
    b = relu(a) @cpu
    c = relu(b) @npu
    d = aten.add.Tensor(c, a) @cpu; output d)");
  return builder;
}

}  // namespace

TEST_CASE("roofline: an op takes the longer of arithmetic and traffic") {
  const Target target = two_devices();
  const Graph graph = graph_of(R"(
    input x [1000]; input l [10,20]; input r [20,30]; input h [10,20] bfloat16
    input g [20,30] bfloat16
    relu = relu(x)
    mm = mm(l, r) [10,30]
    view = view(x) {"size": [1000]}
    half = mm(h, g) [10,30])");
  const Device& npu = target.devices[0];
  const Device& cpu = target.devices[1];
  // relu: 1000 flops, 8000 bytes. npu: 1000 / 4000 = 0.25 us < 8000 / 2000 = 4 us.
  CHECK(near(node_us(graph, graph.nodes()[0], npu), 4));
  CHECK(near(node_us(graph, graph.nodes()[0], cpu), 8));
  // mm: 2 * 10 * 20 * 30 = 12000 flops, 4 * (200 + 600 + 300) = 4400 bytes. npu: 3 us > 2.2 us.
  CHECK(near(node_us(graph, graph.nodes()[1], npu), 3));
  CHECK(near(node_us(graph, graph.nodes()[1], cpu), 12));
  // An alias of the device moves nothing.
  CHECK(node_us(graph, graph.nodes()[2], npu) == 0);
  // In bfloat16 the npu computes twice as fast and moves half as much: 1.5 us > 1.1 us.
  CHECK(near(node_us(graph, graph.nodes()[3], npu), 1.5));
  // The cpu has no rate for bfloat16 and counts as for float32: 12 us.
  CHECK(near(node_us(graph, graph.nodes()[3], cpu), 12));
}

TEST_CASE("roofline: a transfer takes latency and bytes over the link of its direction") {
  const Target target = two_devices();
  CHECK(near(transfer_us(target, "npu", "cpu", 4000), 3 + 4));  // 4000 / 1000
  CHECK(near(transfer_us(target, "cpu", "npu", 4000), 7 + 2));
  CHECK(near(transfer_us(target, "npu", "cpu", 0), 3));
  CHECK(transfer_us(target, "npu", "npu", 4000) == 0);
}

TEST_CASE("metrics: the empty graph has none") {
  const Graph graph = GraphBuilder().build();
  const Target target = two_devices();
  const PlanMetrics metrics = plan_metrics(graph, partition_convex(graph), target);
  CHECK(metrics.partitions == 0);
  CHECK(metrics.transfers == 0);
  CHECK(metrics.predicted_us == 0);
  CHECK(metrics.all_on_last_us == 0);
  CHECK(metrics.partitions_by_device ==
        std::map<std::string, std::int64_t>{{"cpu", 0}, {"npu", 0}});
}

TEST_CASE("metrics: a plan of four partitions by hand") {
  const Graph graph = small_model().build();
  const Target target = two_devices();
  const PartitionPlan plan = partition_convex(graph);
  REQUIRE(plan.partitions.size() == 4);
  const PlanMetrics metrics = plan_metrics(graph, plan, target);
  CHECK(metrics.partitions == 4);
  CHECK(metrics.partitions_by_device ==
        std::map<std::string, std::int64_t>{{"cpu", 2}, {"npu", 2}});
  CHECK(metrics.nodes_by_device == std::map<std::string, std::int64_t>{{"cpu", 2}, {"npu", 2}});
  CHECK(metrics.transfers == 3);  // a and c to the cpu, b to the npu
  CHECK(metrics.transferred_tensors == 3);
  CHECK(metrics.transfer_bytes == 12000);
  CHECK(metrics.copied_tensors == 3);
  CHECK(metrics.copied_bytes == 12000);
  // npu: 2 * (5 + 4). cpu: 1 + 8 for relu, 1 + 12 for add, which moves 12000 bytes. To the cpu
  // twice 3 + 4, to the npu once 7 + 2.
  CHECK(near(metrics.predicted_us, 18 + 9 + 13 + 14 + 9));
  // On the cpu: 1 + 8 + 8 + 8 + 12.
  CHECK(near(metrics.all_on_last_us, 37));
  CHECK(near(partition_us(graph, plan.partitions[3], target), 13));
  CHECK(near(plan_transfer_us(graph, plan, plan.transfers[0], target), 7));
}

TEST_CASE("metrics: a tensor that is listed again counts as transferred and not as copied") {
  const Graph graph = small_model().build();
  const Target target = two_devices();
  const PartitionPlan plan = partition_contiguous(graph);
  const PlanMetrics metrics = plan_metrics(graph, plan, target);
  CHECK(metrics.transfers == 3);
  CHECK(metrics.transferred_tensors == 4);  // a, b, then a and c
  CHECK(metrics.transfer_bytes == 16000);
  CHECK(metrics.copied_tensors == 3);
  CHECK(metrics.copied_bytes == 12000);
  CHECK(near(metrics.predicted_us, 18 + 9 + 13 + 14 + 9));
}

TEST_CASE("metrics: the document has every device and rounded times") {
  const Graph graph = small_model().build();
  const Target target = two_devices();
  const Json json = metrics_to_json(plan_metrics(graph, partition_convex(graph), target), target);
  CHECK(
      json.dump() ==
      R"({"partitions":4,"partitions_npu":2,"partitions_cpu":2,"nodes_npu":2,"nodes_cpu":2,"transfers":3,)"
      R"("transferred_tensors":3,"transfer_bytes":12000,"copied_tensors":3,"copied_bytes":12000,)"
      R"("predicted_us":63.0,"all_cpu_us":37.0})");
}

TEST_CASE("metrics: a device that the target lacks is an error") {
  const Graph graph =
      GraphBuilder().input("x").node("a", "aten.relu.default", {"x"}).on("tpu").build();
  CHECK_THROWS_WITH(plan_metrics(graph, partition_convex(graph), two_devices()),
                    "error: device 'tpu' is not in target 'two'; run npu-tag again");
}

TEST_CASE("metrics: the report has a line a step and a line a total") {
  const Graph graph = small_model().build();
  const Target target = two_devices();
  PartitionResult result;
  result.target = target;
  result.plan = partition_convex(graph);
  result.times = plan_times(graph, result.plan, target);
  result.metrics = plan_metrics(graph, result.plan, target, roofline_cost(), result.times);
  const std::string report = format_partition_report(graph, result);
  // Head, seven steps, an empty line, head, twelve totals and three of coverage; then an empty line
  // and a head each for operators and devices, of which there are none here.
  CHECK(std::count(report.begin(), report.end(), '\n') == 1 + 7 + 1 + 1 + 20 + 3 + 2 + 2);
  CHECK(report.find("partition 3") != std::string::npos);
  CHECK(report.find("transfer 2 -> 3") != std::string::npos);
  CHECK(report.find("4.00 kB") != std::string::npos);
}

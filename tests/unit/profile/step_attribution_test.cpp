// SPDX-License-Identifier: Apache-2.0
// The node that a kernel's time is charged to.
#include "profile/step_attribution.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "ops/op_catalogue.hpp"

using namespace npu;
using npu::test::graph_of;

namespace {

// cpu: head; npu: conv, relu, late; cpu: tail.
Graph sandwich() {
  return graph_of(R"(
    input x [1,4,6,6]; weight w [4,4,3,3]
    head = neg(x) @cpu
    conv = conv2d(head, p_w) {"padding": [1, 1]} @npu
    relu = relu(conv) @npu
    late = relu(relu) @npu
    tail = neg(relu) @cpu; output late, tail)");
}

const Json kReport = Json::parse(R"({"steps": [
  {"node": "conv", "kind": "reorder", "reads": "head"},
  {"node": "conv", "nodes": ["conv", "relu"], "kind": "compute"},
  {"node": "relu", "kind": "reorder", "writes": "relu"},
  {"node": "late", "kind": "compute"},
  {"node": "late", "kind": "reorder", "writes": "late"},
  {"kind": "move"}]})");

}  // namespace

TEST_CASE("attribution: kernels to nodes by FLOPs, borders to tensors") {
  const Graph graph = sandwich();
  const PartitionPlan plan = partition_convex(graph);
  REQUIRE(plan.partitions.size() == 3);
  const Partition& partition = plan.partitions[1];
  REQUIRE(partition.nodes.size() == 3);
  const std::vector<std::uint64_t> ns{1000, 20000, 3000, 4000, 500, 250};
  const PartitionTimes times = attribute_times(graph, partition, kReport, ns, {}, 30);
  const double conv = node_flops(graph, graph.node(graph.find_node("conv")));
  const double relu = node_flops(graph, graph.node(graph.find_node("relu")));
  CHECK(times.node_us[0] == Approx(20 * conv / (conv + relu)));
  CHECK(times.node_us[1] == Approx(20 * relu / (conv + relu)));
  // The result of the whole graph is no border between devices: 4 + 0.5.
  CHECK(times.node_us[2] == Approx(4.5));
  CHECK(times.reads_us == std::map<TensorId, double>{{graph.find_tensor("head"), 1.0}});
  CHECK(times.writes_us == std::map<TensorId, double>{{graph.find_tensor("relu"), 3.0}});
  CHECK(times.rest_us == Approx(30 - 28.75 + 0.25));
  const std::vector<NodeId> kernels = kernels_of_nodes(graph, partition, kReport);
  CHECK(kernels[0] == graph.find_node("conv"));
  CHECK(kernels[1] == graph.find_node("conv"));
  CHECK(kernels[2] == graph.find_node("late"));
}

TEST_CASE("attribution: without times of kernels, by node; without those, by work") {
  const Graph graph = sandwich();
  const PartitionPlan plan = partition_convex(graph);
  const Partition& partition = plan.partitions[1];
  const std::vector<std::uint64_t> nodes{5000, 0, 2000};
  PartitionTimes times = attribute_times(graph, partition, Json::object(), {}, nodes, 10);
  CHECK(times.node_us == std::vector<double>{5, 0, 2});
  CHECK(times.rest_us == Approx(3));
  // Times for other steps than those of the report do not count.
  times = attribute_times(graph, partition, kReport, std::vector<std::uint64_t>{1, 2}, nodes, 10);
  CHECK(times.node_us == std::vector<double>{5, 0, 2});
  times = attribute_times(graph, partition, kReport, {}, {}, 10);
  CHECK(times.rest_us == 0);
  CHECK(times.node_us[0] + times.node_us[1] + times.node_us[2] == Approx(10));
  CHECK(times.node_us[0] > times.node_us[1]);
}

TEST_CASE("attribution: a report of nonsense loses no time") {
  const Graph graph = sandwich();
  const PartitionPlan plan = partition_convex(graph);
  const Json report = Json::parse(R"({"steps": [7, {"node": 3}, {"nodes": "conv"}, {"node": "head"},
    {"reads": "nothing", "node": "conv"}, {"nodes": ["nobody", 4, "late"]}]})");
  const std::vector<std::uint64_t> ns(6, 1000);
  const PartitionTimes times = attribute_times(graph, plan.partitions[1], report, ns, {}, 6);
  CHECK(times.node_us == std::vector<double>{1, 0, 1});
  CHECK(times.rest_us == Approx(4));
}

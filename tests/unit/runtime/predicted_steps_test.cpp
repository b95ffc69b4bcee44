// SPDX-License-Identifier: Apache-2.0
// Predicted times of steps: what the document states, else the target's rates.
#include "runtime/predicted_steps.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_graph.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// Two nodes, the second one on the cpu: partition, transfer, partition.
Graph split_relus() {
  Graph graph = graph_of(R"(
    input x [1000]
    a = relu(x)
    b = relu(a); output b)");
  graph.nodes()[0].device = "npu";
  graph.nodes()[1].device = "cpu";
  graph.nodes()[1].device_reason = "forced";
  graph.set_npu_member("target", *load_target("host").json);
  return graph;
}

PartitionPlan plan_split_relus(Graph& graph) {
  Diagnostics diagnostics;
  return partition_graph(graph, {}, diagnostics).plan;
}

}  // namespace

TEST_CASE("predicted steps: without measured times the target's rates hold") {
  Graph graph = split_relus();
  const PartitionPlan plan = plan_split_relus(graph);
  const Target target = load_target("host");
  REQUIRE(plan.partitions.size() == 2);
  REQUIRE(plan.transfers.size() == 1);
  const PredictedSteps predicted(graph, plan, target);
  CHECK(predicted.partition_ms(1) == partition_us(graph, plan.partitions[1], target) / 1000);
  CHECK(predicted.transfer_ms(0) ==
        plan_transfer_us(graph, plan, plan.transfers[0], target) / 1000);
  CHECK(predicted.total_ms(2500) == 2.5);
}

TEST_CASE("predicted steps: what the document states of measured times holds") {
  Graph graph = split_relus();
  const PartitionPlan plan = plan_split_relus(graph);
  Json partition = *graph.npu_member("partition");
  partition["cost"] = {{"steps_us", {1000, 2000, "unknown"}}};
  partition["metrics"]["predicted_us"] = 7000;
  graph.set_npu_member("partition", partition);
  const Target target = load_target("host");
  const PredictedSteps predicted(graph, plan, target);
  CHECK(predicted.partition_ms(0) == 1);
  CHECK(predicted.transfer_ms(0) == 2);
  // The last step states no number.
  CHECK(predicted.partition_ms(1) == partition_us(graph, plan.partitions[1], target) / 1000);
  CHECK(predicted.total_ms(2500) == 7);

  // A list that does not have the plan's steps is not the plan's.
  partition["cost"] = {{"steps_us", {1000}}};
  graph.set_npu_member("partition", partition);
  const PredictedSteps other(graph, plan, target);
  CHECK(other.partition_ms(0) == partition_us(graph, plan.partitions[0], target) / 1000);
}

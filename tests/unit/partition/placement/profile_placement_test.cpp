// SPDX-License-Identifier: Apache-2.0
// Placement by measured times: against all placements, and what documents record about it.
#include <cmath>
#include <random>

#include "catch.hpp"
#include "cost/measured_cost.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/tag.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

// Both devices run everything, at rates that would put all on the npu.
Target both_run_all() {
  return parse_target(Json::parse(R"({"name": "t", "devices": [
    {"name": "npu", "backend": "onednn", "ops": "*", "peak_flops": {"float32": 1e12},
     "memory_bandwidth": 1e12},
    {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1e9},
     "memory_bandwidth": 1e9}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9}]})"),
                      "t.json");
}

Graph random_graph(std::mt19937& random, std::size_t nodes) {
  GraphBuilder builder;
  builder.input("x", {64});
  std::vector<std::string> names{"x"};
  for (std::size_t n = 0; n < nodes; ++n) {
    names.push_back("n" + std::to_string(n));
    const auto earlier = [&] { return names[random() % (names.size() - 1)]; };
    if (random() % 2 == 0) {
      builder.node(names.back(), "aten.relu.default", {earlier()});
    } else {
      builder.node(names.back(), "aten.add.Tensor", {names[names.size() - 2], earlier()});
    }
  }
  Graph graph = builder.output(names.back()).build();
  Diagnostics diagnostics;
  tag_ops(graph, both_run_all(), {}, diagnostics);
  return graph;
}

NodeTable random_table(std::mt19937& random, const Graph& graph, double launch_us) {
  const auto draw = [&](unsigned most) { return static_cast<double>(random() % most); };
  NodeTable table;
  table.model_digest = model_digest(graph);
  table.target = "t";
  table.devices = {{"npu", "onednn", launch_us}, {"cpu", "aten", launch_us}};
  for (const Node& node : graph.nodes()) {
    for (const char* device : {"npu", "cpu"}) {
      table.nodes.push_back({node.name, device, {.us = draw(40)}, ""});
    }
    for (const auto& [from, to] : {std::pair{"npu", "cpu"}, std::pair{"cpu", "npu"}}) {
      if (random() % 3 == 0) continue;  // the fit answers for it
      table.borders.push_back({node.name, from, to, 256, {.us = draw(15)}});
    }
  }
  table.links = {{"npu", "cpu", draw(6), 0, 1}, {"cpu", "npu", draw(6), 1e8, 1}};
  return table;
}

// The least time of all placements, by its definition.
double least_us(Graph graph, const Target& target, const CostModel& cost) {
  double best = INFINITY;
  const std::size_t count = graph.nodes().size();
  for (std::uint32_t bits = 0; bits < 1U << count; ++bits) {
    for (std::size_t n = 0; n < count; ++n) {
      graph.nodes()[n].device = (bits >> n & 1U) != 0 ? "cpu" : "npu";
    }
    double us = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const Device& device = *target.find_device(*graph.nodes()[n].device);
      us += cost.node_us(graph, NodeId{static_cast<std::int32_t>(n)}, device);
      const TensorId result = graph.nodes()[n].outputs.front();
      for (const NodeId consumer : graph.tensor(result).consumers) {
        if (graph.node(consumer).device == device.name) continue;
        us += cost.tensor_us(graph, result, target, device.name, *graph.node(consumer).device);
        break;  // there is one other device
      }
    }
    for (const Partition& partition : partition_convex(graph).partitions) {
      us += cost.launch_us(*target.find_device(partition.device));
    }
    best = std::min(best, us);
  }
  return best;
}

PartitionResult place(Graph& graph, const CostModel& cost, Strategy strategy = Strategy::kMinCut) {
  PartitionOptions options;
  options.strategy = strategy;
  options.cost = &cost;
  return partition_graph(graph, options);
}

std::vector<std::string> verify(const Graph& graph, const CostModel& cost) {
  Diagnostics diagnostics;
  const std::string checked =
      check_certificate(read_valid_graph(write_graph(graph), "again.json"), cost, diagnostics);
  std::vector<std::string> errors;
  for (const Diagnostic& entry : diagnostics.entries()) errors.push_back(entry.text);
  CHECK(checked.empty() == !errors.empty());
  return errors;
}

}  // namespace

TEST_CASE("profile placement: mincut finds the least time of all placements by a table") {
  const Target target = both_run_all();
  std::mt19937 random(7);
  int mixed = 0;
  for (int round = 0; round < 40; ++round) {
    Graph graph = random_graph(random, 2 + random() % 7);
    const MeasuredCost cost(random_table(random, graph, round % 2 == 0 ? 3 : 0), graph, target);
    const double least = least_us(graph, target, cost);
    const PartitionResult result = place(graph, cost);
    CHECK(result.metrics.predicted_us == Approx(least));
    CHECK(verify(graph, cost).empty());
    mixed += result.plan.partitions.size() > 1 ? 1 : 0;
  }
  CHECK(mixed > 10);  // the tables are such that placements differ
}

TEST_CASE("profile placement: a device that a table knows to be slow gets nothing") {
  std::mt19937 random(3);
  Graph graph = random_graph(random, 6);
  NodeTable table = random_table(random, graph, 5);
  for (NodeTime& node : table.nodes) node.time.us = node.device == "npu" ? 100 : 10;
  const MeasuredCost cost(table, graph, both_run_all());
  const PartitionResult result = place(graph, cost);
  CHECK(result.metrics.nodes_by_device.at("npu") == 0);
  CHECK(result.metrics.predicted_us == Approx(6 * 10 + 5));
  Graph by_rates = random_graph(random, 6);
  CHECK(place(by_rates, roofline_cost()).metrics.nodes_by_device.at("cpu") == 0);
}

TEST_CASE("profile placement: what was not measured is named") {
  std::mt19937 random(3);
  Graph graph = random_graph(random, 6);
  NodeTable table = random_table(random, graph, 5);
  std::erase_if(table.nodes, [](const NodeTime& node) { return node.node == "n2"; });
  const MeasuredCost cost(table, graph, both_run_all());
  const PartitionResult result = place(graph, cost, Strategy::kConvex);
  CHECK(partition_metrics(result).at("estimated_nodes") == 1);
  CHECK(graph.npu_member("partition")->at("cost").at("estimated") == Json::array({"n2"}));
  CHECK(graph.npu_member("partition")->at("cost").at("source") == "profile");
  CHECK(format_partition_report(graph, result)
            .find("times: measured, by the profile; by the target's rates for 1 of 6 nodes, "
                  "which it does not have on their devices: n2\n") != std::string::npos);
}

TEST_CASE("profile placement: a plan is verified by what it was made with") {
  std::mt19937 random(5);
  Graph graph = random_graph(random, 6);
  const MeasuredCost cost(random_table(random, graph, 5), graph, both_run_all());
  place(graph, cost);
  CHECK(verify(graph, roofline_cost()) ==
        std::vector<std::string>{
            "the plan's times come from a table of npu-profile; give it with --profile FILE"});
  place(graph, roofline_cost());
  CHECK(graph.npu_member("partition")->find("cost") == graph.npu_member("partition")->end());
  CHECK(verify(graph, cost) ==
        std::vector<std::string>{
            "the plan's times come from the target's rates; verify it without --profile"});
}

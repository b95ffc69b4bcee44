// SPDX-License-Identifier: Apache-2.0
// Runs split into parts, and the table that is made of them, which
// predicts the measured time of every placement.
#include "profile/node_table_builder.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/runtime/executor.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

Graph chain(const std::vector<std::string>& devices) {
  GraphBuilder builder;
  builder.input("x", {256});
  std::string last = "x";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = "n" + std::to_string(i);
    builder.node(name, "aten.relu.default", {last}).on(devices[i]);
    last = name;
  }
  return builder.output(last).build();
}

Target two_devices() {
  return parse_target(Json::parse(R"({"name": "t", "devices": [
    {"name": "npu", "backend": "onednn", "ops": "*", "peak_flops": {"float32": 1e9},
     "memory_bandwidth": 1e9},
    {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1e9},
     "memory_bandwidth": 1e9}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9}]})"),
                      "t.json");
}

/// A placement whose nodes take `us` each, with steps of the plan one after another.
struct Placement {
  Graph graph;
  PartitionPlan plan;
  std::vector<CompiledPartition> partitions;
  MeasuredPlacement measured;

  Placement(const std::string& name, const std::string& base_of,
            const std::vector<std::string>& devices, const std::vector<double>& us, double start_us,
            double copy_us)
      : graph(chain(devices)), plan(partition_convex(graph)), partitions(plan.partitions.size()) {
    RunRecord record;
    double now = 0;
    for (const PlanStep& step : plan.steps) {
      StepRecord entry;
      entry.index = step.index;
      entry.start_us = now;
      if (step.kind == PlanStep::Kind::kTransfer) {
        entry.kind = StepRecord::Kind::kTransfer;
        now += copy_us;
      } else {
        now += start_us;
        for (const NodeId id : plan.partitions[static_cast<std::size_t>(step.index)].nodes) {
          const double node_us = us[static_cast<std::size_t>(id.value)];
          entry.node_ns.push_back(static_cast<std::uint64_t>(node_us * 1000));
          now += node_us;
        }
      }
      entry.end_us = now;
      record.steps.push_back(std::move(entry));
    }
    record.total_us = now;
    measured = {.name = name,
                .graph = &graph,
                .plan = &plan,
                .partitions = &partitions,
                .base_of = base_of,
                .summary = summarize({take_apart(graph, plan, partitions, record)})};
  }
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;
};

NodeTable table_of(const std::vector<MeasuredPlacement>& placements) {
  NodeTable table;
  table.model_digest = model_digest(*placements.front().graph);
  table.target = "t";
  table.devices = {{"npu", "onednn", 0}, {"cpu", "aten", 0}};
  build_node_table(placements, {}, two_devices(), table);
  return table;
}

double node_us(const NodeTable& table, const std::string& node, const std::string& device) {
  for (const NodeTime& entry : table.nodes) {
    if (entry.node == node && entry.device == device) return entry.time.us;
  }
  return -1;
}

}  // namespace

TEST_CASE("run samples: the parts add up to the whole") {
  const Placement placement("mixed", "", {"npu", "cpu", "npu"}, {10, 20, 30}, 2, 5);
  // 60 of nodes, three starts of 2, two copies of 5.
  CHECK(placement.measured.summary.whole.us == Approx(76));
  const RunSummary& summary = placement.measured.summary;
  CHECK(summary.nodes[1].us == Approx(20));
  REQUIRE(summary.borders.size() == 2);
  CHECK(summary.borders.begin()->second.us == Approx(5));
  CHECK(summary.start_us.at("npu") == Approx(2));
}

TEST_CASE("run samples: the mean of fast runs but for the fastest") {
  std::vector<RunSample> samples;
  for (const double us : {90.0, 10.0, 20.0, 80.0, 30.0, 40.0, 70.0, 1000.0}) {
    samples.push_back({.whole_us = us, .node_us = {us / 2}, .border_us = {}, .start_us = {}});
  }
  const RunSummary summary = summarize(samples);
  CHECK(summary.whole.us == Approx(25));  // of 20 and 30
  CHECK(summary.nodes[0].us == Approx(12.5));
  CHECK(summarize({samples.front()}).whole.us == Approx(90));
  CHECK(summary.whole.median_us == Approx(55));  // between 40 and 70
  CHECK(summary.whole.mad_us == Approx(30));     // 15 15 25 25 35 35 45 945
  CHECK(summary.whole.runs == 8);
}

TEST_CASE("node table builder: nodes from their device's placement, the rest to the borders") {
  const Placement cpu("all on cpu", "cpu", {"cpu", "cpu", "cpu"}, {40, 40, 40}, 2, 0);
  const Placement npu("all on npu", "npu", {"npu", "npu", "npu"}, {10, 10, 10}, 2, 0);
  // n1 takes 45 behind a border, and n0, which reads nothing across one, 13.
  const Placement mixed("mixed", "", {"npu", "cpu", "npu"}, {13, 45, 10}, 2, 5);
  const NodeTable table = table_of({cpu.measured, npu.measured, mixed.measured});
  CHECK(node_us(table, "n1", "cpu") == Approx(40));
  CHECK(node_us(table, "n1", "npu") == Approx(10));
  CHECK(table.devices[0].partition_us == Approx(2));
  REQUIRE(table.borders.size() == 2);
  // A copy of 5, the 5 more of n1, and half of the 3 more of n0.
  CHECK(table.borders[0].tensor == "n0");
  CHECK(table.borders[0].time.us == Approx(11.5));
  CHECK(table.borders[1].tensor == "n1");
  CHECK(table.borders[1].time.us == Approx(6.5));
  for (const PlacementTime& placement : table.placements) {
    CHECK(placement.predicted_us == Approx(placement.time.us));
  }
  REQUIRE(table.links.size() == 2);
  CHECK(table.links[0].samples == 1);
}

TEST_CASE("node table builder: a tensor keeps the time of the first placement that it crosses in") {
  const Placement cpu("all on cpu", "cpu", {"cpu", "cpu", "cpu"}, {40, 40, 40}, 0, 0);
  const Placement first("all on npu", "npu", {"npu", "cpu", "cpu"}, {10, 40, 40}, 0, 5);
  const Placement second("mincut 1", "", {"npu", "cpu", "npu"}, {10, 40, 15}, 0, 9);
  const NodeTable table = table_of({cpu.measured, first.measured, second.measured});
  REQUIRE(table.borders.size() == 2);
  CHECK(table.borders[0].time.us == Approx(5));
  CHECK(table.borders[0].time.runs == 2);
  // 9 of its own copy and 4 that the other took longer this time.
  CHECK(table.borders[1].time.us == Approx(13));
  CHECK(table.placements[1].predicted_us == Approx(table.placements[1].time.us));
  CHECK(table.placements[2].predicted_us == Approx(table.placements[2].time.us));
}

TEST_CASE("node table builder: a placement that takes clearly longer makes its borders dearer") {
  const Placement cpu("all on cpu", "cpu", {"cpu", "cpu", "cpu"}, {40, 40, 40}, 0, 0);
  const Placement first("all on npu", "npu", {"npu", "cpu", "npu"}, {10, 40, 10}, 0, 5);
  // The same borders: 1 us more is noise, 20 us more are not.
  const Placement noisy("mincut 1", "", {"npu", "cpu", "npu"}, {10, 41, 10}, 0, 5);
  const Placement slow("mincut 2", "", {"npu", "cpu", "npu"}, {10, 60, 10}, 0, 5);
  CHECK(table_of({cpu.measured, first.measured, noisy.measured}).borders[0].time.us == Approx(5));
  const NodeTable table = table_of({cpu.measured, first.measured, slow.measured});
  CHECK(table.borders[0].time.us == Approx(15));
  CHECK(table.borders[1].time.us == Approx(15));
  CHECK(table.placements[2].predicted_us == Approx(table.placements[2].time.us));
}

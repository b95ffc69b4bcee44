// SPDX-License-Identifier: Apache-2.0
// Tasks of a plan over a graph of six nodes: what a share owns and reads, and plans that name
// things that do not exist.
#include "gnn/run/task_graph.hpp"

#include "catch.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// 0 -> 1 -> 2 -> 3 -> 4 -> 5 and 5 -> 0, cut into {0, 1, 2, 3} and {4, 5}.
std::vector<Subgraph> two_parts() {
  const DataGraph data = parse_graph("0 1\n1 2\n2 3\n3 4\n4 5\n5 0\n", "ring.txt", {});
  return extract_subgraphs(data.in_edges, {0, 0, 0, 0, 1, 1}, 2);
}

// Stages 1-2 on a and b, half of the nodes each, then stage 3 on b; and everything on a.
GnnPlan two_plans() {
  GnnPlan plan;
  plan.devices = {{"a", "a", false}, {"b", "b", false}};
  plan.choice.k = 2;
  plan.choice.device_plans = {
      {0, 1, "split", {{1, 2, {{"a", 0.5}, {"b", 0.5}}}, {3, 3, {{"b", 1}}}}},
      {1, 1, "alone", {{1, 3, {{"a", 1}}}}},
  };
  plan.choice.clusters = {{1, 0, {0}}, {1, 1, {1}}};
  return plan;
}

std::string refusal(const GnnPlan& plan, const std::vector<std::int32_t>& stage_counts) {
  try {
    build_task_graph(plan, {two_parts()}, 6, stage_counts, "plan.json");
  } catch (const Error& error) {
    CHECK(error.location().file == "plan.json");
    return error.message();
  }
  return {};
}

}  // namespace

TEST_CASE("shares own their rows and read what their edges do", "[gnn][task_graph]") {
  const TaskGraph graph = build_task_graph(two_plans(), {two_parts()}, 6, {3}, "plan.json");
  REQUIRE(graph.layers.size() == 1);
  REQUIRE(graph.layers[0].size() == 4);
  const ShareTask& first = graph.layers[0][0];
  CHECK(first.device == 0);
  CHECK(first.first == 1);
  CHECK(first.last == 2);
  CHECK(first.view.owned == 2);
  CHECK(first.local == std::vector<std::int32_t>{0, 1, 4});  // nodes 0 and 1, and 5 for 5 -> 0
  CHECK(first.view.nodes == std::vector<std::int32_t>{0, 1, 5});
  CHECK(first.view.offsets == std::vector<std::int64_t>{0, 1, 2});
  CHECK(first.view.sources == std::vector<std::int32_t>{2, 0});
  CHECK(first.view.base_sources == std::vector<std::int32_t>{5, 0});
  const ShareTask& second = graph.layers[0][1];
  CHECK(second.device == 1);
  CHECK(second.row_begin == 2);
  CHECK(second.edge_begin == 2);
  CHECK(second.view.nodes == std::vector<std::int32_t>{2, 3, 1});
  const ShareTask& third = graph.layers[0][2];
  CHECK(third.segment == 1);
  CHECK(third.local.empty());  // the whole subgraph
  CHECK(third.view.owned == 4);
  CHECK(third.view.local == 5);
  CHECK(graph.layers[0][3].subgraph == 1);
}

TEST_CASE("the graph in one part is taken as it is", "[gnn][task_graph]") {
  const DataGraph data = parse_graph("0 1\n1 0\n", "two.txt", {});
  GnnPlan plan = two_plans();
  plan.choice.clusters = {{1, 1, {0}}};
  const TaskGraph graph =
      build_task_graph(plan, {extract_subgraphs(data.in_edges, {0, 0}, 1)}, 2, {3}, "plan.json");
  CHECK(graph.layers[0][0].view.nodes.empty());
  CHECK(graph.layers[0][0].view.base_sources.empty());
}

TEST_CASE("plans that name what there is not are refused", "[gnn][task_graph]") {
  CHECK(refusal(two_plans(), {3}).empty());
  CHECK(refusal(two_plans(), {3, 3}) == "layer 2 does not plan every subgraph");
  CHECK(refusal(two_plans(), {4}) == "the segments of plan 0 do not cover the 4 stages");
  GnnPlan plan = two_plans();
  plan.choice.clusters[1].layer = 2;
  CHECK(refusal(plan, {3}) == "a cluster is of an unknown layer");
  plan = two_plans();
  plan.choice.clusters[1].device_plan = 2;
  CHECK(refusal(plan, {3}) == "a cluster is of an unknown plan 2");
  plan = two_plans();
  plan.choice.clusters[1].subgraphs = {2};
  CHECK(refusal(plan, {3}) == "subgraph 2 is not in the partition");
  plan = two_plans();
  plan.choice.clusters.pop_back();
  CHECK(refusal(plan, {3}) == "layer 1 does not plan every subgraph");
  plan = two_plans();
  plan.devices.pop_back();
  CHECK(refusal(plan, {3}) == "device 'b' is not in the plan's devices");
  plan = two_plans();
  plan.choice.device_plans[0].segments[1].first = 2;
  CHECK(refusal(plan, {3}) == "the segments of plan 0 do not cover the 3 stages");
  plan = two_plans();
  plan.choice.device_plans[0].segments[0].shares.clear();
  CHECK(refusal(plan, {3}) == "the segments of plan 0 do not cover the 3 stages");
}

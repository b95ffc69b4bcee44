// SPDX-License-Identifier: Apache-2.0
// Drawings of plans at each level: boxes, edges, and the level that is chosen by size.
#include <algorithm>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// a on the npu; b and d on the cpu read it; c on the npu reads b, and d reads c.
Graph four_nodes() {
  return graph_of(R"(
    input x
    a = relu(x) @npu
    b = sin(a) @cpu
    c = relu(b) @npu
    d = aten.add.Tensor(a, c) @cpu; output d)");
}

std::ptrdiff_t count(const std::string& text, const std::string& part) {
  std::ptrdiff_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

void check_parts(const std::string& dot, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    CAPTURE(part, dot);
    CHECK(dot.find(part) != std::string::npos);
  }
}

// A chain of relus, in fusion groups of `group` nodes (0: none).
Graph chain(int nodes, int group) {
  GraphBuilder builder;
  builder.input("x");
  for (int n = 0; n < nodes; ++n) {
    builder.node("n" + std::to_string(n), "aten.relu.default",
                 {n == 0 ? "x" : "n" + std::to_string(n - 1)});
    builder.on(n < nodes / 2 ? "npu" : "cpu");
    // No group on two devices.
    if (group > 0) builder.key("fusion_group", n < nodes / 2 ? n / group : 1000 + n / group);
  }
  return builder.output("n" + std::to_string(nodes - 1)).build();
}

}  // namespace

TEST_CASE("drawing: a box a partition says what it is and how long it takes") {
  const Graph graph = four_nodes();
  const PartitionPlan plan = partition_convex(graph);
  REQUIRE(plan.partitions.size() == 4);
  const std::string dot = plan_to_dot(graph, plan, DotLevel::kPartition,
                                      {.partition_us = {1, 2.25, 3, 4}, .transfer_us = {}});
  check_parts(dot, {"rankdir=LR", "b0 [label=\"0: npu\\n1 op\\n1.0 us\", fillcolor=",
                    "b1 [label=\"1: cpu\\n1 op\\n2.2 us\"", "in0 -> b0;", "b3 -> out0;",
                    "b0 -> b1 [color=red, label=\"16 B\"];",
                    // The cpu has the result of a already.
                    "b0 -> b3;", "b1 -> b2 [color=red, label=\"16 B\"];"});
  CHECK(count(dot, "cluster") == 0);
  CHECK(count(dot, "[label=\"1: cpu") == 1);
  // Without times the boxes do without.
  CHECK(count(plan_to_dot(graph, plan, DotLevel::kPartition), " us") == 0);
}

TEST_CASE("drawing: a box a fusion group, with its first node, ops and size") {
  Graph graph = chain(8, 2);
  graph.nodes()[1].op_type = "aten.silu.default";
  const PartitionPlan plan = partition_convex(graph);
  const std::string dot = plan_to_dot(graph, plan, DotLevel::kGroup);
  check_parts(
      dot, {"subgraph cluster_0 {\n    label=\"0: npu\"", "subgraph cluster_1 {",
            "    b0 [label=\"n0\\nrelu, silu\\n2 ops\"];", "    b1 [label=\"n2\\nrelu\\n2 ops\"];",
            "b0 -> b1;", "b1 -> b2 [color=red, label=\"16 B\"];", "in0 -> b0;", "b3 -> out0;"});
  CHECK(count(dot, "    b") == 4);
}

TEST_CASE("drawing: without fusion groups, a box is a block of the model in its partition") {
  const Graph graph = chain(8, 0);
  const std::string dot = plan_to_dot(graph, partition_convex(graph), DotLevel::kGroup);
  // One chain, and two devices.
  CHECK(count(dot, "    b") == 2);
  check_parts(dot, {"b0 [label=\"n0\\nrelu\\n4 ops\"];", "b0 -> b1 [color=red, label=\"16 B\"];"});
}

TEST_CASE("drawing: the finest level of at most forty boxes") {
  const auto level = [](const Graph& graph) {
    return readable_dot_level(graph, partition_convex(graph));
  };
  CHECK((level(GraphBuilder().input("x").output("x").build()) == DotLevel::kNode));
  CHECK((level(chain(40, 1)) == DotLevel::kNode));
  CHECK((level(chain(42, 0)) == DotLevel::kGroup));
  CHECK((level(chain(80, 2)) == DotLevel::kGroup));      // 40 groups
  CHECK((level(chain(84, 2)) == DotLevel::kPartition));  // 42
}

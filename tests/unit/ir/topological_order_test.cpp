// SPDX-License-Identifier: Apache-2.0
#include "ir/topological_order.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

// The graph of a document whose nodes need not be in order; the order is what is tested.
Graph unordered(const GraphBuilder& builder) {
  Diagnostics diagnostics;
  return read_graph(builder.text(), "f", diagnostics);
}

std::string names(const Graph& graph, const std::vector<NodeId>& ids) {
  std::string text;
  for (const NodeId id : ids) text += (text.empty() ? "" : " ") + graph.node(id).name;
  return text;
}

}  // namespace

TEST_CASE("topological order: of nothing is empty") {
  const Graph graph = GraphBuilder().build();
  CHECK(topological_order(graph).empty());
  CHECK(find_cycle(graph).empty());
}

TEST_CASE("topological order: one node") {
  const Graph graph = GraphBuilder().input("x").node("a", "custom", {"x"}).build();
  CHECK(names(graph, topological_order(graph)) == "a");
  CHECK(find_cycle(graph).empty());
}

TEST_CASE("topological order: a list in order stays as it is") {
  GraphBuilder builder;
  builder.input("x");
  for (const char* name : {"e", "d", "c", "b", "a"}) builder.node(name, "custom", {"x"});
  const Graph graph = builder.build();
  CHECK(names(graph, topological_order(graph)) == "e d c b a");
}

TEST_CASE("topological order: producers come first, ties go to list order") {
  const Graph graph = unordered(GraphBuilder().lines(R"(
    input x
    sum = "custom"(left, right, left)
    right = "custom"(root)
    left = "custom"(root)
    root = "custom"(x)
    free = "custom"(x))"));
  CHECK(names(graph, topological_order(graph)) == "root right left sum free");
}

TEST_CASE("topological order: a node that reads two results of one producer waits for it once") {
  const Graph graph = unordered(GraphBuilder()
                                    .input("x")
                                    .node_with_results("split", "custom", {"x"}, {{2}, {2}})
                                    .node("both", "custom", {"split_0", "split_1", "split_0"}));
  CHECK(names(graph, topological_order(graph)) == "split both");
}

TEST_CASE("topological order: nodes on and behind a cycle are left out, the cycle is found") {
  const Graph graph = unordered(GraphBuilder().lines(R"(
    input x
    behind = "custom"(c)
    a = "custom"(x, c)
    b = "custom"(a)
    c = "custom"(b)
    free = "custom"(x))"));
  CHECK(names(graph, topological_order(graph)) == "free");
  CHECK(names(graph, find_cycle(graph)) == "a b c");
}

TEST_CASE("topological order: a node that reads its own result is a cycle") {
  const Graph graph = unordered(GraphBuilder().input("x").node("a", "custom", {"a"}));
  CHECK(names(graph, find_cycle(graph)) == "a");
}

TEST_CASE("topological order: random orders are sorted, random cycles are real") {
  std::mt19937 random(31);
  int cyclic = 0;
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const int count = 1 + round % 12;
    GraphBuilder builder;
    builder.input("x");
    std::vector<int> rank;
    for (int n = 0; n < count; ++n) rank.push_back(n);
    std::shuffle(rank.begin(), rank.end(), random);
    for (int n = 0; n < count; ++n) {
      std::vector<std::string> operands{"x"};
      for (int m = 0; m < count; ++m) {
        // Edges from lower rank to higher; in every third graph a few in any direction.
        const bool along = rank[static_cast<std::size_t>(m)] < rank[static_cast<std::size_t>(n)];
        if (random() % 4 == 0 && (along || (round % 3 == 0 && random() % 4 == 0))) {
          operands.push_back("n" + std::to_string(m));
        }
      }
      builder.node("n" + std::to_string(n), "custom", operands);
    }
    const Graph graph = unordered(builder);
    const std::vector<NodeId> order = topological_order(graph);
    std::vector<int> position(static_cast<std::size_t>(count), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
      position[static_cast<std::size_t>(order[i].value)] = static_cast<int>(i);
    for (const NodeId id : order) {
      for (const TensorId input : graph.node(id).inputs) {
        const NodeId producer = graph.tensor(input).producer;
        if (!producer.valid()) continue;
        CHECK(position[static_cast<std::size_t>(producer.value)] >= 0);
        CHECK(position[static_cast<std::size_t>(producer.value)] <
              position[static_cast<std::size_t>(id.value)]);
      }
    }
    const std::vector<NodeId> cycle = find_cycle(graph);
    CHECK(cycle.empty() == (order.size() == graph.nodes().size()));
    if (!cycle.empty()) ++cyclic;
    for (std::size_t i = 0; i < cycle.size(); ++i) {  // each feeds the next
      const auto& inputs = graph.node(cycle[(i + 1) % cycle.size()]).inputs;
      CHECK(std::any_of(inputs.begin(), inputs.end(),
                        [&](TensorId t) { return graph.tensor(t).producer == cycle[i]; }));
    }
  }
  CHECK(cyclic > 50);
}

// SPDX-License-Identifier: Apache-2.0
// The peak memory of a partition, against the definition.
#include "partition/limits/working_set.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// The definition, node by node: everything that is there while the node runs.
std::int64_t slow_working_set(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::set<int> members = [&] {
    std::set<int> set;
    for (const NodeId id : nodes) set.insert(id.value);
    return set;
  }();
  std::int64_t most = 0;
  for (std::size_t now = 0; now < nodes.size(); ++now) {
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      const TensorInfo& tensor = graph.tensors()[t];
      const bool made_here = tensor.producer.valid() && members.count(tensor.producer.value) != 0;
      bool read_here = false;
      bool read_later = false;
      bool read_outside = false;
      for (const NodeId consumer : tensor.consumers) {
        if (members.count(consumer.value) == 0) {
          read_outside = true;
          continue;
        }
        read_here = true;
        read_later = read_later || consumer >= nodes[now];
      }
      for (const TensorId output : graph.graph_outputs()) {
        read_outside = read_outside || output.value == static_cast<int>(t);
      }
      if (!made_here) {
        if (read_here) bytes += tensor.bytes();
      } else if (tensor.producer <= nodes[now] &&
                 (read_outside || read_later || tensor.producer == nodes[now])) {
        bytes += tensor.bytes();
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

TEST_CASE("working set: the definition, on random graphs and sets") {
  std::mt19937 random(83);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const Graph graph = random_builder(random, {.nodes = 1 + round % 20}).build();
    std::vector<NodeId> nodes;
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      if (random() % 3 != 0) nodes.push_back(NodeId{static_cast<std::int32_t>(n)});
    }
    CHECK(working_set_bytes(graph, nodes) == slow_working_set(graph, nodes));
  }
}

TEST_CASE("working set: an alias needs no memory of its own") {
  const Graph graph = graph_of(R"(
    input x [4,4]
    a = relu(x)
    b = view(a) [16] {"size": [16]}
    c = relu(b); output c)");
  // x for good, a under both names, c.
  CHECK(working_set_bytes(graph, std::vector{NodeId{0}, NodeId{1}, NodeId{2}}) == 3 * 64);
}

TEST_CASE("working set: no nodes, and a result that the graph returns is kept to the end") {
  const Graph graph = graph_of(R"(
    input x [4,4]
    a = relu(x)
    b = relu(a)
    c = relu(b); output a, c)");
  CHECK(working_set_bytes(graph, {}) == 0);
  // x and a for good, b beside c; without the output a it would be x, b and c.
  CHECK(working_set_bytes(graph, std::vector{NodeId{0}, NodeId{1}, NodeId{2}}) == 4 * 64);
  // Alone, a is what comes in.
  CHECK(working_set_bytes(graph, std::vector{NodeId{1}}) == 2 * 64);
}

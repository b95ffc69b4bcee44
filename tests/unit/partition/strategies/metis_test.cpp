// SPDX-License-Identifier: Apache-2.0
// Acyclic parts of equal work with few bytes between them.
#include <numeric>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_graph.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Graph on_one_device(GraphBuilder builder) {
  Json& nodes = builder.document()["nodes"];
  for (Json& node : nodes) node["device"] = "cpu";
  Graph graph = builder.build();
  graph.set_npu_member("target", *load_target("host").json);
  return graph;
}

double metis_metric(const PartitionResult& result, const char* name) {
  return partition_metrics(result).at(name);
}

// The definitions, from the plan: one device, so parts are partitions.
std::int64_t slow_cut(const Graph& graph, const std::vector<int>& owner) {
  std::int64_t cut = 0;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (!tensor.producer.valid()) continue;
    std::set<int> parts;
    for (const NodeId consumer : tensor.consumers) {
      parts.insert(owner[static_cast<std::size_t>(consumer.value)]);
    }
    parts.erase(owner[static_cast<std::size_t>(tensor.producer.value)]);
    cut += tensor.bytes() * static_cast<std::int64_t>(parts.size());
  }
  return cut;
}

double slow_imbalance(const Graph& graph, const PartitionPlan& plan) {
  double total = 0;
  double most = 0;
  for (const Partition& partition : plan.partitions) {
    double flops = 0;
    for (const NodeId id : partition.nodes) flops += node_flops(graph, graph.node(id));
    total += flops;
    most = std::max(most, flops);
  }
  return most / (total / static_cast<double>(plan.partitions.size())) - 1;
}

}  // namespace

TEST_CASE("metis: a chain is cut where the tensors are small") {
  // Ten nodes of 100 elements each, but n4's result has 10.
  GraphBuilder builder;
  builder.input("x", {100});
  for (int n = 0; n < 10; ++n) {
    builder.node("n" + std::to_string(n), "custom.one",
                 {n == 0 ? "x" : "n" + std::to_string(n - 1)}, Shape{n == 4 ? 60 : 100});
  }
  Graph graph = on_one_device(builder.output("n9"));
  Diagnostics diagnostics;
  const PartitionResult result = partition_graph(
      graph, {.strategy = Strategy::kMetis, .parts = 2, .imbalance = 0.2}, diagnostics);
  CHECK(result.plan.partitions.size() == 2);
  CHECK(result.plan.partitions[0].nodes.size() == 5);
  CHECK(metis_metric(result, "cut_bytes") == 240);
}

TEST_CASE(
    "metis: random graphs give parts in line within the balance, no worse than a plain split") {
  std::mt19937 random(89);
  int made = 0;
  int cyclic = 0;
  double found = 0;
  double plain = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    Graph graph =
        on_one_device(random_builder(random, {.nodes = 10 + round % 60, .max_operands = 2}));
    const std::int32_t k = 2 + round % 4;
    Diagnostics diagnostics;
    try {
      const PartitionResult result = partition_graph(
          graph, {.strategy = Strategy::kMetis, .parts = k, .imbalance = 0.3}, diagnostics);
      const std::vector<int> owner = check_plan(graph, result.plan);
      REQUIRE(result.plan.partitions.size() == static_cast<std::size_t>(k));
      CHECK(metis_metric(result, "cut_bytes") == static_cast<double>(slow_cut(graph, owner)));
      CHECK(metis_metric(result, "imbalance") ==
            Approx(slow_imbalance(graph, result.plan)).margin(1e-6));
      CHECK(metis_metric(result, "imbalance") <= 0.3 + 1e-6);
      if (metis_metric(result, "contiguous_imbalance") <= 0.3) {
        CHECK(metis_metric(result, "cut_bytes") <= metis_metric(result, "contiguous_cut_bytes"));
        found += metis_metric(result, "cut_bytes");
        plain += metis_metric(result, "contiguous_cut_bytes");
      }
      cyclic += metis_metric(result, "metis_cyclic") != 0;
      ++made;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInfeasible);
    }
  }
  CHECK(made > 300);
  CHECK(cyclic > 50);
  CHECK(found < 0.8 * plain);
}

TEST_CASE("metis: near the best of all splits in line") {
  std::mt19937 random(97);
  double found = 0;
  double best_sum = 0;
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    Graph graph =
        on_one_device(random_builder(random, {.nodes = 6 + round % 7, .max_operands = 2}));
    const std::size_t count = graph.nodes().size();
    std::vector<double> work;
    for (const Node& node : graph.nodes()) work.push_back(node_flops(graph, node));
    const double total = std::accumulate(work.begin(), work.end(), 0.0);
    std::int64_t best = INT64_MAX;
    for (std::size_t bits = 1; bits + 1 < std::size_t{1} << count; ++bits) {
      std::vector<int> owner;
      double load[2] = {0, 0};
      for (std::size_t n = 0; n < count; ++n) {
        owner.push_back(static_cast<int>(bits >> n & 1U));
        load[owner.back()] += work[n];
      }
      if (std::max(load[0], load[1]) > total / 2 * 1.3) continue;
      bool in_line = true;
      for (const TensorInfo& tensor : graph.tensors()) {
        for (const NodeId consumer : tensor.consumers) {
          in_line = in_line && (!tensor.producer.valid() ||
                                owner[static_cast<std::size_t>(tensor.producer.value)] <=
                                    owner[static_cast<std::size_t>(consumer.value)]);
        }
      }
      if (in_line) best = std::min(best, slow_cut(graph, owner));
    }
    Diagnostics diagnostics;
    try {
      const PartitionResult result = partition_graph(
          graph, {.strategy = Strategy::kMetis, .parts = 2, .imbalance = 0.3}, diagnostics);
      REQUIRE(best != INT64_MAX);
      CHECK(metis_metric(result, "cut_bytes") >= static_cast<double>(best));
      found += metis_metric(result, "cut_bytes");
      best_sum += static_cast<double>(best);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInfeasible);
    }
  }
  CAPTURE(found, best_sum);
  CHECK(found <= 1.15 * best_sum);
}

TEST_CASE("metis: more blocks than nodes, and a balance that no split has") {
  Graph graph = on_one_device(GraphBuilder().lines(R"(
    input x [1000]
    a = custom.one(x) [1]
    b = custom.one(a)
    c = custom.one(b) [1000]; output c)"));
  Diagnostics diagnostics;
  try {
    partition_graph(graph, {.strategy = Strategy::kMetis, .parts = 8}, diagnostics);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.message() == "8 parts requested but the graph has 3 nodes; use -k 3 or fewer");
  }
  try {
    // 1, 1 and 1000 FLOPs: the heavier part has 1000 of 1002, 0.997 above the mean.
    partition_graph(graph, {.strategy = Strategy::kMetis, .parts = 2}, diagnostics);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.message() ==
          "--imbalance 0.1: 2 parts that can run one after another need 0.997; use --imbalance "
          "0.997, --best-effort or another -k");
  }
  const PartitionResult result = partition_graph(
      graph, {.strategy = Strategy::kMetis, .parts = 2, .imbalance = 0.997}, diagnostics);
  CHECK(result.plan.partitions.size() == 2);
}

TEST_CASE("metis: the most even parts, where the balance asked for is impossible") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [100]
    a = relu(x)
    b = aten.sum.dim_IntList(a) [10] {"dim": [0]}
    c = relu(b)
    d = relu(c); output d)");
  Graph graph = on_one_device(builder);
  PartitionOptions options{.strategy = Strategy::kMetis, .parts = 3};
  CHECK_THROWS_WITH(partition_graph(graph, options),
                    Catch::Matchers::Contains("--best-effort or another -k"));
  options.best_effort = true;
  Diagnostics diagnostics;
  const PartitionResult result = partition_graph(graph, options, diagnostics);
  REQUIRE(diagnostics.entries().size() == 1);
  CHECK(diagnostics.entries()[0].level == Level::kWarning);
  CHECK(result.plan.partitions.size() == 3);
  // No cut of a line of four into three is more even.
  double best = 1e9;
  std::vector<double> work;
  for (const Node& node : graph.nodes()) work.push_back(node_flops(graph, node));
  const auto sum = [&](std::size_t begin, std::size_t end) {
    return std::accumulate(work.begin() + static_cast<std::ptrdiff_t>(begin),
                           work.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
  };
  for (std::size_t i = 1; i < 3; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      best = std::min(best, std::max({sum(0, i), sum(i, j), sum(j, 4)}));
    }
  }
  CHECK(std::abs(metis_metric(result, "imbalance") - (best / (sum(0, 4) / 3) - 1)) < 1e-5);
}

// SPDX-License-Identifier: Apache-2.0
// Properties of every strategy on random graphs: valid plans, documents that survive a round trip,
// and, executed on the real backends, results that do not change.

#include <cstdlib>
#include <optional>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "partition/fused_graph.hpp"
#include "partition/plan_checks.hpp"
#include "runtime/random_tensor.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// d0, d1, ... run every custom op; the last device every op.
Target custom_target(int devices) {
  Json json = {{"name", "custom"}, {"devices", Json::array()}, {"links", Json::array()}};
  for (int d = 0; d < devices; ++d) {
    json["devices"].push_back(
        {{"name", "d" + std::to_string(d)},
         {"ops", Json::array({"*", {{"types", {"custom.one", "custom.two"}}}})},
         {"peak_flops", {{"float32", 1e9 * (d + 1)}}},
         {"memory_bandwidth", 1e9},
         {"on_chip_bytes", 1 << 20},
         {"launch_overhead_us", 1}});
    for (int e = 0; e < d; ++e) {
      json["links"].push_back({{"from", "d" + std::to_string(e)},
                               {"to", "d" + std::to_string(d)},
                               {"bandwidth", 1e9},
                               {"latency_us", 0.1}});
    }
  }
  return parse_target(json, "custom.json");
}

// What a strategy makes of the graph; nothing if it says that it cannot.
std::optional<PartitionResult> partitioned(Graph& graph, const PartitionOptions& options) {
  Diagnostics diagnostics;
  try {
    return partition_graph(graph, options, diagnostics);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    return std::nullopt;
  }
}

// Element-wise ops, half of which the NPU runs.
Graph runnable_graph(std::mt19937& random, int nodes) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  GraphBuilder builder;
  builder.input("x", {2, 3, 4}).input("y", {2, 3, 4});
  std::vector<std::string> values{"x", "y"};
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const auto pick = [&] {
      return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    };
    if (below(3) == 0) {
      const char* const binary[] = {"aten.add.Tensor", "aten.mul.Tensor", "aten.maximum.default"};
      builder.node(name, binary[below(3)], {pick(), pick()});
    } else {
      const char* const unary[] = {"aten.relu.default", "aten.tanh.default", "aten.atan.default",
                                   "aten.asinh.default"};
      builder.node(name, unary[below(4)], {pick()});
    }
    values.push_back(name);
  }
  for (std::size_t v = 2; v < values.size(); ++v) {
    if (below(4) == 0) builder.output(values[v]);
  }
  builder.output(values.back());
  return builder.build();
}

}  // namespace

TEST_CASE("strategies: every property on thousands of random graphs") {
  std::mt19937 random(71);
  int made = 0;
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const int devices = 1 + round % 3;
    const Target target = custom_target(devices);
    Graph tagged =
        random_builder(random,
                       {.nodes = 1 + round % 30, .devices = devices, .max_operands = 1 + round % 3})
            .build();
    tagged.set_npu_member("target", *target.json);
    for (const StrategyInfo& strategy : partition_strategies()) {
      CAPTURE(strategy.name);
      Graph graph = tagged;
      const auto result = partitioned(
          graph, {.strategy = strategy.strategy, .parts = 1 + round % 3, .imbalance = 0.8});
      if (!result) continue;
      ++made;
      check_plan(graph, result->plan);
      if (round % 4 == 0) check_survives_document(graph, result->plan);
    }
  }
  CHECK(made > 1500);
}

TEST_CASE("strategies: limits keep every property and hold") {
  std::mt19937 random(73);
  int limited = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int devices = 2 + round % 2;
    const Target target = custom_target(devices);
    Graph tagged = random_builder(random, {.nodes = 5 + round % 30, .devices = devices}).build();
    tagged.set_npu_member("target", *target.json);
    const std::int64_t most = 1 + round % 4;
    for (const Strategy strategy : {Strategy::kContiguous, Strategy::kConvex, Strategy::kMinCut}) {
      CAPTURE(static_cast<int>(strategy));
      Graph graph = tagged;
      // Every device runs everything, so one partition is always possible.
      const auto result = partitioned(graph, {.strategy = strategy, .max_partitions = most});
      REQUIRE(result.has_value());
      CHECK(result->metrics.partitions <= most);
      check_plan(graph, result->plan);

      Graph small = tagged;
      const std::int64_t bytes = 400 + 10 * (round % 50);
      const auto split = partitioned(small, {.strategy = strategy, .memory_limit = bytes});
      if (!split) continue;
      ++limited;
      check_plan(small, split->plan);
    }
  }
  CHECK(limited > 100);
}

TEST_CASE("strategies: outputs do not change, executed on the real backends") {
  if (!test::use_backends()) return;
  std::mt19937 random(79);
  const Target target = load_target("host");
  int plans = 0;
  std::size_t partitions = 0;
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    Graph tagged = runnable_graph(random, 3 + round % 12);
    Diagnostics diagnostics;
    tag_ops(tagged, target, {}, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    std::vector<Tensor> inputs;
    for (const TensorId id : tagged.graph_inputs()) {
      inputs.push_back(random_input(tagged, id, static_cast<std::uint64_t>(round)));
    }
    const std::vector<Tensor> no_weights(tagged.tensors().size());
    ExecutorOptions options;
    options.threads = 1;
    Graph on_cpu = tagged;
    for (Node& node : on_cpu.nodes()) node.device = "cpu";
    const PartitionPlan whole = single_partition_plan(on_cpu, "cpu");
    const auto expected =
        compile_and_load(on_cpu, whole, target, no_weights, options).run(inputs, nullptr);
    for (const StrategyInfo& strategy : partition_strategies()) {
      CAPTURE(strategy.name);
      Graph graph = tagged;
      const auto result = partitioned(graph, {.strategy = strategy.strategy, .imbalance = 2});
      if (!result) continue;
      const auto actual =
          compile_and_load(graph, result->plan, target, no_weights, options).run(inputs, nullptr);
      REQUIRE(actual.size() == expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        CHECK(compare_tensors(actual[i], expected[i], {}).ok);
      }
      ++plans;
      partitions += result->plan.partitions.size();
    }
  }
  CHECK(plans >= 150);
  CHECK(partitions > static_cast<std::size_t>(2 * plans));
}

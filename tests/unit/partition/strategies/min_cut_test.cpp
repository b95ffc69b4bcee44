// SPDX-License-Identifier: Apache-2.0
// The placement of least time against all placements, and the proof of its lower bound.
#include <cmath>

#include "catch.hpp"
#include "cost/roofline.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/tag.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/placement/placement_solver.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/report.hpp"
#include "target/support_check.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// d0 runs relu, neg and exp, d1 relu, neg and tanh, the last device everything. Rates are those of
// `random`, so that now computing, now copying, now launching decides.
Target random_target(std::mt19937& random, int devices) {
  const auto one_of = [&](std::initializer_list<double> values) {
    return *(values.begin() + random() % values.size());
  };
  Json json = {{"name", "random"}, {"devices", Json::array()}, {"links", Json::array()}};
  for (int d = 0; d < devices; ++d) {
    const bool last = d + 1 == devices;
    Json device = {{"name", last ? "cpu" : "d" + std::to_string(d)}};
    if (last) {
      device["ops"] = "*";
    } else {
      device["ops"] = Json::array({{{"types",
                                     {"aten.relu.default", "aten.neg.default",
                                      d == 0 ? "aten.exp.default" : "aten.tanh.default"}}}});
    }
    device["peak_flops"] = {{"float32", one_of({1e6, 2e6, 1e7})}};
    device["memory_bandwidth"] = one_of({1e6, 4e6, 1e8});
    device["launch_overhead_us"] = one_of({0, 3, 20, 200});
    json["devices"].push_back(std::move(device));
    for (int e = 0; e < d; ++e) {
      for (const bool back : {false, true}) {
        const Json& a = json["devices"][static_cast<std::size_t>(back ? d : e)]["name"];
        const Json& b = json["devices"][static_cast<std::size_t>(back ? e : d)]["name"];
        json["links"].push_back({{"from", a},
                                 {"to", b},
                                 {"bandwidth", one_of({1e6, 1e7, 1e8})},
                                 {"latency_us", one_of({0, 1, 10, 50})}});
      }
    }
  }
  return parse_target(json, "random.json");
}

// A random graph of ops that some device of random_target runs, tagged for it.
Graph random_graph(std::mt19937& random, const Target& target, int nodes, double supported) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  GraphBuilder builder;
  builder.input("x", {64});
  std::vector<std::string> results;
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const auto pick = [&]() -> std::string {
      if (results.empty() || below(8) == 0) return "x";
      const int window = 1 + below(6);
      return results[results.size() - 1 -
                     static_cast<std::size_t>(
                         std::min<int>(below(window), static_cast<int>(results.size()) - 1))];
    };
    // One call a statement: the order of arguments' evaluation is the compiler's.
    const int kind = below(100);
    const Shape shape{16 << below(6)};
    const std::string operand = pick();
    if (kind < static_cast<int>(100 * supported)) {
      const char* const ops[] = {"aten.relu.default", "aten.neg.default", "aten.exp.default",
                                 "aten.tanh.default"};
      builder.node(name, ops[below(4)], {operand}, shape);
    } else if (kind % 2 == 0) {
      builder.node(name, "aten.add.Tensor", {operand, pick()}, shape);
    } else {
      builder.node(name, "aten.sin.default", {operand}, shape);
    }
    results.push_back(name);
  }
  for (const std::string& result : results) {
    if (below(5) == 0) builder.output(result);
  }
  builder.output(results.back());
  Graph graph = builder.build();
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

struct BruteForce {
  double placed_us = INFINITY;  // computing and copying
  double total_us = INFINITY;   // with launches
  int free_nodes = 0;
};

// Tries every placement of the nodes that more than one device supports, by the definition of the
// predicted time: nodes, each tensor once per device that needs it, and the launches of the
// cheapest schedule, by dynamic programming over the sets of finished nodes where that is small
// enough, else by the convex strategy, which has a test of its own.
BruteForce try_all(Graph graph, const Target& target) {
  BruteForce best;
  const std::size_t count = graph.nodes().size();
  std::vector<std::vector<std::size_t>> choices(count);
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t d = 0; d < target.devices.size(); ++d) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (check_support(graph, id, target.devices[d]).supported) choices[n].push_back(d);
    }
    if (choices[n].size() > 1) ++best.free_nodes;
  }
  std::vector<std::size_t> digit(count, 0);
  for (;;) {
    double us = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const Device& device = target.devices[choices[n][digit[n]]];
      graph.nodes()[n].device = device.name;
      us += node_us(graph, graph.nodes()[n], device);
    }
    for (const TensorInfo& tensor : graph.tensors()) {
      if (!tensor.producer.valid()) continue;
      const std::string& from = *graph.node(tensor.producer).device;
      std::set<std::string> to;
      for (const NodeId consumer : tensor.consumers) to.insert(*graph.node(consumer).device);
      to.erase(from);
      for (const std::string& device : to) {
        us += transfer_us(target, from, device, static_cast<double>(tensor.bytes()));
      }
    }
    best.placed_us = std::min(best.placed_us, us);
    if (us < best.total_us) {
      // Both first devices: convex counts partitions, not their price.
      double least = INFINITY;
      const PartitionPlan plan = partition_convex(graph);
      double launch = 0;
      for (const Partition& partition : plan.partitions) {
        launch += target.find_device(partition.device)->launch_overhead_us;
      }
      least = launch;
      best.total_us = std::min(best.total_us, us + least);
    }
    std::size_t n = 0;
    while (n < count && ++digit[n] == choices[n].size()) digit[n++] = 0;
    if (n == count) break;
  }
  return best;
}

// As a reader of the document would.
std::vector<std::string> proof_errors(const std::string& text) {
  Diagnostics diagnostics;
  check_certificate(read_valid_graph(text, "again.json"), roofline_cost(), diagnostics);
  return errors_of(diagnostics);
}
void check_proof(const Graph& graph) {
  CHECK(proof_errors(write_graph(graph)) == std::vector<std::string>());
}

double metric(const PartitionResult& result, const char* name) {
  return partition_metrics(result).at(name);
}

}  // namespace

TEST_CASE("mincut: the empty graph and one node") {
  std::mt19937 random(1);
  const Target target = random_target(random, 2);
  Graph empty = GraphBuilder().input("x").output("x").build();
  empty.set_npu_member("target", *target.json);
  Diagnostics diagnostics;
  PartitionOptions options{.strategy = Strategy::kMinCut};
  CHECK(partition_graph(empty, options, diagnostics).plan.partitions.empty());
  check_proof(empty);

  Graph one = random_graph(random, target, 1, 1);
  CHECK(partition_graph(one, options, diagnostics).plan.partitions.size() == 1);
  check_proof(one);
}

TEST_CASE("mincut: as good as the best of all placements on two devices") {
  std::mt19937 random(23);
  int proved = 0;
  int moved = 0;
  int rounds = 0;
  for (int round = 0; round < 2500; ++round) {
    CAPTURE(round);
    const Target target = random_target(random, 2);
    Graph graph = random_graph(random, target, 1 + round % 12, 0.3 + 0.1 * (round % 7));
    const BruteForce best = try_all(graph, target);
    Diagnostics diagnostics;
    const PartitionResult result =
        partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    check_plan(graph, result.plan);
    REQUIRE(metric(result, "cut_us") == Approx(best.placed_us).epsilon(1e-9).margin(2e-3));
    CHECK(metric(result, "lower_bound_us") <= best.total_us + 2e-3);
    // Brute force counts launches by convex, which may begin with the dearer device.
    CHECK(result.metrics.predicted_us <= best.total_us + 1e-3);
    CHECK(result.metrics.predicted_us <= result.metrics.all_on_last_us + 1e-9);
    if (metric(result, "gap") == 0) ++proved;
    if (metric(result, "moved_nodes") > 0) ++moved;
    ++rounds;
    check_proof(graph);
  }
  CHECK(proved == rounds);  // so few nodes that every gap is closed by trying all
  CHECK(moved > rounds / 4);
}

TEST_CASE("mincut: up to 16 free nodes") {
  std::mt19937 random(29);
  int largest = 0;
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    const Target target = random_target(random, 2);
    Graph graph = random_graph(random, target, 18, 0.9);
    const BruteForce best = try_all(graph, target);
    largest = std::max(largest, best.free_nodes);
    Diagnostics diagnostics;
    const PartitionResult result =
        partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    CHECK(metric(result, "cut_us") == Approx(best.placed_us).epsilon(1e-9).margin(2e-3));
    CHECK(result.metrics.predicted_us <= best.total_us + 1e-3);
  }
  CHECK(largest >= 12);
}

TEST_CASE("mincut: three and four devices") {
  std::mt19937 random(31);
  int exact = 0;
  int rounds = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int devices = 3 + round % 2;
    const Target target = random_target(random, devices);
    Graph graph = random_graph(random, target, 1 + round % 7, 0.7);
    const BruteForce best = try_all(graph, target);
    Diagnostics diagnostics;
    const PartitionResult result =
        partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    check_plan(graph, result.plan);
    CHECK(metric(result, "lower_bound_us") <= best.total_us + 2e-3);
    // The schedule of more than two devices is a heuristic on both sides.
    CHECK(result.metrics.predicted_us >= best.placed_us - 1e-3);
    CHECK(result.metrics.predicted_us <= result.metrics.all_on_last_us + 1e-9);
    if (std::abs(result.metrics.predicted_us - best.total_us) < 2e-3) ++exact;
    ++rounds;
    check_proof(graph);
  }
  CHECK(exact > rounds * 95 / 100);
}

TEST_CASE("mincut: larger graphs keep every property, and a bound below the other strategies") {
  std::mt19937 random(37);
  for (int round = 0; round < 250; ++round) {
    CAPTURE(round);
    const Target target = random_target(random, 2 + round % 3);
    const Graph tagged = random_graph(random, target, 20 + round % 60, 0.3 + 0.1 * (round % 7));
    Graph graph = tagged;
    Diagnostics diagnostics;
    const PartitionResult result =
        partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    check_plan(graph, result.plan);
    if (round % 5 == 0) check_survives_document(graph, result.plan);
    CHECK(metric(result, "lower_bound_us") <= result.metrics.predicted_us + 1e-3);
    CHECK(metric(result, "placed_us") + metric(result, "launch_us") ==
          Approx(result.metrics.predicted_us).epsilon(1e-9).margin(3e-3));
    for (const Strategy other : {Strategy::kConvex, Strategy::kContiguous}) {
      Graph copy = tagged;
      const PartitionResult plan = partition_graph(copy, {.strategy = other}, diagnostics);
      CHECK(result.metrics.predicted_us <= plan.metrics.predicted_us + 1e-3);
      CHECK(metric(result, "lower_bound_us") <= plan.metrics.predicted_us + 1e-3);
    }
    check_proof(graph);
    // A second run has nothing to move.
    Graph again = graph;
    const PartitionResult second =
        partition_graph(again, {.strategy = Strategy::kMinCut}, diagnostics);
    CHECK(second.metrics.predicted_us <= result.metrics.predicted_us + 1e-3);
  }
}

TEST_CASE("mincut: nodes that were placed by hand or failed to compile stay") {
  std::mt19937 random(41);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const Target target = random_target(random, 2);
    Graph graph = random_graph(random, target, 12, 0.9);
    std::vector<std::string> before;
    const char* const reasons[] = {"forced", "kept", "backend 'npu': no memory", "min nodes"};
    for (Node& node : graph.nodes()) {
      if (random() % 2 == 0) {
        const char* const reason = reasons[random() % 4];
        // The backend's words count for what the first device would otherwise run.
        if (node.device == "cpu" && reason == reasons[2]) continue;
        node.device = "cpu";
        node.device_reason = reason;
      }
    }
    for (const Node& node : graph.nodes()) {
      before.push_back(node.device_reason.value_or("") == "unsupported op" || !node.device_reason
                           ? ""
                           : *node.device + " " + *node.device_reason);
    }
    Diagnostics diagnostics;
    partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    for (std::size_t n = 0; n < before.size(); ++n) {
      const Node& node = graph.nodes()[n];
      if (!before[n].empty()) CHECK(*node.device + " " + *node.device_reason == before[n]);
    }
    check_proof(graph);
  }
}

TEST_CASE("mincut: reasons say what was moved") {
  // One relu between two sines, behind a link that is too slow for it.
  const Target target = parse_target(Json::parse(R"({"name": "t", "devices": [
        {"name": "npu", "ops": [{"types": ["aten.relu.default"]}], "peak_flops": {"float32": 1e12},
         "memory_bandwidth": 1e12},
        {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
        "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9, "latency_us": 100}]})"),
                                     "t.json");
  Graph graph = graph_of(R"(
    input x
    a = sin(x)
    b = relu(a)
    c = sin(b); output c)");
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  CHECK(graph.nodes()[1].device == "npu");
  const PartitionResult result =
      partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
  CHECK(graph.nodes()[1].device == "cpu");
  CHECK(graph.nodes()[1].device_reason == "cheaper on cpu");
  CHECK(graph.nodes()[0].device_reason == "unsupported op");
  CHECK(result.plan.partitions.size() == 1);
  // Behind a good link it goes back.
  Graph again = graph;
  Json better = *target.json;
  better["links"][0]["latency_us"] = 0;
  better["links"][0]["bandwidth"] = 1e15;
  again.set_npu_member("target", better);
  partition_graph(again, {.strategy = Strategy::kMinCut}, diagnostics);
  CHECK(again.nodes()[1].device == "npu");
  CHECK_FALSE(again.nodes()[1].device_reason.has_value());
}

TEST_CASE("mincut: a getitem stays with its producer, a fusion group together") {
  std::mt19937 random(43);
  int moved = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const Target target = random_target(random, 2);
    GraphBuilder builder;
    builder.lines(R"(
      input x [64,64]
      # Relus in front and behind, a group of three, and a split with its getitems.
      a = relu(x)
      b = neg(a) fusion_group=1
      c = exp(b) fusion_group=1
      d = relu(c) fusion_group=1
      s = aten.split.Tensor(d) [32,64] [32,64] {"split_size": 32}
      g = getitem(s_0, s_1) {"index": 0}
      h = getitem(s_0, s_1) {"index": 1}
      i = relu(g))");
    builder.node("j", random() % 2 == 0 ? "aten.neg.default" : "aten.sin.default", {"h"})
        .output("i")
        .output("j");
    Graph graph = builder.build();
    Diagnostics diagnostics;
    tag_ops(graph, target, {}, diagnostics);
    for (std::size_t n = 1; n < 4; ++n) {
      graph.nodes()[n].fusion_group = 1;
      if (graph.nodes()[n].device != graph.nodes()[1].device) graph.nodes()[n].fusion_group.reset();
    }
    const std::string before = *graph.nodes()[1].device;
    partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    CHECK(graph.nodes()[5].device == graph.nodes()[4].device);
    CHECK(graph.nodes()[6].device == graph.nodes()[4].device);
    for (std::size_t n = 2; n < 4; ++n) {
      if (graph.nodes()[n].fusion_group) {
        CHECK(graph.nodes()[n].device == graph.nodes()[1].device);
        CHECK(graph.nodes()[n].partition == graph.nodes()[1].partition);
      }
    }
    if (graph.nodes()[1].device != before) ++moved;
    check_proof(graph);
  }
  CHECK(moved > 20);
}

TEST_CASE("mincut: the check of a proof finds every change of a number") {
  std::mt19937 random(47);
  const Target target = random_target(random, 2);
  int kinds[3] = {};
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const Target other = random_target(random, 2);
    Graph graph = random_graph(random, other, 14 + round % 20, 0.8);
    Diagnostics diagnostics;
    partition_graph(graph, {.strategy = Strategy::kMinCut}, diagnostics);
    const Json document = Json::parse(write_graph(graph));
    const auto spoil = [&](const char* pointer, const auto& change) {
      const Json::json_pointer path(std::string("/npu/partition") + pointer);
      if (!document.contains(path)) return false;
      Json wrong = document;
      change(wrong[path]);
      CAPTURE(pointer, wrong[path].dump());
      CHECK(proof_errors(wrong.dump()) != std::vector<std::string>());
      return true;
    };
    const auto add_one = [](Json& value) { value = value.get<std::int64_t>() + 1; };
    CHECK(spoil("/metrics/predicted_us", [](Json& value) { value = value.get<double>() - 1; }));
    CHECK(spoil("/metrics/all_cpu_us", [](Json& value) { value = value.get<double>() + 1; }));
    CHECK(spoil("/metrics/lower_bound_us", [](Json& value) { value = value.get<double>() + 1; }));
    CHECK(spoil("/certificate/lower_bound", add_one));
    CHECK(spoil("/certificate/cut/value", add_one));
    kinds[0] += spoil("/certificate/bound/value", add_one);
    // Any flow beyond its tensor's price.
    kinds[1] +=
        spoil("/certificate/cut/flows/0/2", [](Json& value) { value = std::int64_t{1} << 60; });
    kinds[2] += spoil("/certificate/bound/paths/count", [](Json& value) { value = 0; });
    spoil("/certificate/cut/flows/0/0", [](Json& value) { value = "no such tensor"; });
    spoil("/certificate/cut/flows/0/2", [](Json& value) { value = 1.5; });
    CHECK(spoil("/certificate/proof", [](Json& value) { value = "because"; }));
  }
  for (const int count : kinds) CHECK(count > 5);
}

TEST_CASE("mincut: work grows in proportion to the graph") {
  // Everything that is looked at over all cuts and tries, for each node: the rounds become fewer as
  // the graph grows, but where they end early depends on the graph, too.
  std::mt19937 random(53);
  const Target target = parse_target(Json::parse(R"({"name": "t", "devices": [
        {"name": "npu", "ops": [{"types": ["aten.relu.default", "aten.neg.default"]}],
         "peak_flops": {"float32": 1e12}, "memory_bandwidth": 1e8, "launch_overhead_us": 5},
        {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e10}, "memory_bandwidth": 1e7,
         "launch_overhead_us": 5}],
        "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e8, "latency_us": 2}]})"),
                                     "t.json");
  for (const int nodes : {1000, 4000, 16'000}) {
    const Graph graph = random_graph(random, target, nodes, 0.7);
    PlacementProblem problem = build_placement_problem(graph, target, roofline_cost());
    const Placement placement = solve_placement(problem);
    CHECK(placement.runs.size() > 4);
    CAPTURE(nodes, placement.work);
    CHECK(placement.work <= 120 * nodes);
  }
}

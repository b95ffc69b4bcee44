// SPDX-License-Identifier: Apache-2.0
// Partitions within limits, compared with every way to cut the list.
#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/report.hpp"
#include "partition/strategies/tiling_advice.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Target small_target(std::int64_t bytes, double flops) {
  Json json = Json::parse(R"({"name": "small", "devices": [
    {"name": "d0", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
    {"name": "d1", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
    "links": [{"from": "d0", "to": "d1", "bandwidth": 1e9}]})");
  json["devices"][0]["on_chip_bytes"] = bytes;
  json["devices"][0]["max_partition_flops"] = flops;
  return parse_target(json, "small.json");
}

// What the library computes, by definition and for every way to cut; nodes are fused nodes, in list
// order.
struct Definition {
  const Graph& graph;
  const Target& target;

  TensorId root(TensorId id) const {
    const TensorInfo& tensor = graph.tensor(id);
    if (!tensor.producer.valid()) return id;
    const Node& node = graph.node(tensor.producer);
    return is_alias_node(graph, node) ? root(node.inputs.at(0)) : id;
  }
  bool leaves(TensorId id) const {
    for (const TensorId output : graph.graph_outputs()) {
      if (root(output) == id) return true;
    }
    return false;
  }
  std::set<TensorId> read_by(int n) const {
    std::set<TensorId> read;
    const Node& node = graph.nodes()[static_cast<std::size_t>(n)];
    if (is_alias_node(graph, node)) return read;
    for (const TensorId id : node.inputs) read.insert(root(id));
    return read;
  }
  std::set<TensorId> made_by(int n) const {
    std::set<TensorId> made;
    const Node& node = graph.nodes()[static_cast<std::size_t>(n)];
    if (is_alias_node(graph, node)) return made;
    for (const TensorId id : node.outputs) {
      bool needed = leaves(id);
      for (int m = n + 1; m < static_cast<int>(graph.nodes().size()); ++m)
        needed = needed || read_by(m).count(id) != 0;
      if (needed) made.insert(id);
    }
    return made;
  }
  std::set<TensorId> touched_by(int n) const {
    std::set<TensorId> touched = read_by(n);
    for (const TensorId id : made_by(n)) touched.insert(id);
    return touched;
  }
  double working_set(int first, int last) const {
    double most = 0;
    for (int t = first; t <= last; ++t) {
      std::set<TensorId> alive = touched_by(t);
      for (int before = first; before < t; ++before) {
        for (const TensorId id : touched_by(before)) {
          for (int after = t + 1; after <= last; ++after) {
            if (touched_by(after).count(id) != 0) alive.insert(id);
          }
        }
      }
      double bytes = 0;
      for (const TensorId id : alive) bytes += static_cast<double>(graph.tensor(id).bytes());
      most = std::max(most, bytes);
    }
    return most;
  }
  double traffic(int first, int last) const {
    std::set<TensorId> in;
    double bytes = 0;
    std::set<TensorId> inside;
    for (int n = first; n <= last; ++n) {
      for (const TensorId id : read_by(n)) {
        if (inside.count(id) == 0 && graph.tensor(id).kind != TensorKind::kWeight) in.insert(id);
      }
      for (const TensorId id : made_by(n)) {
        inside.insert(id);
        bool out = leaves(id);
        for (int m = last + 1; m < static_cast<int>(graph.nodes().size()); ++m)
          out = out || read_by(m).count(id) != 0;
        if (out) bytes += static_cast<double>(graph.tensor(id).bytes());
      }
    }
    for (const TensorId id : in) bytes += static_cast<double>(graph.tensor(id).bytes());
    return bytes;
  }
  bool fits(int first, int last) const {
    if (first == last) return true;
    double flops = 0;
    const std::string& name = *graph.nodes()[static_cast<std::size_t>(first)].device;
    for (int n = first; n <= last; ++n) {
      const Node& node = graph.nodes()[static_cast<std::size_t>(n)];
      if (node.device != name) return false;
      flops += node_flops(graph, node);
    }
    const Device& device = *target.find_device(name);
    return (device.on_chip_bytes == 0 ||
            working_set(first, last) <= static_cast<double>(device.on_chip_bytes)) &&
           (device.max_partition_flops == 0 || flops <= device.max_partition_flops);
  }
  // (bytes, partitions), by all ways to cut.
  std::pair<double, int> best() const {
    const int n = static_cast<int>(graph.nodes().size());
    std::pair<double, int> least{INFINITY, 0};
    for (unsigned cuts = 0; cuts < 1U << (n - 1); ++cuts) {
      std::pair<double, int> cost{0, 0};
      bool valid = true;
      int first = 0;
      for (int end = 1; end <= n && valid; ++end) {
        if (end < n && (cuts >> (end - 1) & 1U) == 0) continue;
        valid = fits(first, end - 1);
        cost.first += traffic(first, end - 1);
        ++cost.second;
        first = end;
      }
      if (valid) least = std::min(least, cost);
    }
    return least;
  }
};

}  // namespace

TEST_CASE("the best of all ways to cut") {
  std::mt19937 random(11);
  int limited = 0;
  int unlimited = 0;
  for (int round = 0; round < 400; ++round) {
    GraphBuilder builder = random_builder(
        random,
        {.nodes = 1 + round % 9, .devices = round % 4 == 0 ? 2 : 1, .max_operands = 1 + round % 3});
    for (Json& node : builder.document()["nodes"]) {
      if (random() % 6 == 0 && node["inputs"].size() == 1 && node["outputs"].size() == 1) {
        node["op_type"] = "aten.view.default";
      }
    }
    Graph graph = builder.build();
    const Target target = small_target(
        static_cast<std::int64_t>(round % 10 == 0 ? 0 : random() % 300), round % 3 == 0 ? 20 : 0);
    Diagnostics diagnostics;
    StrategyOutcome outcome;
    if (target.devices[0].on_chip_bytes == 0 && target.devices[0].max_partition_flops == 0) {
      ++unlimited;
    }
    outcome = partition_resources(graph, target, {}, diagnostics);
    CHECK(diagnostics.entries().size() ==
          (target.devices[0].on_chip_bytes == 0 && target.devices[0].max_partition_flops == 0));
    check_plan(graph, outcome.plan);
    const Definition definition{graph, target};
    const auto [bytes, partitions] = definition.best();
    CAPTURE(round, target.devices[0].on_chip_bytes);
    const auto& facts = std::get<ResourcesFacts>(outcome.facts);
    CHECK(facts.split.boundary_bytes == bytes);
    CHECK(static_cast<int>(outcome.plan.partitions.size()) == partitions);
    CHECK(facts.first_fit.boundary_bytes >= bytes);
    double largest = 0;
    for (std::size_t p = 0; p < outcome.plan.partitions.size(); ++p) {
      const auto& nodes = outcome.plan.partitions[p].nodes;
      const double set = definition.working_set(nodes.front().value, nodes.back().value);
      CHECK(facts.working_sets.at(p) == set);
      largest = std::max(largest, set);
    }
    CHECK(*std::max_element(facts.working_sets.begin(), facts.working_sets.end()) == largest);
    limited += partitions > 1;
  }
  CHECK(limited > 100);
  CHECK(unlimited > 0);
}

TEST_CASE("memory is used again") {
  // x -> a -> b -> c of 16 bytes each: two are alive at once, their sum is 64.
  GraphBuilder builder;
  builder.input("x")
      .node("a", "custom.one", {"x"})
      .node("b", "custom.one", {"a"})
      .node("c", "custom.one", {"b"});
  for (Json& node : builder.document()["nodes"]) node["device"] = "d0";
  Graph graph = builder.output("c").build();
  Diagnostics diagnostics;
  const StrategyOutcome outcome = partition_resources(graph, small_target(32, 0), {}, diagnostics);
  CHECK(outcome.plan.partitions.size() == 1);
  const auto& facts = std::get<ResourcesFacts>(outcome.facts);
  CHECK(facts.working_sets == std::vector<double>{32});
  CHECK(facts.split.boundary_bytes == 32);
  CHECK(facts.first_fit.partitions == 3);
  CHECK(facts.first_fit.boundary_bytes == 96);
}

TEST_CASE("a unit that does not fit is reported with tiles that do") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,32,32]; weight w [16,8,3,3]
    c = conv2d(x, p_w) [1,16,32,32] {"padding": [1, 1]} @d0; output c)");
  Graph graph = builder.build();
  // input 32768, weight 4608, result 65536 bytes
  const auto tiles = [&](std::int64_t limit) {
    Diagnostics diagnostics;
    const StrategyOutcome outcome =
        partition_resources(graph, small_target(limit, 0), {}, diagnostics);
    const auto& oversize = std::get<ResourcesFacts>(outcome.facts).oversize;
    return oversize.empty() ? TilingAdvice() : oversize.at(0).tiles;
  };
  CHECK_FALSE(tiles(102912).fits);  // there is nothing to tile
  // 4608 + 98304 / 3 = 37376
  const TilingAdvice thirds = tiles(40000);
  CHECK(thirds.fits);
  CHECK(thirds.row_tiles == 3);
  CHECK(thirds.channel_tiles == 1);
  CHECK(thirds.bytes == 37376);
  // Weights alone are too large: half of the filters, and 4096 - 2304 bytes for the rest.
  const TilingAdvice both = tiles(4096);
  CHECK(both.channel_tiles > 1);
  CHECK(both.bytes <= 4096);
  CHECK_FALSE(tiles(100).fits);  // one position of one filter is larger
}

TEST_CASE("limits of whole models on the planning targets") {
  for (const std::string target_name : {"gpu", "tpu", "kpu"}) {
    for (const std::string name : {"resnet18", "mobilenet_v2", "vit_b_16"}) {
      CAPTURE(target_name, name);
      const std::string path = NPU_TEST_DATA_DIR "/models/" + name + ".json";
      Graph graph = read_valid_graph(read_file(path), path);
      const Target target = load_target(target_name);
      Diagnostics diagnostics;
      tag_ops(graph, target, {}, diagnostics);
      fuse_ops(graph, {}, diagnostics);
      const PartitionResult result =
          partition_graph(graph, {.strategy = Strategy::kResources}, diagnostics);
      const std::map<std::string, double> metrics = partition_metrics(result);
      CHECK(metrics.at("boundary_bytes") <= metrics.at("first_fit_boundary_bytes"));
      CHECK(metrics.at("partitions") <= metrics.at("first_fit_partitions"));
      const Json& plan = *graph.npu_member("partition");
      const auto limit = static_cast<double>(target.devices[0].on_chip_bytes);
      for (std::size_t p = 0; p < result.plan.partitions.size(); ++p) {
        if (result.plan.partitions[p].device != target.devices[0].name) continue;
        std::set<std::int64_t> groups;
        for (const NodeId id : result.plan.partitions[p].nodes)
          groups.insert(*graph.node(id).fusion_group);
        CHECK((plan.at("working_sets").at(p).get<double>() <= limit || groups.size() == 1));
      }
    }
  }
}

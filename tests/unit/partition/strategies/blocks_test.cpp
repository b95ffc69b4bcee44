// SPDX-License-Identifier: Apache-2.0
// Blocks of models and of small graphs, and plans that are valid for any graph.
#include "partition/strategies/blocks.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/report.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

Graph model(const std::string& name) {
  const std::string path = NPU_TEST_DATA_DIR "/models/" + name + ".json";
  return read_valid_graph(read_file(path), path);
}

Lines blocks_of(const Graph& graph, std::int64_t depth = 1) {
  Lines lines;
  for (const std::vector<NodeId>& block : find_blocks(graph, depth)) {
    lines.emplace_back();
    for (const NodeId id : block)
      lines.back() += (lines.back().empty() ? "" : " ") + graph.node(id).name;
  }
  return lines;
}

// A chain of layers x -> ... with a residual around each pair of products.
GraphBuilder& linear(GraphBuilder& builder, const std::string& name, const std::string& in) {
  builder.weight(name + "_w", {4, 4});
  return builder.node(name, "aten.linear.default", {in, "p_" + name + "_w"}, Shape{2, 4});
}

GraphBuilder residual_net() {
  GraphBuilder builder;
  builder.input("x", {2, 4});
  linear(builder, "stem", "x");
  for (const std::string i : {"1", "2"}) {
    const std::string in = i == "1" ? "stem" : "r1";
    linear(builder, "a" + i, in).node("g" + i, "aten.gelu.default", {"a" + i});
    linear(builder, "b" + i, "g" + i);
    builder.node("s" + i, "aten.add.Tensor", {in, "b" + i})
        .node("r" + i, "aten.relu.default", {"s" + i});
  }
  linear(builder, "tail", "r2");
  return builder.output("tail");
}

const Target& two_devices() {
  static const Target target = parse_target(Json::parse(R"({"name": "two", "devices": [
    {"name": "d0", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
    {"name": "d1", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
    {"name": "d2", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
    "links": [{"from": "d0", "to": "d1", "bandwidth": 1e9}, {"from": "d0", "to": "d2", "bandwidth": 1e9},
              {"from": "d1", "to": "d2", "bandwidth": 1e9}]})"),
                                            "two.json");
  return target;
}

}  // namespace

TEST_CASE("blocks of whole models") {
  const auto count = [](const std::string& name, const std::vector<std::string>& patterns) {
    Graph graph = model(name);
    Diagnostics diagnostics;
    tag_ops(graph, load_target("host"), {.force = {{"cpu", "*"}}}, diagnostics);
    if (!patterns.empty()) fuse_ops(graph, {.patterns = patterns}, diagnostics);
    return partition_graph(graph, {.strategy = Strategy::kBlocks}, diagnostics)
        .plan.partitions.size();
  };
  // Whether fused before or not: stem, residual blocks, tail.
  const std::vector<std::vector<std::string>> fusions{{}, {"default"}, {"all"}};
  for (const auto& patterns : fusions) {
    CHECK(count("resnet18", patterns) == 1 + 8 + 1);
    CHECK(count("resnet34", patterns) == 1 + 16 + 1);
    CHECK(count("resnet50", patterns) == 1 + 16 + 1);
    CHECK(count("mobilenet_v2", patterns) == 1 + 17 + 1);
    CHECK(count("vit_b_16", patterns) == 1 + 12 + 1);
    CHECK(count("bert_base", patterns) == 1 + 12 + 1);
    CHECK(count("inception_v3", patterns) == 2 + 11 + 1);  // two stages of the stem
  }
}

TEST_CASE("blocks within blocks") {
  const Graph graph = residual_net().build();
  CHECK(blocks_of(graph) == Lines{"stem", "a1 g1 b1 s1 r1", "a2 g2 b2 s2 r2", "tail"});
  CHECK(blocks_of(graph, 2) == Lines{"stem", "a1 g1 b1", "s1 r1", "a2 g2 b2", "s2 r2", "tail"});
  CHECK(blocks_of(graph, 64) == blocks_of(graph, 2));
  CHECK(find_blocks(model("resnet18"), 2).size() == 21);
  CHECK(find_blocks(model("bert_base"), 2).size() == 26);  // attention and the rest of each layer
}

TEST_CASE("side inputs and side outputs") {
  GraphBuilder builder = residual_net();
  // A mask that every block reads, and a result that leaves in the middle.
  Json document = builder.document();
  builder = GraphBuilder();
  builder.input("x", {2, 4}).input("m", {2, 4});
  builder.node("mask", "aten.neg.default", {"m"});
  linear(builder, "stem", "x");
  for (const std::string i : {"1", "2"}) {
    const std::string in = i == "1" ? "stem" : "s1";
    linear(builder, "a" + i, in).node("k" + i, "aten.mul.Tensor", {"a" + i, "mask"});
    linear(builder, "side" + i, "k" + i).output("side" + i);
    linear(builder, "b" + i, "k" + i).node("s" + i, "aten.add.Tensor", {in, "b" + i});
  }
  linear(builder, "tail", "s2").output("tail");
  CHECK(blocks_of(builder.build()) ==
        Lines{"stem", "mask a1 k1 side1 b1 s1", "a2 k2 side2 b2 s2", "tail"});
}

TEST_CASE("graphs without blocks") {
  CHECK(find_blocks(GraphBuilder().input("x").build(), 1).empty());
  CHECK(blocks_of(
            GraphBuilder().input("x").node("a", "aten.relu.default", {"x"}).output("a").build()) ==
        Lines{"a"});
  GraphBuilder two;  // two networks that have nothing to do with each other
  two.input("x", {2, 4}).input("y", {2, 4});
  linear(two, "a", "x");
  linear(two, "b", "y").node("c", "aten.relu.default", {"b"});
  CHECK(blocks_of(two.output("a").output("c").build()) == Lines{"a b c"});
}

TEST_CASE("a block on two devices") {
  GraphBuilder builder = residual_net();
  for (Json& node : builder.document()["nodes"])
    node["device"] = node["name"] == "g1" ? "d1" : "d0";
  Graph graph = builder.build();
  graph.set_npu_member("target", *two_devices().json);
  Diagnostics diagnostics;
  const PartitionResult result =
      partition_graph(graph, {.strategy = Strategy::kBlocks}, diagnostics);
  CHECK(steps_of(graph, result.plan) == Lines{"d0: stem", "d0: a1", "to_d1: a1", "d1: g1",
                                              "to_d0: g1", "d0: b1 s1 r1", "d0: a2 g2 b2 s2 r2",
                                              "d0: tail"});
  CHECK(partition_metrics(result).at("blocks") == 4);
  CHECK((*graph.npu_member("partition")).at("blocks").at(1).at("partitions") == Json{1, 2, 3});
}

TEST_CASE("plans of random graphs are valid") {
  std::mt19937 random(3);
  for (int round = 0; round < 1500; ++round) {
    GraphBuilder builder = random_builder(
        random, {.nodes = 1 + round % 30, .devices = 1 + round % 3, .max_operands = 1 + round % 3});
    for (Json& node : builder.document()["nodes"]) {
      // Some anchors, so that there are blocks.
      if (random() % 2 == 0 && node["outputs"].size() == 1) node["op_type"] = "aten.mm.default";
      if (round % 5 == 0)
        node["fusion_group"] = node["device"] == "d0" ? random() % 1000 : 1000 + random() % 1000;
    }
    Graph graph = builder.build();
    StrategyOutcome outcome;
    Diagnostics diagnostics;
    try {
      outcome = partition_blocks(graph, two_devices(), {.depth = 1 + round % 4}, diagnostics);
    } catch (const Error&) {
      CHECK(round % 5 == 0);  // groups at random are rarely convex
      continue;
    }
    check_plan(graph, outcome.plan);
    std::size_t listed = 0;
    for (const BlocksFacts::Block& block : std::get<BlocksFacts>(outcome.facts).blocks) {
      listed += block.partitions.size();
    }
    CHECK(listed == outcome.plan.partitions.size());
  }
}

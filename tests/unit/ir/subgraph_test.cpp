// SPDX-License-Identifier: Apache-2.0
// A set of nodes as a separate document.
#include "npu/ir/subgraph.hpp"

#include <random>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/file_io.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

Lines tensor_names(const Graph& graph, const std::vector<TensorId>& ids) {
  Lines names;
  for (const TensorId id : ids) names.push_back(graph.tensor(id).name);
  return names;
}

// x, y -> a; a, w -> b, c; c -> d. Outputs b and a.
Graph diamond() {
  return GraphBuilder("diamond")
      .input("x")
      .input("y")
      .weight("w", {4})
      .weight("v", {4})
      .node("a", "aten.add.Tensor", {"y", "x"})
      .on("npu")
      .key("device_reason", "forced")
      .key("partition", 0)
      .key("fusion_group", 2)
      .key("note", "kept")
      .node("b", "custom", {"p_w", "a", "p_v", "p_w"})
      .node("c", "aten.mul.Tensor", {"a", "x"})
      .node("d", "custom", {"c"})
      .output("b")
      .output("a")
      .build();
}

}  // namespace

TEST_CASE("boundary: of no nodes is empty") {
  const SubgraphBoundary boundary = find_boundary(diamond(), {});
  CHECK(boundary.inputs.empty());
  CHECK(boundary.outputs.empty());
  CHECK(boundary.weights.empty());
}

TEST_CASE("boundary: inputs and weights in order of first use, outputs in order of production") {
  const Graph graph = diamond();
  const SubgraphBoundary all = find_boundary(graph, {{0}, {1}, {2}, {3}});
  CHECK(tensor_names(graph, all.inputs) == Lines{"y", "x"});
  CHECK(tensor_names(graph, all.weights) == Lines{"p_w", "p_v"});
  CHECK(tensor_names(graph, all.outputs) == Lines{"a", "b"});  // graph_outputs lists b first

  const SubgraphBoundary first = find_boundary(graph, {{0}});
  CHECK(tensor_names(graph, first.outputs) == Lines{"a"});
  const SubgraphBoundary middle = find_boundary(graph, {{1}, {2}});
  CHECK(tensor_names(graph, middle.inputs) == Lines{"a", "x"});
  CHECK(tensor_names(graph, middle.outputs) == Lines{"b", "c"});
  const SubgraphBoundary last = find_boundary(graph, {{2}, {3}});
  CHECK(tensor_names(graph, last.inputs) == Lines{"a", "x"});
  CHECK(last.outputs.empty());  // d is read by nobody, c only inside
}

TEST_CASE("sub-IR: is a valid document of its own") {
  const Graph graph = diamond();
  const std::vector<NodeId> nodes{{1}, {2}};
  const std::string text = write_subgraph(graph, nodes, find_boundary(graph, nodes));
  CHECK(faults_of(text).empty());
  const Graph part = read_valid_graph(text, "part");
  CHECK(part.model_name() == "diamond");
  CHECK(tensor_names(part, part.graph_inputs()) == Lines{"a", "x"});
  CHECK(tensor_names(part, part.graph_outputs()) == Lines{"b", "c"});
  REQUIRE(part.nodes().size() == 2);
  CHECK(tensor_names(part, part.nodes()[0].inputs) == Lines{"p_w", "a", "p_v", "p_w"});
  CHECK(part.tensor(part.find_tensor("p_v")).kind == TensorKind::kWeight);
  CHECK(part.tensor(part.find_tensor("p_v")).weight_key ==
        "p_v");  // weights go by placeholder name here
  CHECK(part.tensor(part.find_tensor("a")).kind == TensorKind::kGraphInput);
}

TEST_CASE("sub-IR: leaves out placement and keeps every other key") {
  const Graph graph = diamond();
  const Json node =
      Json::parse(write_subgraph(graph, {{0}}, find_boundary(graph, {{0}})))["nodes"][0];
  for (const char* key : {"device", "device_reason", "partition"}) CHECK_FALSE(node.contains(key));
  CHECK(node["fusion_group"] == 2);
  CHECK(node["note"] == "kept");
  CHECK(node["op_type"] == "aten.add.Tensor");
  // A boundary input names itself as its producer, as real files do.
  CHECK(
      node["inputs"][0].dump() ==
      R"({"name":"y","shape":[4],"dtype":"float32","producer_node":"y","producer_output_idx":0})");
}

TEST_CASE("sub-IR: says which fusion group a node is in, and its pattern") {
  Graph graph = diamond();
  graph.set_npu_member("fusion", Json{{"groups", {{{"id", 2}, {"pattern", "elementwise"}}}}});
  const auto first_node = [&] {
    return Json::parse(write_subgraph(graph, {{0}}, find_boundary(graph, {{0}})))["nodes"][0];
  };
  CHECK(first_node()["fusion_group"] == 2);
  CHECK(first_node()["fusion_pattern"] == "elementwise");
  graph.node({0}).fusion_group.reset();  // what the typed field says counts
  CHECK_FALSE(first_node().contains("fusion_group"));
  CHECK_FALSE(first_node().contains("fusion_pattern"));
}

TEST_CASE("sub-IR: several results keep their names and indices") {
  const Graph graph =
      GraphBuilder()
          .input("x")
          .node_with_results("split", "aten.split.Tensor", {"x"}, {{2}, {2}}, {{"split_size", 2}})
          .node("item", "<built-in function getitem>", {"split_0", "split_1"}, Shape{2},
                {{"index", 1}})
          .output("item")
          .build();
  // Together: the results are inside.
  const std::vector<NodeId> both{{0}, {1}};
  const Graph whole =
      read_valid_graph(write_subgraph(graph, both, find_boundary(graph, both)), "f");
  CHECK(whole.tensor(whole.find_tensor("split_1")).result == 1);
  CHECK(tensor_names(whole, whole.graph_outputs()) == Lines{"item"});
  // Apart: both results cross, though the getitem takes one.
  const SubgraphBoundary first = find_boundary(graph, {{0}});
  CHECK(tensor_names(graph, first.outputs) == Lines{"split_0", "split_1"});
  const Graph item =
      read_valid_graph(write_subgraph(graph, {{1}}, find_boundary(graph, {{1}})), "f");
  CHECK(tensor_names(item, item.graph_inputs()) == Lines{"split_0", "split_1"});
  CHECK(item.nodes()[0].attrs().at("index") == 1);
}

TEST_CASE("sub-IR: mentions without shape, dtype or name are completed") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [{"name": "x", "shape": [2], "dtype": "bfloat16"}], "graph_outputs": [{"name": "b"}],
    "nodes": [{"name": "a", "op_type": "custom", "inputs": [{"name": "x"}], "outputs": [{"shape": [3], "dtype": "bool"}]},
              {"name": "b", "op_type": "custom", "inputs": [{"name": "a"}], "outputs": [{"shape": [], "dtype": "int8"}]}]})",
                                       "f");
  const Json document = Json::parse(write_subgraph(graph, {{1}}, find_boundary(graph, {{1}})));
  CHECK(document["graph_inputs"].dump() == R"([{"name":"a","shape":[3],"dtype":"bool"}])");
  CHECK(document["graph_outputs"].dump() == R"([{"name":"b","shape":[],"dtype":"int8"}])");
  CHECK(document["nodes"][0]["inputs"][0]["shape"] == Json{3});
  CHECK(document["nodes"][0]["outputs"][0]["name"] == "b");
}

TEST_CASE("sub-IR: random sets of nodes of random graphs are valid documents") {
  std::mt19937 random(37);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const Graph graph = random_builder(random, {.nodes = 1 + round % 12}).build();
    std::vector<NodeId> nodes;
    std::set<std::int32_t> members;
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph.nodes().size()); ++n) {
      if (random() % 2 != 0) continue;
      nodes.push_back({n});
      members.insert(n);
    }
    const SubgraphBoundary boundary = find_boundary(graph, nodes);
    const std::string text = write_subgraph(graph, nodes, boundary);
    CHECK(faults_of(text).empty());
    const Graph part = read_valid_graph(text, "part");
    REQUIRE(part.nodes().size() == nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      CHECK(tensor_names(part, part.nodes()[n].inputs) ==
            tensor_names(graph, graph.node(nodes[n]).inputs));
      CHECK(tensor_names(part, part.nodes()[n].outputs) ==
            tensor_names(graph, graph.node(nodes[n]).outputs));
    }
    // A result crosses exactly if someone outside needs it.
    for (const NodeId id : nodes) {
      for (const TensorId output : graph.node(id).outputs) {
        const auto& ends = graph.graph_outputs();
        bool needed = std::find(ends.begin(), ends.end(), output) != ends.end();
        for (const NodeId reader : graph.tensor(output).consumers)
          needed = needed || members.count(reader.value) == 0;
        CHECK((std::count(boundary.outputs.begin(), boundary.outputs.end(), output) == 1) ==
              needed);
      }
    }
  }
}

TEST_CASE("sub-IR: the whole of a model reads as the model") {
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/mobilenet_v2.json";
  const Graph graph = read_valid_graph(read_file(file), file);
  std::vector<NodeId> nodes;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    nodes.push_back({static_cast<std::int32_t>(n)});
  const Graph whole =
      read_valid_graph(write_subgraph(graph, nodes, find_boundary(graph, nodes)), "whole");
  REQUIRE(whole.nodes().size() == graph.nodes().size());
  CHECK(tensor_names(whole, whole.graph_inputs()) == tensor_names(graph, graph.graph_inputs()));
  CHECK(tensor_names(whole, whole.graph_outputs()) == tensor_names(graph, graph.graph_outputs()));
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    CHECK(whole.nodes()[n].attrs() == graph.nodes()[n].attrs());
    CHECK(whole.nodes()[n].op_type == graph.nodes()[n].op_type);
  }
}

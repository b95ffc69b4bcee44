// SPDX-License-Identifier: Apache-2.0
#include "ir/graph_editor.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

// a -> b -> c, b is read by c alone; a and c are outputs.
Graph chain() {
  return graph_of(R"(
    input x
    a = relu(x)
    b = tanh(a)
    c = sigmoid(b); output a, c)");
}

Json copy_node(const std::string& name, const std::string& reads, const std::string& producer) {
  return {{"name", name},
          {"op_type", "my.copy"},
          {"inputs", Json::array({{{"name", reads},
                                   {"shape", {4}},
                                   {"dtype", "float32"},
                                   {"producer_node", producer},
                                   {"producer_output_idx", 0}}})},
          {"outputs", Json::array({{{"name", name}, {"shape", {4}}, {"dtype", "float32"}}})},
          {"attrs", Json::object()}};
}

std::string names(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) text += node.name + ' ';
  return text;
}

std::string reads(const Graph& graph, const std::string& node) {
  std::string text;
  for (const TensorId id : graph.node(graph.find_node(node)).inputs) {
    text += graph.tensor(id).name + ' ';
  }
  return text;
}

}  // namespace

TEST_CASE("A graph without edits stays the same text") {
  Graph graph = chain();
  const std::string before = write_graph(graph);
  GraphEditor(graph).commit();
  CHECK(write_graph(graph) == before);
}

TEST_CASE("Nodes are inserted in front of their place, in the order in which they came") {
  Graph graph = chain();
  GraphEditor editor(graph);
  editor.insert_before(graph.find_node("c"), copy_node("first", "b", "b"));
  editor.insert_before(graph.find_node("c"), copy_node("second", "first", "first"));
  editor.insert_before(id_at<NodeId>(3), copy_node("last", "c", "c"));
  editor.set_operand(graph.find_node("c"), 0, "second", {"second", 0});
  editor.commit();
  CHECK(names(graph) == "a b first second c last ");
  CHECK(reads(graph, "c") == "second ");
  CHECK(graph.tensor(graph.find_tensor("b")).consumers ==
        std::vector<NodeId>{graph.find_node("first")});
}

TEST_CASE("What read a removed node's result reads what it is told to") {
  Graph graph = chain();
  const TensorId a = graph.find_tensor("a");
  const TensorId b = graph.find_tensor("b");
  GraphEditor editor(graph);
  editor.remove(graph.find_node("b"));
  editor.rename(b, "a");
  editor.set_source(b, source_of(graph, a));
  editor.commit();
  CHECK(names(graph) == "a c ");
  CHECK(reads(graph, "c") == "a ");
  CHECK_FALSE(graph.find_tensor("b").valid());
}

TEST_CASE("A tensor's new name stands wherever the old one stood") {
  Graph graph = chain();
  GraphEditor editor(graph);
  editor.rename(graph.find_tensor("a"), "renamed");
  editor.commit();
  CHECK(reads(graph, "b") == "renamed ");
  CHECK(graph.tensor(graph.graph_outputs().front()).name == "renamed");
  CHECK(graph.node(NodeId{0}).name == "a");
}

TEST_CASE("editor: a renamed weight stands in the list under its new name, or keeps its key") {
  Graph graph = graph_of("input x; weight w [4]; y = mul(x, p_w); output y");
  GraphEditor editor(graph);
  editor.rename(graph.find_tensor("p_w"), "own");
  editor.commit();
  CHECK(reads(graph, "y") == "x own ");
  CHECK(graph.tensor(graph.find_tensor("own")).weight_key == "w");

  SubgraphBoundary boundary = find_boundary(graph, {NodeId{0}});
  Graph part = extract(graph, {NodeId{0}}, boundary);
  GraphEditor of_part(part);
  of_part.rename(part.find_tensor("own"), "other");
  of_part.commit();
  CHECK(reads(part, "y") == "x other ");
  CHECK(part.tensor(part.find_tensor("other")).weight_key == "other");
}

TEST_CASE("Fields that a pass has set survive an edit") {
  Graph graph = chain();
  graph.node(NodeId{0}).device = "npu";
  graph.node(NodeId{1}).fusion_group = 7;
  GraphEditor(graph).commit();
  CHECK(graph.node(NodeId{0}).device == "npu");
  CHECK(graph.node(NodeId{1}).fusion_group == 7);
  graph.node(NodeId{0}).device.reset();
  GraphEditor(graph).commit();
  CHECK_FALSE(graph.node(NodeId{0}).device);
}

TEST_CASE("Added outputs stand behind those that there are, and name their producers") {
  Graph graph = chain();
  GraphEditor editor(graph);
  editor.add_output(graph.find_tensor("b"));
  editor.add_output(graph.find_tensor("x"));
  editor.commit();
  std::string outputs;
  for (const TensorId id : graph.graph_outputs()) outputs += graph.tensor(id).name + ' ';
  CHECK(outputs == "a c b x ");
  CHECK(
      graph.document().at("graph_outputs")[2].dump() ==
      R"({"name":"b","shape":[4],"dtype":"float32","producer_node":"b","producer_output_idx":0})");
}

TEST_CASE("A tensor's new type stands wherever the document mentions it") {
  Graph graph = graph_of(R"(
    input x [4] float16
    weight w, v [4] float16
    a = aten.add.Tensor(x, p_w)
    b = aten.add.Tensor(a, p_v); output b, x)");
  GraphEditor editor(graph);
  for (const char* name : {"x", "p_w", "a", "b"}) {
    editor.retype(graph.find_tensor(name), DType::kFloat32);
  }
  editor.commit();
  std::string types;
  for (const TensorInfo& tensor : graph.tensors()) {
    types += tensor.name + ' ' + std::string(dtype_name(tensor.dtype)) + ", ";
  }
  CHECK(types == "x float32, a float32, b float32, p_w float32, p_v float16, ");
  CHECK(graph.document().at("weights")[0].at("dtype") == "float32");
  CHECK(graph.document().at("weights")[1].at("dtype") == "float16");
}

TEST_CASE("A constant's new type stands with its data") {
  Json document = GraphBuilder().lines("input x\ny = aten.add.Tensor(x, c); output y").document();
  document["constants"]["c"] = {{"data", {1, 2, 3, 4}}, {"dtype", "float32"}};
  Graph graph = valid_graph(std::move(document), "f");
  GraphEditor editor(graph);
  editor.retype(graph.find_tensor("c"), DType::kFloat64);
  editor.commit();
  CHECK(graph.tensor(graph.find_tensor("c")).dtype == DType::kFloat64);
  CHECK(graph.document().at("constants").at("c").at("dtype") == "float64");
}

TEST_CASE("An edit that leaves no valid graph is a fault of the caller") {
  Graph graph = chain();
  GraphEditor editor(graph);
  editor.remove(graph.find_node("b"));  // c reads its result
  CHECK_THROWS_AS(editor.commit(), std::logic_error);
}

TEST_CASE("Where a tensor comes from") {
  const Graph graph = chain();
  CHECK(source_of(graph, graph.find_tensor("b")).node == "b");
  CHECK(source_of(graph, graph.find_tensor("x")).node == "x");
}

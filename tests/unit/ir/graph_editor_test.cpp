// SPDX-License-Identifier: Apache-2.0
#include "ir/graph_editor.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

// a -> b -> c, b is read by c alone; a and c are outputs.
Graph chain() {
  return GraphBuilder()
      .input("x")
      .node("a", "aten.relu.default", {"x"})
      .node("b", "aten.tanh.default", {"a"})
      .node("c", "aten.sigmoid.default", {"b"})
      .output("a")
      .output("c")
      .build();
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

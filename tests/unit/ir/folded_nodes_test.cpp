// SPDX-License-Identifier: Apache-2.0
#include "ir/folded_nodes.hpp"

#include <algorithm>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/graph_editor.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"

using namespace npu;
using npu::test::errors_of;
using npu::test::GraphBuilder;

namespace {

// relu(x) + scale * grid, where grid is a constant, and an output of its own.
GraphBuilder with_constants() {
  return GraphBuilder().lines(R"(
    input x; weight scale [4]
    a = relu(x)
    grid = arange() {"end": 4}
    scaled = aten.mul.Tensor(grid, p_scale)
    b = aten.add.Tensor(a, scaled); output b, grid)");
}

std::vector<char> marks(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<char> fold;
  for (const Node& node : graph.nodes()) {
    fold.push_back(std::find(names.begin(), names.end(), node.name) != names.end() ? 1 : 0);
  }
  return fold;
}

Graph folded() {
  Graph graph = with_constants().build();
  fold_nodes(graph, marks(graph, {"grid", "scaled"}));
  return graph;
}

std::string all_names(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) text += node.name + ' ';
  text += '|';
  for (const FoldedNode& each : graph.folded()) text += ' ' + each.node.name;
  return text;
}

const TensorInfo& tensor(const Graph& graph, const std::string& name) {
  return graph.tensor(graph.find_tensor(name));
}

}  // namespace

TEST_CASE("folded nodes stand apart, and what they make is a weight") {
  const Graph graph = folded();
  CHECK(all_names(graph) == "a b | grid scaled");
  CHECK(graph.folded()[0].before == 1);
  CHECK(graph.folded()[1].before == 1);
  CHECK(graph.find_node("b") == NodeId{1});
  CHECK_FALSE(graph.find_node("grid").valid());
  const TensorInfo& scaled = tensor(graph, "scaled");
  CHECK(scaled.kind == TensorKind::kWeight);
  CHECK(scaled.folded == 1);
  CHECK_FALSE(scaled.producer.valid());
  CHECK(scaled.consumers == std::vector{NodeId{1}});
  CHECK(tensor(graph, "grid").consumers.empty());  // but an output
  CHECK(tensor(graph, "p_scale").consumers.empty());
  CHECK(tensor(graph, "b").producer == NodeId{1});
  // A sub-IR of the rest gets it like any weight, and its readers name no producer.
  const SubgraphBoundary boundary = find_boundary(graph, {NodeId{0}, NodeId{1}});
  CHECK(boundary.inputs == std::vector{graph.find_tensor("x")});
  CHECK(boundary.weights == std::vector{graph.find_tensor("scaled")});
  const std::string part = write_subgraph(graph, {NodeId{0}, NodeId{1}}, boundary);
  CHECK(part.find("\"producer_node\":\"scaled\"") == std::string::npos);
  CHECK(read_valid_graph(part, "part").nodes().size() == 2);
}

TEST_CASE("a document keeps folded nodes in their places") {
  const Graph graph = folded();
  const std::string text = write_graph(graph);
  const Graph again = read_valid_graph(text, "again");
  CHECK(all_names(again) == all_names(graph));
  CHECK(write_graph(again) == text);
  // And with mentions that the writer has to take as they are.
  Json document = Json::parse(text);
  document["nodes"][1]["outputs"][0]["note"] = 1;
  document["nodes"][2]["inputs"][0]["note"] = 2;
  const Graph odd = read_valid_graph(document.dump(), "odd");
  CHECK(all_names(odd) == all_names(graph));
  CHECK(Json::parse(write_graph(odd)) == document);
}

TEST_CASE("folding and unfolding gives the same text") {
  Graph graph = with_constants().build();
  const std::string before = write_graph(graph);
  fold_nodes(graph, marks(graph, {"grid", "scaled"}));
  CHECK(write_graph(graph) != before);
  unfold_nodes(graph);
  CHECK(write_graph(graph) == before);
  CHECK(graph.folded().empty());
  unfold_nodes(graph);
  CHECK(write_graph(graph) == before);
}

TEST_CASE("edits keep folded nodes where they are, and rename what they read") {
  Graph graph = with_constants()
                    .node("like", "aten.zeros_like.default", {"b"})
                    .node("c", "aten.add.Tensor", {"b", "like"})
                    .output("c")
                    .build();
  fold_nodes(graph, marks(graph, {"grid", "scaled", "like"}));
  GraphEditor editor(graph);
  editor.rename(graph.find_tensor("b"), "renamed");
  editor.rename(graph.find_tensor("scaled"), "also");
  editor.commit();
  CHECK(all_names(graph) == "a b c | grid scaled like");
  CHECK(graph.folded()[2].before == 2);
  CHECK(graph.tensor(graph.folded()[2].node.inputs[0]).name == "renamed");
  CHECK(tensor(graph, "also").is_folded());
  CHECK(graph.node(NodeId{1}).inputs[1] == graph.find_tensor("also"));
  // A tensor of a run that a folded node takes its type of does not count it as a reader.
  CHECK(tensor(graph, "renamed").consumers == std::vector{NodeId{2}});
}

TEST_CASE("places in messages count folded nodes") {
  const Graph graph = folded();
  CHECK(graph.location(NodeId{0}).pointer == "/nodes/0");
  CHECK(graph.location(NodeId{1}, "/device").pointer == "/nodes/3/device");
  std::string order;
  for (const Node* node : document_nodes(graph)) order += node->name + ' ';
  CHECK(order == "a grid scaled b ");
}

TEST_CASE("a mark that makes no sense is refused") {
  Json document = Json::parse(write_graph(folded()));
  document["nodes"][1]["device"] = "cpu";
  document["nodes"][2]["partition"] = 0;
  document["nodes"][3]["folded"] = "yes";
  Diagnostics diagnostics;
  read_graph(document.dump(), "test", diagnostics);
  CHECK(errors_of(diagnostics) ==
        std::vector<std::string>{"/nodes/3/folded: expected true or false, found string"});
  document["nodes"][3]["folded"] = false;
  Diagnostics others;
  const Graph graph = read_graph(document.dump(), "test", others);
  CHECK(
      errors_of(others) ==
      std::vector<std::string>{"/nodes/1/device: node 'grid' is folded, but has a device",
                               "/nodes/2/partition: node 'scaled' is folded, but has a partition"});
}

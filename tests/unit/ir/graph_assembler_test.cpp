// SPDX-License-Identifier: Apache-2.0
// What every graph has, whatever it was made from.
#include "ir/graph_assembler.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::errors_of;

namespace {

TensorInfo result_of(const std::string& name, std::int32_t node) {
  TensorInfo tensor;
  tensor.name = name;
  tensor.shape = {4};
  tensor.kind = TensorKind::kResult;
  tensor.producer = NodeId{node};
  return tensor;
}

/// Adds relu `name`, which makes a tensor of its name.
void add_relu(GraphAssembler& assembler, const std::string& name, TensorId operand,
              const Json& json = Json::object()) {
  const auto id = id_at<NodeId>(assembler.graph().nodes().size());
  Node& node = assembler.graph().nodes().emplace_back();
  node.name = name;
  node.op_type = "aten.relu.default";
  node.inputs = {operand};
  node.outputs = {assembler.add_tensor(result_of(name, id.value))};
  node.json = json;
  assembler.name_node(id);
}

TensorId add_input(GraphAssembler& assembler) {
  TensorInfo tensor;
  tensor.name = "x";
  tensor.shape = {4};
  tensor.kind = TensorKind::kGraphInput;
  const TensorId id = assembler.add_tensor(std::move(tensor));
  assembler.add_graph_input(id);
  return id;
}

}  // namespace

TEST_CASE("assembler: nothing makes the empty graph") {
  GraphAssembler assembler("none.json", Json::object());
  Diagnostics diagnostics;
  assembler.finish(diagnostics);
  const Graph graph = assembler.take();
  CHECK(graph.file == "none.json");
  CHECK(graph.nodes().empty());
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("assembler: names are found at once, consumers at the end and once each") {
  GraphAssembler assembler({}, Json::object());
  const TensorId x = add_input(assembler);
  add_relu(assembler, "a", x);
  add_relu(assembler, "b", x);
  assembler.graph().nodes()[1].inputs.push_back(x);
  CHECK(assembler.graph().find_tensor("a").valid());
  CHECK(assembler.graph().find_node("b") == NodeId{1});
  CHECK_FALSE(assembler.graph().find_node("c").valid());
  Diagnostics diagnostics;
  assembler.finish(diagnostics);
  CHECK(assembler.take().tensor(x).consumers == std::vector<NodeId>{{0}, {1}});
}

TEST_CASE("assembler: a name keeps its first node") {
  GraphAssembler assembler({}, Json::object());
  const TensorId x = add_input(assembler);
  add_relu(assembler, "a", x);
  Node& twin = assembler.graph().nodes().emplace_back();
  twin.name = "a";
  CHECK(assembler.name_node(NodeId{1}) == NodeId{0});
  CHECK(assembler.graph().find_node("a") == NodeId{0});
}

TEST_CASE("assembler: an order that is not topological is an error") {
  GraphAssembler assembler({}, Json::object());
  const TensorId x = add_input(assembler);
  add_relu(assembler, "a", x);
  add_relu(assembler, "b", x);
  assembler.graph().nodes()[0].inputs = {assembler.graph().find_tensor("b")};
  Diagnostics diagnostics;
  assembler.finish(diagnostics);
  CHECK(errors_of(diagnostics) ==
        std::vector<std::string>{"/nodes/0/inputs/0: node 'a' reads tensor 'b' before node 'b' "
                                 "produces it; nodes must stand in topological order"});
}

TEST_CASE("assembler: what folded nodes make is a weight, and the rest keeps its order") {
  GraphAssembler assembler({}, Json::object());
  const TensorId x = add_input(assembler);
  add_relu(assembler, "folded", x, Json{{"folded", true}});
  add_relu(assembler, "runs", assembler.graph().find_tensor("folded"));
  Diagnostics diagnostics;
  assembler.finish(diagnostics);
  const Graph graph = assembler.take();
  REQUIRE(graph.nodes().size() == 1);
  REQUIRE(graph.folded().size() == 1);
  CHECK(graph.find_node("runs") == NodeId{0});
  CHECK_FALSE(graph.find_node("folded").valid());
  const TensorInfo& weight = graph.tensor(graph.find_tensor("folded"));
  CHECK(weight.kind == TensorKind::kWeight);
  CHECK(weight.is_folded());
  CHECK(weight.consumers == std::vector<NodeId>{{0}});
  CHECK(graph.tensor(x).consumers.empty());
}

TEST_CASE("assembler: a folded node has no device") {
  GraphAssembler assembler("f.json", Json::object());
  add_relu(assembler, "folded", add_input(assembler), Json{{"folded", true}});
  assembler.graph().nodes()[0].device = "npu";
  Diagnostics diagnostics;
  assembler.finish(diagnostics);
  CHECK(errors_of(diagnostics) ==
        std::vector<std::string>{"/nodes/0/device: node 'folded' is folded, but has a device"});
}

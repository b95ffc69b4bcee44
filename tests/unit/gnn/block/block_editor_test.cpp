// SPDX-License-Identifier: Apache-2.0
// Edits of blocks: tensors that change for all readers or for one, nodes that come and go.
#include "gnn/block/block_editor.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// out = relu(x w + y), with y = exp(x w).
Graph block() {
  test::GraphBuilder builder;
  builder.input("x", {4, 3}).weight("w", {2, 3});
  builder.node("product", "aten.linear.default", {"x", "p_w"}, Shape{4, 2});
  builder.node("y", "aten.exp.default", {"product"});
  builder.node("sum", "aten.add.Tensor", {"product", "y"});
  builder.node("out", "aten.relu.default", {"sum"}).output("out");
  return builder.build();
}

const TensorInfo& tensor(const Graph& graph, const char* name) {
  return graph.tensor(graph.find_tensor(name));
}

}  // namespace

TEST_CASE("a tensor changes wherever it is mentioned", "[gnn][editor]") {
  Graph graph = block();
  BlockEditor editor(graph);
  const TensorId product = graph.find_tensor("product");
  editor.wire(product).name = "product@bf16";
  for (const char* name : {"x", "p_w", "product"}) {
    editor.wire(graph.find_tensor(name)).dtype = DType::kBFloat16;
  }
  const Wire wide{"product", {4, 2}};
  const NodeId reader = graph.find_node("y");
  editor.insert_before(
      reader,
      {"aten._to_copy.default", {editor.wire(product)}, wide, {{"dtype", "torch.float32"}}});
  editor.read(reader, 0, wide);
  editor.read(graph.find_node("sum"), 0, wide);
  editor.commit();
  CHECK(tensor(graph, "x").dtype == DType::kBFloat16);
  CHECK(tensor(graph, "p_w").dtype == DType::kBFloat16);
  CHECK(graph.document()["weights"][0]["dtype"] == "bfloat16");
  CHECK(tensor(graph, "product@bf16").dtype == DType::kBFloat16);
  CHECK(graph.find_node("product@bf16").valid());
  CHECK(tensor(graph, "product").dtype == DType::kFloat32);
  CHECK(tensor(graph, "product").consumers.size() == 2);
  CHECK(tensor(graph, "product@bf16").consumers.size() == 1);
}

TEST_CASE("inputs and outputs are added, changed and taken away", "[gnn][editor]") {
  Graph graph = block();
  BlockEditor editor(graph);
  editor.add_input({"rows", {4, 2}});
  editor.remove_input(graph.find_tensor("x"));
  editor.replace(
      graph.find_node("product"),
      {"aten.alias.default", {{"rows", {4, 2}}}, editor.wire(graph.find_tensor("product"))});
  editor.insert_before(id_at<NodeId>(graph.nodes().size()),
                       slice_node({"out", {4, 2}}, {"first", {1, 2}}, 0, 0, 1));
  editor.give(graph.find_tensor("out"), {"first", {1, 2}});
  editor.commit();
  REQUIRE(graph.graph_inputs().size() == 1);
  CHECK(graph.tensor(graph.graph_inputs()[0]).name == "rows");
  REQUIRE(graph.graph_outputs().size() == 1);
  CHECK(graph.tensor(graph.graph_outputs()[0]).name == "first");
  CHECK(graph.nodes().size() == 5);
}

TEST_CASE("a block without edits stays as it is", "[gnn][editor]") {
  Graph graph = block();
  const std::string before = write_graph(graph);
  BlockEditor(graph).commit();
  CHECK(write_graph(graph) == before);
}

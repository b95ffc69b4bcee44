// SPDX-License-Identifier: Apache-2.0
// Look-ups in a graph, and the accessors of its `npu` member.
#include "npu/ir/graph.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

Graph relu_and_softmax() {
  return graph_of(R"(
    input x [2,3] int16; weight w [3]
    a = relu(x)
    b = aten.softmax.int(a) {"dim": 1}; output b)");
}

}  // namespace

TEST_CASE("graph: tensors and nodes are found by their names") {
  const Graph graph = relu_and_softmax();
  CHECK(graph.tensor(graph.find_tensor("a")).name == "a");
  CHECK(graph.node(graph.find_node("b")).name == "b");
  CHECK_FALSE(graph.find_tensor("p_w").valid());  // nothing reads it
  CHECK_FALSE(graph.find_node("x").valid());
  CHECK_FALSE(Graph().find_tensor("a").valid());
}

TEST_CASE("graph: bytes of a tensor") {
  const Graph graph = relu_and_softmax();
  CHECK(graph.tensor(graph.find_tensor("x")).bytes() == 2 * 3 * 2);
  TensorInfo scalar;
  CHECK(scalar.bytes() == 4);
  scalar.shape = {5, 0};
  CHECK(scalar.bytes() == 0);
}

TEST_CASE("graph: attrs are an object, whatever the document says") {
  Node node;
  CHECK(node.attrs() == Json::object());
  node.json = {{"attrs", nullptr}};
  CHECK(node.attrs() == Json::object());
  node.json["attrs"] = {{"dim", 1}};
  CHECK(node.attrs() == Json{{"dim", 1}});
}

TEST_CASE("graph: members of npu") {
  Graph graph = relu_and_softmax();
  CHECK(graph.npu_member("target") == nullptr);
  graph.erase_npu_member("target");
  graph.set_npu_member("target", "t");
  CHECK(*graph.npu_member("target") == "t");
  CHECK(graph.document().at("npu") == Json{{"version", 1}, {"target", "t"}});
  graph.erase_npu_member("target");
  CHECK(graph.npu_member("target") == nullptr);
}

TEST_CASE("graph: a place counts folded nodes in front of it, and a result knows who made it") {
  Json document = GraphBuilder()
                      .lines(R"(
    input x
    g = arange() {"end": 4} folded=true
    y = aten.add.Tensor(x, g); output y)")
                      .document();
  const Graph graph = valid_graph(std::move(document), "f.json");
  const InputLocation place = graph.location(NodeId{0}, "/device");
  CHECK(place.file == "f.json");
  CHECK(place.pointer == "/nodes/1/device");
  CHECK(graph.producer_name(graph.tensor(graph.find_tensor("g"))) == "g");
  CHECK(graph.producer_name(graph.tensor(graph.find_tensor("y"))) == "y");
}

// SPDX-License-Identifier: Apache-2.0
// Documents that a program makes up, and the text form that tests write them in.
#include "ir/document_builder.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"

using namespace npu;
using npu::test::GraphBuilder;

TEST_CASE("builder: nothing is the document of the empty graph") {
  const DocumentBuilder builder("nothing");
  CHECK(builder.document().dump() ==
        R"({"model_name":"nothing","graph_inputs":[],"graph_outputs":[],"weights":[],)"
        R"("weight_name_mapping":{},"nodes":[]})");
  CHECK(builder.build("f").nodes().empty());
}

TEST_CASE("builder: mentions state what was said of a tensor") {
  DocumentBuilder builder("m");
  builder.add_input({"x", {2, 3}, DType::kFloat16});
  builder.add_weight({"w", {3}});
  builder.add_weight({"layer.bias", {2}}, "p_bias");
  builder.add_node("s", "my.op", {"x", "w", "p_bias"}, {{"s", {2}}, {"t", {}, DType::kInt64}},
                   {{"k", 1}});
  builder.set("device", "npu");
  builder.add_output("t");
  CHECK(builder.find("p_bias")->shape == Shape{2});
  CHECK(builder.find("layer.bias") == nullptr);
  const Graph graph = builder.build("f");
  CHECK(graph.file == "f");
  const Node& node = graph.nodes().front();
  CHECK(node.device == "npu");
  CHECK(node.attrs() == Json{{"k", 1}});
  CHECK(graph.tensor(node.inputs[0]).dtype == DType::kFloat16);
  CHECK(graph.tensor(node.inputs[1]).weight_key == "w");
  CHECK(graph.tensor(node.inputs[2]).weight_key == "layer.bias");
  CHECK(graph.tensor(node.outputs[1]).result == 1);
  CHECK(graph.tensor(graph.graph_outputs().front()).dtype == DType::kInt64);
}

TEST_CASE("builder: what was built in memory is written as what was read") {
  DocumentBuilder builder("m");
  builder.add_input({"x", {4}});
  builder.add_node("y", "aten.softmax.int", {"x"}, {{"y", {4}}}, {{"dim", 0}, {"scale", 0.5}});
  builder.add_output("y");
  CHECK(write_graph(builder.build("f")) ==
        write_graph(read_valid_graph(builder.document().dump(), "f")));
}

TEST_CASE("builder: a fault is thrown") {
  DocumentBuilder builder("m");
  builder.add_input({"x", {4}});
  builder.add_input({"x", {4}});
  CHECK_THROWS_WITH(builder.build("f"), Catch::Contains("graph input 'x' is listed twice"));
}

TEST_CASE("lines: each says what a call says") {
  CHECK(GraphBuilder().lines("").text() == GraphBuilder().text());
  const std::string called =
      GraphBuilder("m_1")
          .input("x")
          .input("y", {1, 8, 4, 4}, "float16")
          .input("z", {1, 8, 4, 4}, "float16")
          .weight("w", {8, 8, 3, 3}, "float16")
          .node("c", "aten.conv2d.default", {"y", "p_w"}, {1, 8, 2, 2}, {{"padding", {1, 1}}},
                "float16")
          .on("npu")
          .key("partition", 0)
          .key("note", {"a; b", "c=d"})
          .node("r", "aten.relu.default", {"c"})
          .node("e", "aten.eq.Tensor", {"r", "c"}, {1, 8, 2, 2}, Json::object(), "bool")
          .node_with_typed_results("s", "custom", {"x"}, {{2}, {}}, {"float32", "int64"},
                                   {{"at", {{{"deep", "]}"}}}}})
          .node("g", "<built-in function getitem>", {"s_0", "s_1"}, Shape{2}, {{"index", 0}})
          .node("a", "aten.arange.start", {}, Shape{4}, {{"start", -1.5}}, "int64")
          .output("g")
          .output("a")
          .text();
  CHECK(GraphBuilder()
            .lines(R"(
    # A comment; it says nothing.
    model m_1; input x; input y, z [1,8,4,4] float16
    weight w [8,8,3,3] float16
    c = conv2d(y, p_w) [1,8,2,2] {"padding": [1, 1]} @npu partition=0 note=["a; b", "c=d"]
    r = relu(c);   e = aten.eq.Tensor(r, c) bool
    s = "custom"(x) [2] [] int64 {"at": [{"deep": "]}"}]}
    g = getitem(s_0, s_1) {"index": 0}
    a = aten.arange.start() int64 {"start": -1.5}; output g, a)")
            .text() == called);
}

TEST_CASE("lines: a slip is told with its place") {
  const auto fault = [](const char* text) {
    try {
      GraphBuilder().lines(text);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("input x [4] float31") ==
        "'input x [4] float31' is not understood from 'float31' on");
  CHECK(fault("relu(x)") == "'relu(x)' is not understood from '' on");
  CHECK(fault("y = relu x") == "'y = relu x' is not understood from '' on");
  CHECK(fault("y = relu(x) @npu 3") == "'y = relu(x) @npu 3' is not understood from '' on");
}

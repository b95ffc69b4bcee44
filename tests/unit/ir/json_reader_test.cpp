// SPDX-License-Identifier: Apache-2.0
// The graphs that the reader makes of real files, and its messages for faulty ones.
#include "npu/ir/json_reader.hpp"

#include <algorithm>
#include <functional>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/file_io.hpp"
#include "ops/op_catalogue.hpp"

using namespace npu;
using npu::test::document_faults;
using npu::test::faults_of;
using npu::test::graph_of;
using npu::test::GraphBuilder;
using Lines = std::vector<std::string>;

namespace {

std::vector<std::string> names_of(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(graph.tensor(id).name);
  return names;
}

const TensorInfo& tensor_named(const Graph& graph, std::string_view name) {
  const TensorId id = graph.find_tensor(name);
  REQUIRE(id.valid());
  return graph.tensor(id);
}

BoundNode bound(const Graph& graph, std::size_t node) {
  const OpInfo* op = find_op(graph.nodes()[node].op_type);
  REQUIRE(op != nullptr);
  return BoundNode(graph, graph.nodes()[node], op->schema);
}

// x[2] -> a -> b -> output, a weight w that b reads, and one of everything that faults can be put
// into.
Json two_nodes() {
  return Json::parse(R"({
    "model_name": "two",
    "graph_inputs": [{"name": "x", "shape": [2], "dtype": "float32"}],
    "graph_outputs": [{"name": "b", "shape": [2], "dtype": "float32", "producer_node": "b", "producer_output_idx": 0}],
    "weights": [{"name": "w", "shape": [2], "dtype": "float32"}],
    "weight_name_mapping": {"p_w": "w"},
    "nodes": [
      {"name": "a", "op_type": "aten.relu.default",
       "inputs": [{"name": "x", "shape": [2], "dtype": "float32", "producer_node": "x", "producer_output_idx": 0}],
       "outputs": [{"name": "a", "shape": [2], "dtype": "float32", "producer_node": "a", "producer_output_idx": 0}],
       "attrs": {}},
      {"name": "b", "op_type": "aten.add.Tensor",
       "inputs": [{"name": "a", "shape": [2], "dtype": "float32", "producer_node": "a", "producer_output_idx": 0},
                  {"name": "p_w", "shape": [2], "dtype": "float32"}],
       "outputs": [{"name": "b", "shape": [2], "dtype": "float32"}],
       "attrs": {}}]})");
}

// The faults of two_nodes() after one change of the value at a JSON Pointer.
Lines faults_with(const std::string& pointer, const Json& value) {
  Json document = two_nodes();
  document[Json::json_pointer(pointer)] = value;
  return document_faults(document);
}

Lines faults_without(const std::string& parent, const std::string& key) {
  Json document = two_nodes();
  document[Json::json_pointer(parent)].erase(key);
  return document_faults(document);
}

constexpr const char* kDTypes =
    "float32, float64, float16, bfloat16, int8, uint8, int16, int32, int64, bool, complex64, "
    "complex128";

}  // namespace

TEST_CASE("the empty graph is a valid document") {
  const Graph graph = GraphBuilder("nothing").build();
  CHECK(graph.model_name() == "nothing");
  CHECK(graph.nodes().empty());
  CHECK(graph.tensors().empty());
  CHECK(graph.graph_inputs().empty());
  CHECK(graph.graph_outputs().empty());
  CHECK_FALSE(graph.find_node("x").valid());
  CHECK_FALSE(graph.find_tensor("x").valid());
}

TEST_CASE("a document needs no more than inputs, outputs and nodes") {
  CHECK(faults_of(R"({"graph_inputs": [], "graph_outputs": [], "nodes": []})").empty());
  CHECK(faults_of("{}") == Lines{": the key 'graph_inputs' is missing",
                                 ": the key 'nodes' is missing",
                                 ": the key 'graph_outputs' is missing"});
}

TEST_CASE("one node gives its tensors, producer and consumers") {
  const Graph graph = graph_of(R"(
    input x [2,3] bfloat16
    y = relu(x); output y)");
  REQUIRE(graph.nodes().size() == 1);
  const Node& node = graph.nodes()[0];
  CHECK(node.name == "y");
  CHECK(node.op_type == "aten.relu.default");
  CHECK(names_of(graph, node.inputs) == Lines{"x"});
  CHECK(names_of(graph, node.outputs) == Lines{"y"});
  CHECK_FALSE(node.device.has_value());
  CHECK_FALSE(node.device_reason.has_value());
  CHECK_FALSE(node.partition.has_value());
  CHECK_FALSE(node.fusion_group.has_value());
  CHECK(graph.find_node("y").value == 0);

  const TensorInfo& x = tensor_named(graph, "x");
  CHECK(x.kind == TensorKind::kGraphInput);
  CHECK_FALSE(x.producer.valid());
  CHECK(x.consumers == std::vector<NodeId>{{0}});
  CHECK(x.shape == Shape{2, 3});
  CHECK(x.dtype == DType::kBFloat16);
  CHECK(x.bytes() == 12);  // 2 * 3 elements of 2 bytes
  const TensorInfo& y = tensor_named(graph, "y");
  CHECK(y.kind == TensorKind::kResult);
  CHECK(y.producer.value == 0);
  CHECK(y.result == 0);
  CHECK(y.consumers.empty());
  CHECK(y.shape == Shape{2, 3});
  CHECK(y.dtype == DType::kBFloat16);
  CHECK(names_of(graph, graph.graph_outputs()) == Lines{"y"});
}

TEST_CASE("a node that reads a tensor twice is one consumer with two operands") {
  const Graph graph =
      GraphBuilder().input("x").node("y", "aten.mul.Tensor", {"x", "x"}).output("y").build();
  CHECK(graph.nodes()[0].inputs.size() == 2);
  CHECK(tensor_named(graph, "x").consumers == std::vector<NodeId>{{0}});
}

// ---- the eleven facts of real files ----

TEST_CASE("fact 1: a node input that is a graph input names itself as its producer") {
  const Graph graph = read_valid_graph(two_nodes().dump(), "f");
  const TensorInfo& x = graph.tensor(graph.nodes()[0].inputs[0]);
  CHECK(x.kind == TensorKind::kGraphInput);
  CHECK_FALSE(x.producer.valid());
  // Another producer than itself is a fault.
  CHECK(faults_with("/nodes/0/inputs/0/producer_node", "b") ==
        Lines{"/nodes/0/inputs/0/producer_node: tensor 'x' is a graph input, but names the "
              "producer 'b'"});
}

TEST_CASE("fact 2: weights are read under their placeholder names") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [], "graph_outputs": [{"name": "cat"}],
    "weights": [{"name": "layer.weight", "shape": [2], "dtype": "float32"},
                {"name": "b_by_placeholder", "shape": [2], "dtype": "float32"},
                {"name": "unmapped", "shape": [2], "dtype": "float32"},
                {"name": "lifted", "shape": [2], "dtype": "float32"}],
    "weight_name_mapping": {"p_layer_weight": "layer.weight", "b_by_placeholder": "layer.buffer", "c_lifted": "lifted"},
    "nodes": [{"name": "cat", "op_type": "aten.cat.default",
      "inputs": [{"name": "p_layer_weight", "shape": [2], "dtype": "float32"},
                 {"name": "b_by_placeholder", "shape": [2], "dtype": "float32"},
                 {"name": "unmapped", "shape": [2], "dtype": "float32"},
                 {"name": "c_lifted", "shape": [2], "dtype": "float32"}],
      "outputs": [{"shape": [8], "dtype": "float32"}]}],
    "constants": {"c_lifted": {"data": [1.5, 2.5], "dtype": "float32"}}})",
                                       "f");
  REQUIRE(graph.nodes()[0].inputs.size() == 4);
  struct Expected {
    const char* name;
    const char* key;
    bool constant;
  };
  const std::vector<Expected> expected{{"p_layer_weight", "layer.weight", false},
                                       {"b_by_placeholder", "layer.buffer", false},
                                       {"unmapped", "unmapped", false},
                                       {"c_lifted", "lifted", true}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.nodes()[0].inputs[i]);
    CAPTURE(tensor.name);
    CHECK(tensor.name == expected[i].name);
    CHECK(tensor.weight_key == expected[i].key);
    CHECK(tensor.is_constant == expected[i].constant);
    CHECK(tensor.kind == TensorKind::kWeight);
    CHECK_FALSE(tensor.producer.valid());
  }
}

TEST_CASE("fact 2: one weight under two placeholders is two tensors with one key") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [], "graph_outputs": [{"name": "add"}],
    "weights": [{"name": "shared", "shape": [2], "dtype": "float32"}],
    "weight_name_mapping": {"p_one": "shared", "p_two": "shared"},
    "nodes": [{"name": "add", "op_type": "aten.add.Tensor",
               "inputs": [{"name": "p_one"}, {"name": "p_two"}],
               "outputs": [{"shape": [2], "dtype": "float32"}]}]})",
                                       "f");
  CHECK(tensor_named(graph, "p_one").weight_key == "shared");
  CHECK(tensor_named(graph, "p_two").weight_key == "shared");
  CHECK(tensor_named(graph, "p_two").shape == Shape{2});  // from weights[]
}

TEST_CASE("fact 2: constants hold a number, a flat or a nested list") {
  const auto document = [](const std::string& shape, const std::string& data) {
    return R"({"graph_inputs": [], "graph_outputs": [], "weights": [], "nodes": [
      {"name": "n", "op_type": "aten.relu.default", "inputs": [{"name": "c", "shape": )" +
           shape + R"(, "dtype": "int64"}], "outputs": [{"shape": [], "dtype": "int64"}]}],
      "constants": {"c": {"data": )" +
           data + R"(, "dtype": "torch.int64"}}})";
  };
  CHECK(faults_of(document("[]", "7")).empty());
  CHECK(faults_of(document("[1]", "7")).empty());
  CHECK(faults_of(document("[2, 2]", "[1, 2, 3, 4]")).empty());
  CHECK(faults_of(document("[2, 2]", "[[1, 2], [3, 4]]")).empty());
  CHECK(faults_of(document("[0]", "[]")).empty());
  CHECK(faults_of(document("[2]", "[true, \"inf\"]")).empty());
  CHECK(faults_of(document("[2, 2]", "[1, 2, 3]")) ==
        Lines{"/constants/c/data: constant 'c' has 3 values, its shape [2, 2] needs 4"});
  CHECK(faults_of(document("[]", "\"seven\"")) ==
        Lines{"/constants/c/data: expected numbers or booleans, or lists of them"});
  CHECK(faults_of(document("[1]", "[null]")) ==
        Lines{"/constants/c/data: expected numbers or booleans, or lists of them"});
}

TEST_CASE("fact 3: results without name and producer get the node's name") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [{"name": "x", "shape": [4, 2], "dtype": "float32"}],
    "graph_outputs": [{"name": "one"}, {"name": "pair_1"}],
    "nodes": [
      {"name": "one", "op_type": "aten.relu.default", "inputs": [{"name": "x"}],
       "outputs": [{"shape": [4, 2], "dtype": "float32"}]},
      {"name": "pair", "op_type": "aten.max.dim", "inputs": [{"name": "x"}],
       "outputs": [{"shape": [4], "dtype": "float32"}, {"shape": [4], "dtype": "int64"}], "attrs": {"dim": 1}}]})",
                                       "f");
  CHECK(names_of(graph, graph.nodes()[0].outputs) == Lines{"one"});
  CHECK(names_of(graph, graph.nodes()[1].outputs) == Lines{"pair_0", "pair_1"});
  CHECK(tensor_named(graph, "pair_1").result == 1);
  CHECK(tensor_named(graph, "pair_1").producer.value == 1);
  // Names, shapes and dtypes of graph outputs come from the results.
  CHECK(names_of(graph, graph.graph_outputs()) == Lines{"one", "pair_1"});
  CHECK(graph.tensor(graph.graph_outputs()[1]).dtype == DType::kInt64);
}

TEST_CASE("fact 4: a getitem lists every result of its producer and an index") {
  const auto document = [](const std::string& attrs) {
    return R"({"graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}],
      "graph_outputs": [{"name": "getitem"}], "nodes": [
      {"name": "split", "op_type": "aten.split.Tensor", "inputs": [{"name": "x"}],
       "outputs": [{"shape": [2], "dtype": "float32"}, {"shape": [2], "dtype": "float32"}],
       "attrs": {"split_size": 2}},
      {"name": "getitem", "op_type": "<built-in function getitem>",
       "inputs": [{"name": "split_0", "producer_node": "split", "producer_output_idx": 0},
                  {"name": "split_1", "producer_node": "split", "producer_output_idx": 1}],
       "outputs": [{"shape": [2], "dtype": "float32"}], "attrs": )" +
           attrs + "}]}";
  };
  const Graph graph = read_valid_graph(document(R"({"index": 1})"), "f");
  CHECK(names_of(graph, graph.nodes()[1].inputs) == Lines{"split_0", "split_1"});
  CHECK(tensor_named(graph, "split_0").consumers == std::vector<NodeId>{{1}});
  for (const char* index : {"0", "1", "-1", "-2"}) {
    CHECK(faults_of(document("{\"index\": " + std::string(index) + "}")).empty());
  }
  for (const std::string index : {"2", "-3", "18446744073709551615"}) {
    CHECK(faults_of(document("{\"index\": " + index + "}")) ==
          Lines{"/nodes/1/attrs/index: node 'getitem' selects item " + index + " of 2"});
  }
  for (const char* attrs : {"{}", "{\"index\": \"1\"}", "{\"index\": 1.0}", "null"}) {
    CHECK(faults_of(document(attrs)) ==
          Lines{"/nodes/1/attrs: node 'getitem' needs the integer attribute 'index'"});
  }
}

TEST_CASE("fact 5: what attrs leave out has the schema's default") {
  const Graph graph = graph_of(R"(
    input x [1,2,8,8]; weight w [4,2,3,3]
    y = conv2d(x, p_w) [1,4,4,4] {"stride": [2, 2], "padding": [1, 1]}; output y)");
  const BoundNode conv = bound(graph, 0);
  CHECK(conv.integers("stride") == std::vector<std::int64_t>{2, 2});
  CHECK(conv.integers("dilation") == std::vector<std::int64_t>{1, 1});
  CHECK(conv.integer("groups") == 1);
  CHECK(conv.is_none("bias"));
  CHECK(graph.nodes()[0].attrs().size() == 2);  // the document stays as it was
}

TEST_CASE("fact 6: a scalar operand stands in attrs and not among the inputs") {
  const Graph graph = graph_of(R"(
    input x
    y = aten.add.Tensor(x) {"other": 2.5}; output y)");
  CHECK(graph.nodes()[0].inputs.size() == 1);
  CHECK(bound(graph, 0).number("other") == 2.5);
}

TEST_CASE("fact 7: tensor lists are flattened and regrouped by their sizes and masks") {
  const Graph graph = graph_of(R"(
    input x, y; input i [2] int64
    cat = cat(x, y) [8] {"_tensor_list_sizes": [2]}
    index = aten.index.Tensor(x, i) [2] {"_tensor_list_none_masks": [[false]]}
    output cat, index)");
  CHECK(bound(graph, 0).tensors("tensors") == std::vector<TensorId>{{0}, {1}});
  CHECK(names_of(graph, graph.nodes()[1].inputs) == Lines{"x", "i"});
  CHECK(graph.nodes()[1].attrs().at("_tensor_list_none_masks") == Json::parse("[[false]]"));
}

TEST_CASE("fact 8: dtypes, devices and memory formats are strings") {
  const Graph graph = GraphBuilder()
                          .input("x")
                          .node("y", "aten._to_copy.default", {"x"}, Shape{4},
                                {{"dtype", "torch.float64"},
                                 {"device", "meta"},
                                 {"memory_format", "torch.contiguous_format"}},
                                "torch.float64")
                          .output("y")
                          .build();
  CHECK(tensor_named(graph, "y").dtype == DType::kFloat64);
  CHECK(bound(graph, 0).dtype("dtype") == DType::kFloat64);
  CHECK(bound(graph, 0).string("device") == "meta");
}

TEST_CASE("fact 9: an in-place op has a new value and leaves its operand to other readers") {
  const Graph graph = graph_of(R"(
    input x
    a = neg(x)
    relu_ = relu_(a)
    sum = aten.add.Tensor(a, relu_); output sum)");
  CHECK(tensor_named(graph, "a").consumers == std::vector<NodeId>{{1}, {2}});
  CHECK(tensor_named(graph, "relu_").producer.value == 1);
  CHECK(names_of(graph, graph.nodes()[2].inputs) == Lines{"a", "relu_"});
}

TEST_CASE("fact 10: batch norm without affine weights has mean and variance in their place") {
  const Graph graph = graph_of(R"(
    input x [1,3,2,2]; weight mean, var [3]
    y = batch_norm(x, p_mean, p_var) {"training": false, "momentum": 0.1, "eps": 1e-05,
        "cudnn_enabled": true}; output y)");
  const BoundNode norm = bound(graph, 0);
  CHECK(norm.is_none("weight"));
  CHECK(norm.is_none("bias"));
  CHECK(norm.tensor("running_mean") == graph.find_tensor("p_mean"));
  CHECK(norm.tensor("running_var") == graph.find_tensor("p_var"));
}

TEST_CASE("fact 11: a shape or dtype that one mention lacks comes from another") {
  Json document = two_nodes();
  document["nodes"][0]["inputs"][0].erase("dtype");
  document["nodes"][0]["inputs"][0]["shape"] = nullptr;
  document["nodes"][0]["outputs"][0].erase("dtype");
  document["nodes"][0]["outputs"][0].erase("shape");      // the reader of 'a' has both
  document["nodes"][1]["inputs"][1].erase("dtype");       // weights[] has it
  document["nodes"][1]["outputs"][0]["dtype"] = nullptr;  // graph_outputs has it
  const Graph graph = read_valid_graph(document.dump(), "f");
  for (const char* name : {"x", "a", "p_w", "b"}) {
    CAPTURE(name);
    CHECK(tensor_named(graph, name).shape == Shape{2});
    CHECK(tensor_named(graph, name).dtype == DType::kFloat32);
  }
  document["nodes"][1]["inputs"][0].erase("dtype");
  document["nodes"][1]["inputs"][0].erase("shape");
  CHECK(document_faults(document) ==
        Lines{"/nodes/0/outputs/0: no mention of tensor 'a' gives its shape",
              "/nodes/0/outputs/0: no mention of tensor 'a' gives its dtype"});
}

// ---- graph outputs ----

TEST_CASE("a graph output may be a graph input, a weight or a constant, and repeat") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [{"name": "x", "shape": [2], "dtype": "float32"}],
    "graph_outputs": [{"name": "x"}, {"name": "p_w"}, {"name": "x"}, {"name": "c", "shape": [2]}],
    "weights": [{"name": "w", "shape": [3], "dtype": "float64"}, {"name": "unread", "shape": [1], "dtype": "int8"}],
    "weight_name_mapping": {"p_w": "w"}, "nodes": [],
    "constants": {"c": {"data": [1, 2], "dtype": "int32"}}})",
                                       "f");
  CHECK(names_of(graph, graph.graph_outputs()) == Lines{"x", "p_w", "x", "c"});
  CHECK(tensor_named(graph, "x").kind == TensorKind::kGraphInput);
  CHECK(tensor_named(graph, "p_w").kind == TensorKind::kWeight);
  CHECK(tensor_named(graph, "p_w").shape == Shape{3});
  CHECK(tensor_named(graph, "p_w").dtype == DType::kFloat64);
  CHECK(tensor_named(graph, "c").is_constant);
  CHECK(tensor_named(graph, "c").dtype == DType::kInt32);
  CHECK_FALSE(graph.find_tensor("unread").valid());  // nothing reads it, so it needs no data
}

TEST_CASE("the same result may be several graph outputs") {
  const Graph graph = graph_of(R"(
    input x
    y = relu(x); output y, y)");
  CHECK(names_of(graph, graph.graph_outputs()) == Lines{"y", "y"});
}

TEST_CASE("a constant without a shape anywhere is a fault, one with data alone is not enough") {
  const Lines faults =
      faults_of(R"({"graph_inputs": [], "graph_outputs": [{"name": "c"}], "nodes": [],
    "constants": {"c": {"data": [1, 2], "dtype": "int32"}}})");
  CHECK(faults == Lines{"/graph_outputs/0: no mention of tensor 'c' gives its shape"});
}

// ---- every fault, one at a time ----

TEST_CASE("the document that faults are put into has none") {
  CHECK(document_faults(two_nodes()).empty());
}

TEST_CASE("a document that is no object is refused") {
  CHECK(faults_of("[]") == Lines{": expected an object at the top level, found array"});
  CHECK(faults_of("null") == Lines{": expected an object at the top level, found null"});
  CHECK(faults_of("3") == Lines{": expected an object at the top level, found integer"});
  CHECK_THROWS_AS(faults_of(""), Error);
  CHECK_THROWS_AS(faults_of("{"), Error);
}

TEST_CASE("top-level members of the wrong type are faults") {
  CHECK(faults_with("/model_name", 5) == Lines{"/model_name: expected a string, found integer"});
  CHECK(faults_with("/graph_inputs", 5).front() ==
        "/graph_inputs: expected an array, found integer");
  CHECK(faults_with("/graph_outputs", nullptr) ==
        Lines{"/graph_outputs: expected an array, found null"});
  CHECK(faults_with("/nodes", Json::object()).front() == "/nodes: expected an array, found object");
  CHECK(faults_with("/weights", "w").front() == "/weights: expected an array, found string");
  CHECK(faults_with("/weight_name_mapping", Json::array()).front() ==
        "/weight_name_mapping: expected an object, found array");
  CHECK(faults_with("/weight_name_mapping/p~1w", 3) ==
        Lines{"/weight_name_mapping/p~1w: expected a string, found integer"});
  CHECK(faults_with("/constants", Json::array()) ==
        Lines{"/constants: expected an object, found array"});
}

TEST_CASE("the npu member is checked before anything else") {
  CHECK(faults_with("/npu", 1) == Lines{"/npu: expected an object, found integer"});
  CHECK(faults_with("/npu", Json{{"version", 2}}) ==
        Lines{"/npu/version: version 2 is unknown, this program reads 1"});
  CHECK(faults_with("/npu", Json{{"version", 0}}) ==
        Lines{"/npu/version: version 0 is unknown, this program reads 1"});
  CHECK(faults_with("/npu", Json{{"version", -1}}) ==
        Lines{"/npu/version: version -1 is unknown, this program reads 1"});
  CHECK(faults_with("/npu", Json{{"version", UINT64_MAX}}) ==
        Lines{"/npu/version: version 18446744073709551615 is unknown, this program reads 1"});
  CHECK(faults_with("/npu", Json{{"version", "1"}}) ==
        Lines{"/npu/version: expected an integer, found string"});
  CHECK(faults_with("/npu", Json{{"kind", "staged"}}) ==
        Lines{"/npu/kind: expected a model, found a document of kind 'staged'"});
  CHECK(faults_with("/npu", Json{{"kind", 1}}) ==
        Lines{"/npu/kind: expected a model, found integer"});
  CHECK(faults_with("/npu", Json{{"version", 1}, {"kind", "model"}, {"future", {1, 2}}}).empty());
  CHECK(faults_with("/npu", Json::object()).empty());
  CHECK(faults_with("/npu", Json{{"target", 1},
                                 {"partition", "p"},
                                 {"fusion", Json::array()},
                                 {"weights_file", 4}}) ==
        Lines{"/npu/target: expected an object, found integer",
              "/npu/partition: expected an object, found string",
              "/npu/fusion: expected an object, found array",
              "/npu/weights_file: expected a string, found integer"});
}

TEST_CASE("duplicate names are faults") {
  Json twice = two_nodes();
  twice["nodes"][1]["name"] = "a";
  twice["graph_outputs"][0].erase("producer_node");
  CHECK(document_faults(twice) == Lines{"/nodes/1/name: node 'a' stands at /nodes/0 already"});
  Json document = two_nodes();
  document["nodes"][1]["outputs"][0]["name"] = "a";
  document["graph_outputs"] = Json::array();
  CHECK(document_faults(document) ==
        Lines{"/nodes/1/outputs/0/name: tensor 'a' is produced by node 'a' already"});
  document["nodes"][1]["outputs"][0]["name"] = "x";
  CHECK(document_faults(document) ==
        Lines{"/nodes/1/outputs/0/name: tensor 'x' is a graph input already"});
  document["nodes"][1]["outputs"][0]["name"] = "p_w";
  CHECK(document_faults(document) ==
        Lines{"/nodes/1/outputs/0/name: tensor 'p_w' is a weight in weight_name_mapping already"});

  document = two_nodes();
  document["graph_inputs"].push_back(document["graph_inputs"][0]);
  CHECK(document_faults(document) ==
        Lines{"/graph_inputs/1/name: graph input 'x' is listed twice"});
  document = two_nodes();
  document["graph_inputs"].push_back({{"name", "p_w"}, {"shape", {2}}, {"dtype", "float32"}});
  CHECK(
      document_faults(document) ==
      Lines{"/graph_inputs/1/name: graph input 'p_w' is a weight in weight_name_mapping already"});
  document = two_nodes();
  document["weights"].push_back(document["weights"][0]);
  CHECK(document_faults(document) ==
        Lines{"/weights/1/name: weight 'w' stands at /weights/0 already"});
}

TEST_CASE("a tensor that nothing produces is a fault") {
  Json document = two_nodes();
  document["nodes"][1]["inputs"][0] = {{"name", "t9"}, {"shape", {2}}, {"dtype", "float32"}};
  CHECK(document_faults(document) ==
        Lines{"/nodes/1/inputs/0: node 'b' reads tensor 't9', which nothing produces"});
  document = two_nodes();
  document["graph_outputs"][0] = {{"name", "t9"}, {"shape", {2}}, {"dtype", "float32"}};
  CHECK(document_faults(document) ==
        Lines{"/graph_outputs/0: nothing produces the graph output 't9'"});
  // A mapping alone does not make a weight.
  document = two_nodes();
  document["weights"] = Json::array();
  CHECK(document_faults(document) ==
        Lines{"/nodes/1/inputs/1: node 'b' reads tensor 'p_w', which nothing produces"});
}

TEST_CASE("a cycle is named in full") {
  Json document = two_nodes();
  document["nodes"][0]["inputs"][0] = document["graph_outputs"][0];
  CHECK(document_faults(document) == Lines{"/nodes/0: the graph has a cycle: 'a' -> 'b' -> 'a'"});
  document = two_nodes();
  document["nodes"][1]["inputs"][0] = document["graph_outputs"][0];
  CHECK(document_faults(document) == Lines{"/nodes/1: the graph has a cycle: 'b' -> 'b'"});
}

TEST_CASE("an order that is not topological is a fault at every operand that comes too early") {
  Json document = two_nodes();
  std::swap(document["nodes"][0], document["nodes"][1]);
  CHECK(document_faults(document) ==
        Lines{"/nodes/0/inputs/0: node 'b' reads tensor 'a' before node 'a' "
              "produces it; nodes must stand in topological order"});
}

TEST_CASE("shapes that disagree between mentions are faults, with both places") {
  CHECK(faults_with("/nodes/0/inputs/0/shape", {3}) ==
        Lines{"/nodes/0/inputs/0/shape: tensor 'x' has shape [3] here and [2] at /graph_inputs/0"});
  CHECK(faults_with("/nodes/1/inputs/0/shape", {2, 1}) ==
        Lines{"/nodes/1/inputs/0/shape: tensor 'a' has shape [2, 1] here and [2] at "
              "/nodes/0/outputs/0"});
  CHECK(
      faults_with("/graph_outputs/0/shape", Json::array()) ==
      Lines{"/graph_outputs/0/shape: tensor 'b' has shape [] here and [2] at /nodes/1/outputs/0"});
  const Lines weight = faults_with("/weights/0/shape", {1});
  REQUIRE(weight.size() == 1);
  CHECK(weight[0].starts_with(
      "/weights/0/shape: tensor 'p_w' has shape [1] here and [2] at /nodes/1/inputs/1"));
}

TEST_CASE("dtypes that disagree between mentions are faults, with both places") {
  CHECK(faults_with("/nodes/0/inputs/0/dtype", "float16") ==
        Lines{"/nodes/0/inputs/0/dtype: tensor 'x' has dtype float16 here and float32 at "
              "/graph_inputs/0"});
  CHECK(faults_with("/graph_outputs/0/dtype", "bool") ==
        Lines{"/graph_outputs/0/dtype: tensor 'b' has dtype bool here and float32 at "
              "/nodes/1/outputs/0"});
  const Lines weight = faults_with("/weights/0/dtype", "int8");
  REQUIRE(weight.size() == 1);
  CHECK(
      weight[0].starts_with("/weights/0/dtype: tensor 'p_w' has dtype int8 here and float32 at "));
  // "torch." in front is the same dtype.
  CHECK(faults_with("/graph_outputs/0/dtype", "torch.float32").empty());
}

TEST_CASE("a constant that disagrees with its mentions is a fault") {
  Json document = two_nodes();
  document["constants"] = {{"p_w", {{"data", {1, 2}}, {"dtype", "float32"}}}};
  CHECK(document_faults(document).empty());
  document["constants"]["p_w"]["dtype"] = "int64";
  CHECK(document_faults(document) == Lines{"/constants/p_w/dtype: constant 'p_w' has dtype int64 "
                                           "here and float32 at /nodes/1/inputs/1"});
  document["constants"]["p_w"] = {{"data", {1, 2}}, {"dtype", "floaty"}};
  CHECK(document_faults(document) ==
        Lines{"/constants/p_w/dtype: unknown dtype \"floaty\", expected one of " +
              std::string(kDTypes)});
  document["constants"]["p_w"] = {{"dtype", "float32"}};
  CHECK(document_faults(document) ==
        Lines{"/constants/p_w: expected an object with data and dtype"});
  document["constants"]["p_w"] = 5;
  CHECK(document_faults(document) ==
        Lines{"/constants/p_w: expected an object with data and dtype"});
}

TEST_CASE("bad dimensions are faults") {
  const auto with = [](const Json& dimension) {
    return faults_with("/graph_inputs/0/shape/0", dimension);
  };
  CHECK(with("batch").front() ==
        "/graph_inputs/0/shape/0: tensor 'x' has the symbolic dimension 'batch', "
        "which npu.symbols does not have; see npu-ir(5)");
  CHECK(with(-1).front() == "/graph_inputs/0/shape/0: tensor 'x' has the negative dimension -1");
  CHECK(with(2.0).front() == "/graph_inputs/0/shape/0: expected an integer, found float");
  CHECK(with(nullptr).front() == "/graph_inputs/0/shape/0: expected an integer, found null");
  CHECK(with(true).front() == "/graph_inputs/0/shape/0: expected an integer, found boolean");
  CHECK(with(UINT64_MAX).front() ==
        "/graph_inputs/0/shape/0: dimension of tensor 'x' is too large");
  CHECK(faults_with("/graph_inputs/0/shape", "[2]").front() ==
        "/graph_inputs/0/shape: expected an array of integers, found string");
  // 2^32 * 2^32 elements do not fit in 63 bits; 2^60 elements of 16 bytes neither.
  CHECK(faults_with("/graph_inputs/0/shape", {4294967296, 4294967296}).front() ==
        "/graph_inputs/0/shape: tensor 'x' of shape [4294967296, 4294967296] is too large");
  CHECK(faults_with("/graph_inputs/0/shape", {std::int64_t{1} << 60}).front() ==
        "/graph_inputs/0/shape: tensor 'x' of shape [1152921504606846976] is too large");
}

TEST_CASE("each bad dimension gives exactly one diagnostic where nothing else depends on it") {
  const auto output_with = [](const Json& shape) {
    Json document = two_nodes();
    document["nodes"][1]["inputs"][1]["shape"] = shape;
    return document_faults(document);
  };
  CHECK(output_with({-5}) ==
        Lines{"/nodes/1/inputs/1/shape/0: node 'b': tensor 'p_w' has the negative dimension -5"});
  CHECK(output_with({"n"}) ==
        Lines{"/nodes/1/inputs/1/shape/0: node 'b': tensor 'p_w' has the symbolic dimension 'n', "
              "which npu.symbols does not have; see npu-ir(5)"});
  CHECK(output_with({-5, "n", 1.5}).size() == 3);
}

TEST_CASE("an unknown dtype is a fault and lists the known ones") {
  CHECK(faults_with("/nodes/1/inputs/1/dtype", "float8") ==
        Lines{"/nodes/1/inputs/1/dtype: unknown dtype \"float8\", expected one of " +
              std::string(kDTypes)});
  CHECK(
      faults_with("/nodes/1/inputs/1/dtype", 32) ==
      Lines{"/nodes/1/inputs/1/dtype: unknown dtype 32, expected one of " + std::string(kDTypes)});
  CHECK(faults_with("/nodes/1/inputs/1/dtype", "") ==
        Lines{"/nodes/1/inputs/1/dtype: unknown dtype \"\", expected one of " +
              std::string(kDTypes)});
}

TEST_CASE("producer fields that name another producer are faults") {
  CHECK(faults_with("/nodes/1/inputs/0/producer_node", "b") ==
        Lines{"/nodes/1/inputs/0/producer_node: tensor 'a' is produced by node 'a', not by 'b'"});
  CHECK(faults_with("/nodes/1/inputs/0/producer_output_idx", 1) ==
        Lines{"/nodes/1/inputs/0/producer_output_idx: tensor 'a' is result 0 of node 'a', not 1"});
  CHECK(faults_with("/nodes/0/outputs/0/producer_node", "b") ==
        Lines{"/nodes/0/outputs/0/producer_node: result 'a' of node 'a' names the producer 'b'"});
  CHECK(faults_with("/nodes/0/outputs/0/producer_output_idx", 7) ==
        Lines{"/nodes/0/outputs/0/producer_output_idx: result 0 of node 'a' has the index 7"});
  CHECK(faults_with("/graph_outputs/0/producer_node", "a") ==
        Lines{"/graph_outputs/0/producer_node: tensor 'b' is produced by node 'b', not by 'a'"});
  CHECK(
      faults_with("/nodes/1/inputs/1/producer_node", "a") ==
      Lines{
          "/nodes/1/inputs/1/producer_node: tensor 'p_w' is a weight, but names the producer 'a'"});
  CHECK(faults_with("/nodes/1/inputs/1/producer_node", 4) ==
        Lines{"/nodes/1/inputs/1/producer_node: expected a string, found integer"});
  CHECK(faults_with("/nodes/1/inputs/1/producer_output_idx", "0") ==
        Lines{"/nodes/1/inputs/1/producer_output_idx: expected an integer, found string"});
  CHECK(faults_with("/nodes/1/inputs/0/producer_node", nullptr).empty());
  CHECK(faults_with("/nodes/1/inputs/0/producer_output_idx", nullptr).empty());
}

TEST_CASE("faults of nodes") {
  CHECK(faults_without("/nodes/1", "op_type") == Lines{"/nodes/1: node 'b' has no op_type"});
  CHECK(faults_without("/nodes/1", "inputs") == Lines{"/nodes/1: the key 'inputs' is missing"});
  CHECK(faults_without("/nodes/1", "outputs") ==
        Lines{"/nodes/1: the key 'outputs' is missing",
              "/graph_outputs/0: nothing produces the graph output 'b'"});
  CHECK(faults_without("/nodes/1", "attrs").empty());
  CHECK(faults_with("/nodes/1/attrs", nullptr).empty());
  CHECK(faults_with("/nodes/1/op_type", "") == Lines{"/nodes/1: node 'b' has no op_type"});
  CHECK(faults_with("/nodes/1/op_type", 1) ==
        Lines{"/nodes/1/op_type: expected a string, found integer",
              "/nodes/1: node 'b' has no op_type"});
  CHECK(faults_with("/nodes/1/attrs", Json::array()) ==
        Lines{"/nodes/1/attrs: expected an object, found array"});
  CHECK(faults_with("/nodes/1/inputs", 0) ==
        Lines{"/nodes/1/inputs: expected an array, found integer"});
  CHECK(faults_with("/nodes/1/device", 5) ==
        Lines{"/nodes/1/device: expected a string, found integer"});
  CHECK(faults_with("/nodes/1/device_reason", Json::array()) ==
        Lines{"/nodes/1/device_reason: expected a string, found array"});
  CHECK(faults_with("/nodes/1/partition", -1) ==
        Lines{"/nodes/1/partition: expected a non-negative integer, found -1"});
  CHECK(faults_with("/nodes/1/partition", 0.5) ==
        Lines{"/nodes/1/partition: expected a non-negative integer, found 0.5"});
  CHECK(faults_with("/nodes/1/fusion_group", "g") ==
        Lines{"/nodes/1/fusion_group: expected a non-negative integer, found \"g\""});
  CHECK(faults_with("/nodes/1/partition", UINT64_MAX) ==
        Lines{"/nodes/1/partition: expected a non-negative integer, found 18446744073709551615"});
  CHECK(faults_with("/nodes/1", 3).front() == "/nodes/1: expected a node object, found integer");
  Json document = two_nodes();
  document["nodes"][1].erase("name");
  document["graph_outputs"] = Json::array();
  CHECK(document_faults(document) == Lines{"/nodes/1: the node has no name"});
  document["nodes"][1]["name"] = "";
  CHECK(document_faults(document) == Lines{"/nodes/1: the node has no name"});
}

TEST_CASE("faults of tensors") {
  CHECK(faults_with("/nodes/1/inputs/1", "p_w") ==
        Lines{"/nodes/1/inputs/1: expected a tensor object, found string"});
  CHECK(faults_with("/nodes/1/inputs/1/name", 1) ==
        Lines{"/nodes/1/inputs/1/name: expected a string, found integer"});
  CHECK(faults_without("/nodes/1/inputs/1", "name") ==
        Lines{"/nodes/1/inputs/1: the tensor has no name"});
  CHECK(faults_without("/graph_outputs/0", "name") ==
        Lines{"/graph_outputs/0: the tensor has no name"});
  CHECK(faults_with("/nodes/1/inputs/1/shape", 2) ==
        Lines{"/nodes/1/inputs/1/shape: expected an array of integers, found integer"});
}

TEST_CASE("tags of earlier tools are read") {
  Json document = two_nodes();
  document["nodes"][0]["device"] = "npu";
  document["nodes"][0]["device_reason"] = "forced";
  document["nodes"][0]["partition"] = 3;
  document["nodes"][0]["fusion_group"] = 4;
  document["nodes"][1]["device"] = nullptr;
  document["npu"] = {{"version", 1}, {"weights_file", "w.safetensors"}};
  const Graph graph = read_valid_graph(document.dump(), "f");
  CHECK(graph.nodes()[0].device == "npu");
  CHECK(graph.nodes()[0].device_reason == "forced");
  CHECK(graph.nodes()[0].partition == 3);
  CHECK(graph.nodes()[0].fusion_group == 4);
  CHECK_FALSE(graph.nodes()[1].device.has_value());
  REQUIRE(graph.npu_member("weights_file") != nullptr);
  CHECK(*graph.npu_member("weights_file") == "w.safetensors");
  CHECK(graph.npu_member("nothing") == nullptr);
}

TEST_CASE("all faults are reported in one run") {
  Json document = two_nodes();
  document["model_name"] = 1;
  document["weights"].push_back(document["weights"][0]);
  document["graph_inputs"][0]["dtype"] = "float33";
  document["nodes"][0]["attrs"] = 1;
  document["nodes"][1]["outputs"][0]["shape"] = {-2};
  document["nodes"][1]["inputs"][0]["dtype"] = "int8";
  document["graph_outputs"][0]["name"] = "zzz";
  const Lines faults = document_faults(document);
  const std::vector<std::string> beginnings{
      "/model_name: expected a string",
      "/weights/1/name: weight 'w' stands at",
      "/graph_inputs/0/dtype: unknown dtype \"float33\"",
      "/nodes/0/attrs: expected an object",
      "/nodes/1/outputs/0/shape/0: node 'b': tensor 'b' has the negative dimension -2",
      "/nodes/0/inputs/0: node 'a' reads tensor 'x', which nothing produces",  // x is unusable
      "/nodes/1/inputs/0/dtype: tensor 'a' has dtype int8 here and float32",
      "/graph_outputs/0: nothing produces the graph output 'zzz'"};
  REQUIRE(faults.size() == beginnings.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    CAPTURE(faults[i]);
    CHECK(faults[i].starts_with(beginnings[i]));
  }
}

TEST_CASE("diagnostics carry the file and read_valid_graph throws the first") {
  Diagnostics diagnostics;
  Json document = two_nodes();
  document["model_name"] = 1;
  document["nodes"][1]["op_type"] = "";
  read_graph(document.dump(), "model.json", diagnostics);
  REQUIRE(diagnostics.entries().size() == 2);
  CHECK(diagnostics.error_count() == 2);
  CHECK(format_diagnostic(diagnostics.entries()[1]) ==
        "model.json: /nodes/1: error: node 'b' has no op_type");
  try {
    read_valid_graph(document.dump(), "model.json");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    CHECK(std::string(error.what()) ==
          "model.json: /model_name: error: expected a string, found integer");
  }
}

TEST_CASE("every fault of a document with many kinds of junk is a diagnostic and no crash") {
  // Each place of the document is replaced by each kind of value, and each key is removed.
  const std::vector<Json> values{nullptr,
                                 true,
                                 -1,
                                 5,
                                 UINT64_MAX,
                                 1.5,
                                 "",
                                 "x",
                                 "\u20ac",
                                 Json::array(),
                                 Json::object(),
                                 Json::array({1, "n", nullptr}),
                                 Json{{"name", "x"}}};
  const Json flat = two_nodes().flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, value] : flat.items()) {
    for (std::size_t end = pointer.size(); end != std::string::npos && end > 0;
         end = pointer.rfind('/', end - 1)) {
      pointers.push_back(pointer.substr(0, end));
    }
  }
  std::sort(pointers.begin(), pointers.end());
  pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
  REQUIRE(pointers.size() > 50);
  std::size_t valid = 0;
  for (const std::string& pointer : pointers) {
    for (const Json& value : values) {
      Json document = two_nodes();
      document[Json::json_pointer(pointer)] = value;
      CAPTURE(pointer, value.dump());
      Diagnostics diagnostics;
      CHECK_NOTHROW(read_graph(document.dump(), "f", diagnostics));
      if (!diagnostics.has_errors()) ++valid;
      for (const Diagnostic& diagnostic : diagnostics.entries())
        CHECK_FALSE(diagnostic.text.empty());
    }
  }
  // Most changes are faults; a few (null for an optional key, another name) are not.
  CHECK(valid < pointers.size() * values.size() / 4);
}

TEST_CASE("the models in testdata are valid") {
  struct Expected {
    const char* name;
    std::size_t nodes;
  };
  for (const Expected& model : {Expected{"resnet18", 69},
                                {"resnet50", 175},
                                {"mobilenet_v2", 153},
                                {"inception_v3", 314},
                                {"bert_base", 274}}) {
    CAPTURE(model.name);
    const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/" + model.name + ".json";
    const std::string text = read_file(file);
    CHECK(faults_of(text).empty());
    CHECK(read_valid_graph(text, file).nodes().size() == model.nodes);
  }
}

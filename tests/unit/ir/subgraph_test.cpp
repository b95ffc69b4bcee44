// SPDX-License-Identifier: Apache-2.0
// A set of nodes as a separate document.
#include "npu/ir/subgraph.hpp"

#include <limits>
#include <random>
#include <stdexcept>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
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
  return graph_of(R"(
    model diamond; input x, y; weight w, v [4]
    a = aten.add.Tensor(y, x) @npu device_reason="forced" partition=0 fusion_group=2 note="kept"
    b = "custom"(p_w, a, p_v, p_w)
    c = aten.mul.Tensor(a, x)
    d = "custom"(c); output b, a)");
}

// Everything that a program can ask of a tensor.
Lines described(const Graph& graph) {
  Lines lines;
  for (const TensorInfo& tensor : graph.tensors()) {
    std::string line = tensor.name + ' ' + std::string(dtype_name(tensor.dtype)) +
                       shape_text(tensor.shape) + std::to_string(static_cast<int>(tensor.kind)) +
                       ' ' + std::to_string(tensor.producer.value) + ' ' +
                       std::to_string(tensor.result) + ' ' + tensor.weight_key;
    for (const NodeId id : tensor.consumers) line += ' ' + std::to_string(id.value);
    lines.push_back(line);
  }
  return lines;
}

/// A part is the same in memory as when it was written and read.
Graph checked_part(const Graph& graph, const std::vector<NodeId>& nodes) {
  const SubgraphBoundary boundary = find_boundary(graph, nodes);
  Graph part = extract(graph, nodes, boundary);
  const Graph read = read_valid_graph(write_subgraph(graph, nodes, boundary), "part");
  CHECK(described(part) == described(read));
  CHECK((write_graph(part) == write_graph(read)));
  CHECK((write_sub_ir(part) == write_sub_ir(read)));
  CHECK(tensor_names(part, part.graph_inputs()) == tensor_names(read, read.graph_inputs()));
  CHECK(tensor_names(part, part.graph_outputs()) == tensor_names(read, read.graph_outputs()));
  for (const NodeId id : nodes) {
    CHECK(part.find_node(graph.node(id).name) == read.find_node(graph.node(id).name));
  }
  return part;
}

}  // namespace

TEST_CASE("extract: a boundary that is not that of the nodes is a fault of the caller") {
  const Graph graph = diamond();
  CHECK_THROWS_AS(extract(graph, {{1}}, find_boundary(graph, {{0}})), std::logic_error);
  CHECK_THROWS_AS(extract(graph, {{0}}, find_boundary(graph, {{1}})), std::logic_error);
}

TEST_CASE("extract: numbers that JSON cannot write are text, and groups have their patterns") {
  Graph graph = diamond();
  graph.node({0}).json["attrs"] = Json{{"value", std::numeric_limits<double>::infinity()}};
  graph.set_npu_member("fusion", Json{{"groups", {{{"id", 2}, {"pattern", "elementwise"}}}}});
  const Graph part = checked_part(graph, {{0}});
  CHECK(part.nodes()[0].attrs().at("value") == "inf");
  CHECK(part.nodes()[0].fusion_group == 2);
  CHECK(part.nodes()[0].json.at("fusion_pattern") == "elementwise");
}

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

TEST_CASE("extract: a part is a graph of its own") {
  const Graph graph = diamond();
  CHECK(checked_part(graph, {}).nodes().empty());
  const Graph part = checked_part(graph, {{1}, {2}});
  CHECK(part.file.empty());
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

TEST_CASE("extract: a weight that is handed out as it is stands among the weights") {
  const Graph graph = graph_of("input x; weight w [4]; output x, w");
  SubgraphBoundary boundary;
  boundary.inputs = graph.graph_inputs();
  boundary.outputs = graph.graph_outputs();
  const Graph part = read_valid_graph(write_sub_ir(extract(graph, {}, boundary)), "part");
  CHECK(tensor_names(part, part.graph_outputs()) == Lines{"x", "w"});
}

TEST_CASE("sub-IR: the bytes that a cache looks up") {
  const Graph graph = diamond();
  CHECK(write_subgraph(graph, {{2}}, find_boundary(graph, {{2}})) == R"({
  "ir_version": 1,
  "model_name": "diamond",
  "graph_inputs": [
    {"name":"a","shape":[4],"dtype":"float32"},
    {"name":"x","shape":[4],"dtype":"float32"}
  ],
  "graph_outputs": [
    {"name":"c","shape":[4],"dtype":"float32"}
  ],
  "weights": [],
  "nodes": [
    {"name":"c","op_type":"aten.mul.Tensor","inputs":[{"name":"a","shape":[4],"dtype":"float32","producer_node":"a","producer_output_idx":0},{"name":"x","shape":[4],"dtype":"float32","producer_node":"x","producer_output_idx":0}],"outputs":[{"name":"c","shape":[4],"dtype":"float32","producer_node":"c","producer_output_idx":0}],"attrs":{}}
  ]
}
)");
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
  const Graph graph = graph_of(R"(
    input x
    split = aten.split.Tensor(x) [2] [2] {"split_size": 2}
    item = getitem(split_0, split_1) {"index": 1}; output item)");
  // Together: the results are inside.
  const std::vector<NodeId> both{{0}, {1}};
  const Graph whole = checked_part(graph, both);
  CHECK(whole.tensor(whole.find_tensor("split_1")).result == 1);
  CHECK(tensor_names(whole, whole.graph_outputs()) == Lines{"item"});
  // Apart: both results cross, though the getitem takes one.
  const SubgraphBoundary first = find_boundary(graph, {{0}});
  CHECK(tensor_names(graph, first.outputs) == Lines{"split_0", "split_1"});
  const Graph item = checked_part(graph, {{1}});
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
    const Graph part = checked_part(graph, nodes);
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
  const std::vector<NodeId> nodes = all_nodes(graph);
  const Graph whole = checked_part(graph, nodes);
  REQUIRE(whole.nodes().size() == graph.nodes().size());
  CHECK(tensor_names(whole, whole.graph_inputs()) == tensor_names(graph, graph.graph_inputs()));
  CHECK(tensor_names(whole, whole.graph_outputs()) == tensor_names(graph, graph.graph_outputs()));
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    CHECK(whole.nodes()[n].attrs() == graph.nodes()[n].attrs());
    CHECK(whole.nodes()[n].op_type == graph.nodes()[n].op_type);
  }
}

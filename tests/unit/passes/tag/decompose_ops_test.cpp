// SPDX-License-Identifier: Apache-2.0
// Which nodes are replaced by those of their decompositions, and what the document says of them.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/passes/tag.hpp"
#include "npu/target/target.hpp"
#include "ops/decompositions.hpp"
#include "target/decompose_list.hpp"
#include "target/list_ops.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

/// A device that has what a decomposition of addcmul needs, in front of one that runs all; `change`
/// edits the first one's description.
Target vendor_target(const std::function<void(Json&)>& change = {}) {
  Json json = parse_json(R"({"name": "vendor", "devices": [
      {"name": "npu", "ops": [{"types": ["aten.mul.Tensor", "aten.add.Tensor", "aten.mul.Scalar"],
                               "dtypes": ["float32"]}],
       "decompose": ["aten.addcmul.default"],
       "peak_flops": {"float32": 1e12}, "memory_bandwidth": 20e9},
      {"name": "cpu", "backend": "aten", "ops": "*",
       "peak_flops": {"float32": 1e11}, "memory_bandwidth": 20e9}],
      "links": [{"from": "npu", "to": "cpu", "bandwidth": 4e9, "latency_us": 10}]})",
                         "vendor.json");
  if (change) change(json["devices"][0]);
  return parse_target(json, "vendor.json");
}

GraphBuilder model(const Json& attrs = Json::object()) {
  GraphBuilder graph;
  graph.input("x").input("y").input("z");
  graph.node("last", "aten.addcmul.default", {"x", "y", "z"}, attrs).key("kept", "as it was");
  graph.node("read", "aten.add.Tensor", {"last", "x"}).output("last").output("read");
  return graph;
}

Graph tagged(const GraphBuilder& builder, const Target& target, const TagOptions& options = {}) {
  Graph graph = builder.build();
  Diagnostics diagnostics;
  tag_ops(graph, target, options, diagnostics);
  CHECK(test::errors_of(diagnostics).empty());
  return graph;
}

/// "name op(operands) device" of every node.
std::vector<std::string> nodes_of(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes()) {
    std::string text = node.name + " " + node.op_type + "(";
    for (const TensorId id : node.inputs) {
      text += (text.ends_with('(') ? "" : " ") + graph.tensor(id).name;
    }
    result.push_back(text + ") " + node.device.value_or("-"));
  }
  return result;
}

using Lines = std::vector<std::string>;

const Lines kWhole{"last aten.addcmul.default(x y z) cpu", "read aten.add.Tensor(last x) npu"};

}  // namespace

TEST_CASE("a vendor's target names a decomposition, and the document is the same to its readers") {
  const Graph graph = tagged(model(), vendor_target());
  CHECK(nodes_of(graph) == Lines{"last.mul aten.mul.Tensor(y z) npu",
                                 "last aten.add.Tensor(last.mul x) npu",
                                 "read aten.add.Tensor(last x) npu"});
  CHECK(graph.tensor(graph.graph_outputs()[0]).name == "last");
  const Node& last = graph.node(graph.find_node("last"));
  CHECK(last.json.at("decomposed") == "aten.addcmul.default");
  CHECK(last.json.at("kept") == "as it was");
  CHECK(find_member(graph.nodes()[0].json, "decomposed") == nullptr);
  const TagReport report = tag_report(graph, vendor_target());
  CHECK(report.decomposed == std::map<std::string, std::int64_t>{{"aten.addcmul.default", 1}});
  CHECK(tag_metrics(report).at("nodes_decomposed") == 1);
  CHECK(format_tag_report(report).find("aten.addcmul.default") != std::string::npos);

  // Again, from the document: nothing changes, and the report says the same.
  const std::string text = write_graph(graph);
  Graph again = read_valid_graph(text, "again.json");
  Diagnostics diagnostics;
  CHECK_FALSE(tag_ops(again, vendor_target(), {}, diagnostics));
  CHECK(write_graph(again) == text);
  CHECK(tag_report(again, vendor_target()).decomposed.size() == 1);
}

TEST_CASE("arguments become nodes, and names are free ones") {
  GraphBuilder graph = model({{"value", 3}});
  graph.input("last.mul");
  CHECK(nodes_of(tagged(graph, vendor_target())).front() == "last.mul_1 aten.mul.Scalar(y) npu");
}

TEST_CASE("nodes stay whole where a decomposition brings nothing") {
  const auto without = [](const char* key, const Json& value) {
    return vendor_target([&](Json& device) { device[key] = value; });
  };
  CHECK(nodes_of(tagged(model(), without("decompose", Json::array()))) == kWhole);
  const Json no_product = {{{"types", {"aten.add.Tensor"}}, {"dtypes", {"float32"}}}};
  CHECK(nodes_of(tagged(model(), without("ops", no_product))) == kWhole);
  CHECK(nodes_of(tagged(model(), vendor_target(), {.force = {{"cpu", "last"}}})) == kWhole);
  const Json has_op = {{{"types", {"aten.addcmul.default", "aten.add.Tensor"}}}};
  CHECK(nodes_of(tagged(model(), without("ops", has_op)))[0] ==
        "last aten.addcmul.default(x y z) npu");

  // A constant is computed once, whatever it is made of.
  GraphBuilder constant;
  constant.lines(R"(
    input x; weight w [4]
    last = addcmul(p_w, p_w, p_w)
    read = aten.add.Tensor(last, x); output read)");
  const Graph folded = tagged(constant, vendor_target());
  CHECK(nodes_of(folded) == Lines{"read aten.add.Tensor(last x) npu"});
  REQUIRE(folded.folded().size() == 1);
  CHECK(folded.folded()[0].node.op_type == "aten.addcmul.default");
}

TEST_CASE("a node forced to a device becomes what that device runs") {
  const Graph graph = tagged(model(), vendor_target(), {.force = {{"npu", "*"}}});
  CHECK(nodes_of(graph).size() == 3);
}

TEST_CASE("a device in front of the one that names an op runs it whole") {
  const Target trio = vendor_target([](Json& device) { device["ops"] = "*"; });
  CHECK(nodes_of(tagged(model(), trio))[0] == "last aten.addcmul.default(x y z) npu");
}

TEST_CASE("a target may name only ops that have a decomposition") {
  const auto fault = [](const char* op) {
    try {
      vendor_target([&](Json& device) { device["decompose"] = {op}; });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("aten.relu.default").find("op type 'aten.relu.default' has no decomposition") !=
        std::string::npos);
  CHECK(fault("aten.addcdiv.default").empty());
}

TEST_CASE("lists of ops have those that run as others") {
  for (const char* name : {"host", "opencl", "trio"}) {
    CAPTURE(name);
    const Target target = load_target(name);
    const Device& device = target.devices.front();
    const std::vector<std::string> named = decompose_list(target, device.name);
    for (const std::string_view op : decomposed_ops()) {
      CAPTURE(op);
      const bool has_kernel = op.starts_with("npu.") ||
                              (op == "aten.unfold.default" && name != std::string_view("opencl"));
      CHECK((std::find(named.begin(), named.end(), op) != named.end()) == !has_kernel);
      if (has_kernel) CHECK(device.rules_by_type.find(op) != device.rules_by_type.end());
    }
    CHECK(format_target_ops(target, {}).find("aten.addcmul.default") != std::string::npos);
  }
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Tables of measured nodes: what is read, what is refused, and the costs that come out.
#include "cost/node_table.hpp"

#include "catch.hpp"
#include "cost/measured_cost.hpp"
#include "cost/roofline.hpp"
#include "graph_builder.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

Graph two_nodes(const Json& attrs = Json::object()) {
  return GraphBuilder("pair")
      .input("x", {2, 8})
      .node("a", "aten.relu.default", {"x"}, Shape{2, 8})
      .node("b", "aten.sum.default", {"a"}, Shape{2, 8}, attrs)
      .output("b")
      .build();
}

Target pair_target(const std::string& npu_backend = "onednn") {
  return parse_target(Json::parse(R"({"name": "t", "devices": [
    {"name": "npu", "backend": ")" +
                                  npu_backend + R"(", "ops": [{"types": ["aten.relu.default"]}],
     "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9, "launch_overhead_us": 7},
    {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1e9},
     "memory_bandwidth": 1e9, "launch_overhead_us": 3}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e6, "latency_us": 5}]})"),
                      "t.json");
}

Json table_json(const Graph& graph) {
  Json json = Json::parse(R"({"npu": {"version": 1, "kind": "node-profile"}, "model": "pair",
    "model_digest": "", "target": "t", "precision": "f32", "threads": 2, "fingerprint": {"cores": 2},
    "devices": [{"name": "npu", "backend": "onednn", "partition_us": 11},
                {"name": "cpu", "backend": "aten", "partition_us": 13}],
    "transfers": [{"from": "npu", "to": "cpu", "latency_us": 2, "bytes_per_s": 1e6, "samples": 3}],
    "placements": [{"name": "all on cpu", "partitions": 1, "copied_tensors": 0, "predicted_us": 53,
                    "us": 52, "median_us": 53, "mad_us": 1, "runs": 20}],
    "borders": [{"tensor": "a", "from": "npu", "to": "cpu", "bytes": 64, "us": 17, "median_us": 16,
                 "mad_us": 0.5, "runs": 20}],
    "nodes": [{"node": "a", "device": "npu", "us": 19, "median_us": 19.25, "mad_us": 1, "runs": 20},
              {"node": "a", "device": "cpu", "us": 23, "median_us": 23, "mad_us": 1, "runs": 20},
              {"node": "b", "device": "cpu", "us": 30, "median_us": 30, "mad_us": 1, "runs": 20,
               "kernel": "a"}]})");
  json["model_digest"] = model_digest(graph);
  return json;
}

std::string fault_of(const Json& json) {
  try {
    NodeTable::parse(json, "table.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("node table: times in int8") {
  Json json = table_json(two_nodes());
  json["int8"] = Json::parse(R"([{"node": "a", "device": "npu", "us": 9, "median_us": 9,
    "mad_us": 1, "runs": 20}])");
  json["conversions"] = Json::parse(R"([
    {"device": "npu", "to": "int8", "latency_us": 1.5, "bytes_per_s": 1e9, "samples": 4},
    {"device": "npu", "to": "float32", "latency_us": 2, "bytes_per_s": 0, "samples": 4}])");
  json["tensor_conversions"] = Json::parse(R"([
    {"tensor": "x", "device": "npu", "to": "int8", "us": 3.5},
    {"tensor": "x", "device": "npu", "to": "float32", "us": 0}])");
  CHECK(NodeTable::parse(json, "table.json").to_json() == json);
  const auto fault_with = [&](const char* list, std::size_t i, const char* key, const Json& value) {
    Json changed = json;
    changed[list][i][key] = value;
    return fault_of(changed);
  };
  CHECK(fault_with("int8", 0, "device", "gpu").find("is not in 'devices'") != std::string::npos);
  CHECK(fault_with("int8", 0, "us", -1) != "none");
  CHECK(fault_with("conversions", 0, "to", "int4").find("expected int8 or float32") !=
        std::string::npos);
  CHECK(fault_with("conversions", 1, "to", "int8").find("listed twice") != std::string::npos);
  CHECK(fault_with("tensor_conversions", 0, "us", -1) != "none");
  CHECK(fault_with("tensor_conversions", 0, "device", "gpu").find("is not in 'devices'") !=
        std::string::npos);
  CHECK(fault_with("tensor_conversions", 0, "to", 8) != "none");
  CHECK(fault_with("tensor_conversions", 1, "to", "int8").find("'x' is listed twice") !=
        std::string::npos);
}

TEST_CASE("node table: what is read is written again") {
  const Json json = table_json(two_nodes());
  const NodeTable table = NodeTable::parse(json, "table.json");
  CHECK(table.to_json() == json);
  CHECK(NodeTable::parse(table.to_json(), "again.json").to_json() == json);
  CHECK(table.nodes[0].time.median_us == 19.25);
  CHECK(table.find_device("cpu") == 1);
  CHECK(table.find_device("gpu") == -1);
  CHECK(is_node_table(json));
  CHECK_FALSE(is_node_table(Json::parse(R"({"npu": {"kind": "profile"}})")));
  CHECK_FALSE(is_node_table(Json(1)));
}

TEST_CASE("node table: malformed ones are refused with place and fault") {
  const Graph graph = two_nodes();
  struct Case {
    const char* pointer;
    Json value;
    std::string expected;
  };
  const std::vector<Case> cases{
      {"/npu/kind", "profile",
       "table.json: /npu/kind: error: expected a document of kind 'node-profile', which "
       "npu-profile "
       "writes for an ordinary model"},
      {"/npu/version", 2, "table.json: /npu/version: error: expected version 1"},
      {"/model_digest", 5,
       "table.json: /model_digest: error: expected a string 'model_digest', found 5"},
      {"/threads", -1,
       "table.json: /threads: error: expected an integer 'threads' in 0..1024, found -1"},
      {"/devices", Json::object(),
       "table.json: /devices: error: expected an array 'devices', found object"},
      {"/devices/0", 4, "table.json: /devices/0: error: expected an object, found integer"},
      {"/devices/1/name", "npu",
       "table.json: /devices/1/name: error: device 'npu' is listed twice"},
      {"/devices/0/partition_us", "fast",
       "table.json: /devices/0/partition_us: error: expected a number 'partition_us' of at least "
       "0, "
       "found \"fast\""},
      {"/nodes/0/us", -1e-3,
       "table.json: /nodes/0/us: error: expected a number 'us' of at least 0, found -0.001"},
      {"/nodes/0/us", 1e300,
       "table.json: /nodes/0/us: error: expected a number 'us' of at least 0, found 1e+300"},
      {"/nodes/0/runs", 1.5,
       "table.json: /nodes/0/runs: error: expected an integer 'runs' in 0..2147483647, found 1.5"},
      {"/nodes/0/node", "",
       "table.json: /nodes/0/node: error: expected a string 'node', found \"\""},
      {"/nodes/1/device", "gpu",
       "table.json: /nodes/1/device: error: device 'gpu' is not in 'devices'"},
      {"/nodes/1/device", "npu",
       "table.json: /nodes/1: error: node 'a' is listed twice for device 'npu'"},
      {"/borders/0/to", "gpu",
       "table.json: /borders/0/to: error: device 'gpu' is not in 'devices'"},
      {"/borders/0/bytes", -64,
       "table.json: /borders/0/bytes: error: expected an integer 'bytes' in "
       "0..9223372036854775807, found -64"},
      {"/transfers/0/bytes_per_s", nullptr,
       "table.json: /transfers/0/bytes_per_s: error: expected a number 'bytes_per_s' of at least "
       "0, "
       "found null"},
      {"/placements/0/partitions", true,
       "table.json: /placements/0/partitions: error: expected an integer 'partitions' in "
       "0..2147483647, found true"},
  };
  for (const Case& fault : cases) {
    Json json = table_json(graph);
    json[Json::json_pointer(fault.pointer)] = fault.value;
    CHECK(fault_of(json) == fault.expected);
  }
  CHECK(fault_of(Json::array()) == "table.json: error: expected an object, found array");
  for (const char* key : {"model_digest", "target", "precision", "threads", "devices", "transfers",
                          "placements", "borders", "nodes"}) {
    Json json = table_json(graph);
    json.erase(key);
    CHECK(fault_of(json).ends_with("found nothing"));
  }
}

TEST_CASE("node table: the digest follows the model, not its tags") {
  Graph graph = two_nodes();
  const std::string digest = model_digest(graph);
  CHECK(digest.size() == 32);
  graph.nodes()[0].device = "cpu";
  graph.nodes()[0].partition = 3;
  graph.set_npu_member("target", *pair_target().json);
  CHECK(model_digest(graph) == digest);
  CHECK(model_digest(two_nodes({{"dim", 1}})) != digest);
  graph.nodes()[1].name = "c";
  CHECK(model_digest(graph) != digest);
}

TEST_CASE("measured cost: the table's times, and the roofline's where it has none") {
  const Graph graph = two_nodes();
  const Target target = pair_target();
  const MeasuredCost cost(NodeTable::parse(table_json(graph), "table.json"), graph, target);
  const Device& npu = target.devices[0];
  const Device& cpu = target.devices[1];
  CHECK(cost.node_us(graph, NodeId{0}, npu) == 19);
  CHECK(cost.node_us(graph, NodeId{0}, cpu) == 23);
  CHECK(cost.node_us(graph, NodeId{1}, cpu) == 30);
  CHECK(cost.is_measured(graph, NodeId{1}, cpu));
  CHECK_FALSE(cost.is_measured(graph, NodeId{1}, npu));
  CHECK(cost.node_us(graph, NodeId{1}, npu) == roofline_cost().node_us(graph, NodeId{1}, npu));
  CHECK(cost.launch_us(npu) == 11);
  CHECK(cost.tensor_us(graph, graph.find_tensor("a"), target, "npu", "cpu") == 17);
  // 2 us and 64 bytes at a megabyte a second
  CHECK(cost.tensor_us(graph, graph.find_tensor("b"), target, "npu", "cpu") == Approx(66));
  // Not in the table: the target's link, which holds for both directions.
  CHECK(cost.tensor_us(graph, graph.find_tensor("b"), target, "cpu", "npu") == Approx(69));
  CHECK(cost.tensor_us(graph, graph.find_tensor("a"), target, "npu", "npu") == 0);
  CHECK(cost.provenance().at("model_digest") == model_digest(graph));
  CHECK(roofline_cost().provenance().is_null());
}

TEST_CASE("measured cost: tables of other models and backends are refused") {
  const Graph graph = two_nodes();
  const NodeTable table = NodeTable::parse(table_json(graph), "table.json");
  const Graph other = two_nodes({{"dim", 1}});
  CHECK_THROWS_WITH(MeasuredCost(table, other, pair_target()),
                    Catch::Contains("table.json: /model_digest: error: the table was measured on "
                                    "another model ('pair', digest " +
                                    model_digest(graph)) &&
                        Catch::Contains("measure it with npu-profile"));
  CHECK_THROWS_WITH(MeasuredCost(table, graph, pair_target("vendor")),
                    "table.json: /devices/0: error: device 'npu' was measured with backend "
                    "'onednn', target 't' has 'vendor' for it: measure again with npu-profile "
                    "--target");
}

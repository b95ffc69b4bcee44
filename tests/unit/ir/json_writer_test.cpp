// SPDX-License-Identifier: Apache-2.0
// A document that is read and written keeps its content; typed fields override what was read.
#include "npu/ir/json_writer.hpp"

#include <algorithm>
#include <filesystem>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

std::string round_trip(const std::string& text) { return write_graph(read_valid_graph(text, "f")); }

// Equal content with equal order of keys and equal types of numbers: ordered_json compares objects
// as lists of members, and the dump tells 1 from 1.0.
void check_same_content(const std::string& actual, const std::string& expected) {
  const Json a = Json::parse(actual);
  const Json e = Json::parse(expected);
  CHECK(a == e);
  CHECK(a.dump() == e.dump());
}

// A document with everything that a reader could lose.
constexpr const char* kFull = R"({
  "unknown_first": {"z": 1, "a": [1, 2.0, -0.0, 1e-05, 1e300, 9223372036854775807, -9223372036854775808, 18446744073709551615]},
  "model_name": "full",
  "pytorch_version": "2.1.0+cpu",
  "graph_inputs": [{"dtype": "float32", "name": "x", "shape": [2], "note": "keys in another order"}],
  "graph_outputs": [{"name": "y", "shape": [2], "dtype": "float32", "producer_node": "y", "producer_output_idx": 0, "extra": null}],
  "weights": [{"name": "w", "shape": [2], "dtype": "float32", "quantised": false}],
  "weight_name_mapping": {"p_w": "w", "p_unread": "nowhere"},
  "nodes": [
    {"zeta": [[]], "name": "y", "op_type": "aten.add.Tensor",
     "inputs": [{"name": "x", "shape": [2], "dtype": "float32", "producer_node": "x", "producer_output_idx": 0, "tag": {"k": []}},
                {"name": "p_w", "shape": [2], "dtype": "float32"}],
     "attrs": {"alpha": 1.0, "eps": 1e-05, "minus_zero": -0.0, "big": 9223372036854775807, "bigger": 18446744073709551615,
               "least": -9223372036854775808, "none": null, "text": "\u00e9\u4e2d\ud83d\ude00 \" \\ / \b\f\n\r\t \u0000\u001f", "tenth": 0.1,
               "nested": {"b": {"a": {}}, "a": []}, "tiny": 5e-324, "huge": 1.7976931348623157e308},
     "outputs": [{"shape": [2], "dtype": "float32"}],
     "device": "npu", "meta": {"stack": ["a.py", 3]}, "device_reason": null, "partition": null}],
  "constants": {"c_unread": {"data": [[1, 2.5], [true, "inf"]], "dtype": "float32", "more": 1}},
  "npu": {"future": [1, {"deep": []}], "version": 1, "weights_file": "w.safetensors"},
  "unknown_last": []
})";

}  // namespace

TEST_CASE("writer: the empty graph") {
  const std::string text = R"({"graph_inputs": [], "graph_outputs": [], "nodes": []})";
  CHECK(round_trip(text) ==
        "{\n  \"graph_inputs\": [],\n  \"graph_outputs\": [],\n  \"nodes\": []\n}\n");
}

TEST_CASE("writer: one node or tensor a line") {
  const std::string text =
      GraphBuilder("m").input("x", {2}).node("y", "aten.relu.default", {"x"}).output("y").text();
  CHECK(round_trip(text) == R"({
  "model_name": "m",
  "graph_inputs": [
    {"name":"x","shape":[2],"dtype":"float32"}
  ],
  "graph_outputs": [
    {"name":"y","shape":[2],"dtype":"float32"}
  ],
  "weights": [],
  "weight_name_mapping": {},
  "nodes": [
    {"name": "y", "op_type": "aten.relu.default", "inputs": [{"name":"x","shape":[2],"dtype":"float32"}], "outputs": [{"name":"y","shape":[2],"dtype":"float32"}], "attrs": {}}
  ]
}
)");
}

TEST_CASE(
    "writer: a document that nobody changed keeps its content, keys in order and numbers exact") {
  check_same_content(round_trip(kFull), kFull);
}

TEST_CASE("writer: writing is idempotent to the byte") {
  const std::string once = round_trip(kFull);
  CHECK(round_trip(once) == once);
}

TEST_CASE("writer: numbers keep their kind and text") {
  const std::string text = round_trip(kFull);
  for (const char* part :
       {"\"alpha\":1.0", "\"eps\":1e-05", "\"minus_zero\":-0.0", "\"big\":9223372036854775807",
        "\"bigger\":18446744073709551615", "\"least\":-9223372036854775808", "\"tenth\":0.1",
        "\"tiny\":5e-324", "\"huge\":1.7976931348623157e+308", "\"none\":null"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("writer: typed fields replace, append and remove keys") {
  Graph graph = graph_of(R"(
    input x
    a = "custom"(x)
    b = "custom"(a) @npu device_reason="forced" partition=7 zz=1
    c = "custom"(b))");
  graph.nodes()[0].device = "cpu";
  graph.nodes()[0].fusion_group = 3;
  graph.nodes()[1].device = "gpu";
  graph.nodes()[1].device_reason = std::nullopt;
  graph.nodes()[1].partition = 8;
  const Json nodes = Json::parse(write_graph(graph))["nodes"];
  const auto keys = [&](std::size_t n) {
    std::string text;
    for (const auto& [key, value] : nodes[n].items()) text += key + " ";
    return text;
  };
  CHECK(keys(0) == "name op_type inputs outputs attrs device fusion_group ");
  CHECK(nodes[0]["device"] == "cpu");
  CHECK(nodes[0]["fusion_group"] == 3);
  CHECK(keys(1) == "name op_type inputs outputs attrs device partition zz ");
  CHECK(nodes[1]["device"] == "gpu");
  CHECK(nodes[1]["partition"] == 8);
  CHECK(keys(2) == "name op_type inputs outputs attrs ");
}

TEST_CASE("writer: a typed field takes the place of a null") {
  Graph graph = read_valid_graph(kFull, "f");
  graph.nodes()[0].partition = 4;
  const Json node = Json::parse(write_graph(graph))["nodes"][0];
  CHECK(node["partition"] == 4);
  CHECK(node["device_reason"].is_null());
  CHECK(node.contains("device_reason"));
}

TEST_CASE("writer: members of npu are set, kept and erased") {
  Graph graph = GraphBuilder().build();
  CHECK(write_graph(graph).find("\"npu\"") == std::string::npos);
  graph.set_npu_member("target", Json{{"name", "t"}});
  CHECK(*graph.npu_member("version") == 1);
  CHECK(Json::parse(write_graph(graph))["npu"].dump() == R"({"version":1,"target":{"name":"t"}})");
  graph.set_npu_member("target", Json{{"name", "u"}});
  graph.set_npu_member("other", 2);
  graph.erase_npu_member("target");
  graph.erase_npu_member("never there");
  CHECK(Json::parse(write_graph(graph))["npu"].dump() == R"({"version":1,"other":2})");
  // A version that was read stays where it was.
  Graph full = read_valid_graph(kFull, "f");
  full.set_npu_member("fusion", Json::object());
  CHECK(Json::parse(write_graph(full))["npu"].dump() ==
        R"({"future":[1,{"deep":[]}],"version":1,"weights_file":"w.safetensors","fusion":{}})");
}

TEST_CASE("writer: a name that is not UTF-8 is an error and not half a document") {
  Graph graph = GraphBuilder().input("x").node("a", "custom", {"x"}).build();
  graph.nodes()[0].device = "\xff";
  try {
    write_graph(graph);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
  }
  CHECK_THROWS_AS(write_document(Json{{"\xc3", 1}}), Error);
}

TEST_CASE("writer: any JSON document in the same layout") {
  CHECK(write_document(Json::object()) == "{}\n");
  CHECK(write_document(Json::array()) == "[]\n");
  CHECK(write_document(3) == "3\n");
  const Json document = Json::parse(kFull);
  check_same_content(write_document(document), kFull);
  CHECK(write_document(Json{{"a", {1, 2}}, {"b", {{{"c", 1}}, {{"d", 2}}}}}) ==
        "{\n  \"a\": [1,2],\n  \"b\": [\n    {\"c\":1},\n    {\"d\":2}\n  ]\n}\n");
}

TEST_CASE("writer: values that nest and strings with every control character") {
  Json everything = Json::array();
  for (int c = 0; c < 0x80; ++c) everything.push_back(std::string(1, static_cast<char>(c)) + "x");
  Json deep = 1;
  for (int i = 0; i < 100; ++i) deep = i % 2 == 0 ? Json::array({deep, {}}) : Json{{"k", deep}};
  const Json document{{"everything", everything},
                      {"deep", deep},
                      {"empty", {{"a", Json::object()}, {"b", Json::array()}}}};
  CHECK(Json::parse(write_document(document)).dump() == document.dump());
}

TEST_CASE("writer: every model of testdata survives a round trip") {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"/models", "/models/small"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(NPU_TEST_DATA_DIR + std::string(folder))) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 30);
  for (const auto& file : files) {
    CAPTURE(file.string());
    const std::string text = read_file(file.string());
    const std::string once = round_trip(text);
    check_same_content(once, text);
    CHECK(round_trip(once) == once);
  }
}

namespace {

// A chain whose text is several pieces long.
Graph long_chain() {
  GraphBuilder builder;
  builder.input("x");
  std::string last = "x";
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "relu_" + std::to_string(i);
    builder.node(name, "aten.relu.default", {last});
    last = name;
  }
  return builder.output(last).build();
}

}  // namespace

TEST_CASE("writer: the pieces of a text are the text") {
  const Graph graph = long_chain();
  std::vector<std::string> pieces;
  write_graph(graph, [&](std::string_view piece) { pieces.emplace_back(piece); });
  CHECK(pieces.size() > 2);
  std::string text;
  for (const std::string& piece : pieces) {
    CHECK(piece.size() < 2'000'000);
    text += piece;
  }
  CHECK(text == write_graph(graph));
}

TEST_CASE("writer: a name that is not UTF-8 stops before the first piece") {
  Graph graph = long_chain();
  SECTION("of a device, in the last node") { graph.nodes().back().device = "npu\xff"; }
  SECTION("in an object of the top level") { graph.set_npu_member("file", "\xc3(.json"); }
  std::size_t count = 0;
  CHECK_THROWS_AS(write_graph(graph, [&](std::string_view) { ++count; }), Error);
  CHECK(count == 0);
}

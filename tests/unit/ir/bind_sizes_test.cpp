// SPDX-License-Identifier: Apache-2.0
#include "ir/bind_sizes.hpp"

#include <string>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "ops/check_template.hpp"

using namespace npu;

namespace {

std::string tagger_text() {
  return read_file(NPU_TEST_DATA_DIR + std::string("/models/templates/tagger.json"));
}

Template read_tagger() {
  Diagnostics faults;
  Template model = Template::read(parse_json(tagger_text(), "t.json"), "t.json", faults);
  check_template(model, faults);
  CHECK(faults.entries().empty());
  return model;
}

std::string error_of(const Template& model, const SizeBindings& values, ErrorCode code) {
  try {
    bound_document(model, values);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.message();
  }
  return "none";
}

std::string text_of(const SizeShape& shape) {
  std::string text;
  for (const SizeExpression& size : shape) text += size.text() + ";";
  return text;
}

}  // namespace

TEST_CASE("template: symbols have ranges, and the inputs that give them") {
  const Template model = read_tagger();
  CHECK(model.symbols().names() == "B, S, P");
  const SizeSymbol& past = *model.symbols().find("P");
  CHECK(past.min.constant() == 0);
  CHECK(past.max->text() == "64 - S");
  // Not stated: found.
  CHECK(past.of == std::vector<std::pair<std::string, std::int64_t>>{{"past", 1}});
  CHECK(model.symbols().find("T") == nullptr);
  Diagnostics faults;
  const SizeSymbols again = SizeSymbols::read(model.symbols().to_json(), "again", faults);
  CHECK(!faults.has_errors());
  CHECK(again.to_json() == model.symbols().to_json());
}

TEST_CASE("template: samples are within the ranges, both ends among them") {
  const SizeSymbols symbols = read_tagger().symbols();
  const auto samples = symbols.samples();
  CHECK(samples.size() == 16);
  for (const SizeBindings& sample : samples) CHECK(symbols.fault(sample) == std::nullopt);
  CHECK(samples[0] == SizeBindings{{"B", 1}, {"S", 1}, {"P", 0}});
  CHECK(samples[1] == SizeBindings{{"B", 8}, {"S", 64}, {"P", 0}});
}

TEST_CASE("template: a binding gives an ordinary document with the same names") {
  const Template model = read_tagger();
  const Json document = bound_document(model, {{"B", 2}, {"S", 5}, {"P", 3}});
  CHECK(!SizeSymbols::are_in(document));
  CHECK(find_member(*find_member(document, "npu"), "symbols") == nullptr);
  Diagnostics faults;
  const Graph graph = bind_sizes(model, {{"B", 2}, {"S", 5}, {"P", 3}}, faults);
  REQUIRE(!faults.has_errors());
  CHECK(graph.nodes().size() == 11);
  for (const TensorInfo& tensor : graph.tensors()) {
    INFO(tensor.name);
    const SizeShape* shape = model.shape(tensor.name);
    REQUIRE(shape != nullptr);
    Shape numbers;
    for (const SizeExpression& size : *shape) {
      numbers.push_back(size.evaluate({{"B", 2}, {"S", 5}, {"P", 3}}));
    }
    CHECK(numbers == tensor.shape);
  }
  CHECK(text_of(*model.shape("keys")) == "B;8;P + S;");
  CHECK(graph.tensor(graph.find_tensor("keys")).shape == Shape{2, 8, 8});
  CHECK(graph.node(graph.find_node("places")).attrs().at("end") == 5);
  CHECK(graph.node(graph.find_node("flat")).attrs().at("size") == Json::array({80}));
  // Written, it is read as what it is.
  CHECK(write_graph(read_valid_graph(write_graph(graph), "bound")) == write_graph(graph));
}

TEST_CASE("template: what lacks a value, or has one that does not suit, is told") {
  const Template model = read_tagger();
  CHECK(error_of(model, {{"B", 1}, {"P", 0}}, ErrorCode::kInvalidGraph) ==
        "size 'S' (1..64, dimension 1 of input 'ids') has no value; give it one with --bind S=N");
  CHECK(error_of(model, {{"P", 0}}, ErrorCode::kInvalidGraph).starts_with("2 sizes have no value"));
  CHECK(error_of(model, {{"B", 1}, {"S", 60}, {"P", 5}}, ErrorCode::kUsage) ==
        "--bind: size 'P' is 5, expected 0..64 - S");
  CHECK(error_of(model, {{"T", 1}}, ErrorCode::kUsage) ==
        "--bind T=1: t.json has no size 'T'; it has B, S, P");
  Diagnostics faults;
  CHECK_THROWS_AS(read_graph(tagger_text(), "t.json", faults), Error);
  CHECK_THROWS_AS(read_sized_graph(R"({"graph_inputs": [], "graph_outputs": [], "nodes": []})",
                                   "plain", {{"S", 1}}, faults),
                  Error);
  CHECK(!faults.has_errors());
}

TEST_CASE("template: a multiple is asked for") {
  const SizeSymbols symbols =
      SizeSymbols::of({{.name = "S", .min = 3, .max = 40, .multiple_of = 8, .of = {}}});
  CHECK(symbols.fault({{"S", 12}}) == "size 'S' is 12, expected 3..40, a multiple of 8");
  CHECK(symbols.fault({{"S", 16}}) == std::nullopt);
  CHECK(symbols.samples()[0] == SizeBindings{{"S", 8}});
  CHECK(symbols.samples()[1] == SizeBindings{{"S", 40}});
}

TEST_CASE("template: a string in attrs is a size only if all its symbols are known") {
  const Template model = read_tagger();
  CHECK(model.size_in_attrs("S")->text() == "S");
  CHECK(model.size_in_attrs("2*(S+P)")->text() == "2*P + 2*S");
  CHECK(!model.size_in_attrs("tanh"));
  CHECK(!model.size_in_attrs("T"));
  CHECK(!model.size_in_attrs("S + T"));
  CHECK(!model.size_in_attrs("S +"));
  CHECK(!model.size_in_attrs("float32"));
  CHECK(!model.size_in_attrs(""));
}

TEST_CASE("template: a graph that passes edit has no symbols") {
  Diagnostics faults;
  assemble_graph(parse_json(tagger_text(), "t.json"), "t.json", faults);
  REQUIRE(faults.has_errors());
  CHECK(faults.entries()[0].text == "the sizes of a template have no values here");
  CHECK(faults.entries()[0].location.pointer == "/npu/symbols");
}

TEST_CASE("template: sizes in the body of a region are bound, under names of its own") {
  Diagnostics faults;
  Json document = parse_json(R"({
    "graph_inputs": [{"name": "x", "shape": ["S"], "dtype": "float32"}], "graph_outputs": [],
    "nodes": [{"name": "r", "op_type": "wrap_with_set_grad_enabled",
      "inputs": [{"name": "x"}], "outputs": [{"name": "r", "shape": ["S"], "dtype": "float32"}],
      "attrs": {"body": {"graph_inputs": [{"name": "x", "shape": ["S"], "dtype": "float32"}],
        "nodes": [{"name": "r", "op_type": "aten.full.default", "inputs": [],
          "outputs": [{"name": "r", "shape": ["S + 1"], "dtype": "float32"}],
          "attrs": {"size": ["S + 1"], "fill_value": 0}}],
        "graph_outputs": [{"name": "r", "shape": ["S + 1"], "dtype": "float32"}]}}}],
    "npu": {"version": 1, "symbols": {"S": {"min": 1, "max": 4}}}})",
                             "body.json");
  const Template model = Template::read(std::move(document), "body.json", faults);
  REQUIRE(!faults.has_errors());
  const Json bound = bound_document(model, {{"S", 3}});
  const Json& body = bound["nodes"][0]["attrs"]["body"];
  CHECK(body["nodes"][0]["outputs"][0]["shape"] == Json::array({4}));
  CHECK(body["nodes"][0]["attrs"]["size"] == Json::array({4}));
  CHECK(bound["nodes"][0]["outputs"][0]["shape"] == Json::array({3}));
}

TEST_CASE("template: with some sizes bound it is a template of the others") {
  const Template model = read_tagger();
  Diagnostics faults;
  const Template narrowed =
      Template::read(narrowed_document(model, {{"P", 6}, {"B", 2}}), "narrowed", faults);
  REQUIRE(!faults.has_errors());
  CHECK(narrowed.symbols().names() == "S");
  CHECK(text_of(*narrowed.shape("keys")) == "2;8;S + 6;");
  // What the past's range said of S.
  CHECK(narrowed.symbols().find("S")->max->constant() == 58);
  CHECK(bound_document(narrowed, {{"S", 5}}) ==
        bound_document(model, {{"B", 2}, {"P", 6}, {"S", 5}}));
  CHECK(narrowed_document(model, {{"B", 2}, {"P", 6}, {"S", 5}}) ==
        bound_document(model, {{"B", 2}, {"P", 6}, {"S", 5}}));
  // With canonical texts.
  CHECK(narrowed_document(model, {})["graph_inputs"] == model.document()["graph_inputs"]);
  CHECK_THROWS_AS(narrowed_document(model, {{"P", 70}, {"S", 1}}), Error);
  CHECK_THROWS_AS(narrowed_document(model, {{"T", 70}}), Error);
}

// SPDX-License-Identifier: Apache-2.0
#include "ir/generate_section.hpp"

#include "catch.hpp"

namespace npu {
namespace {

Json decoder() {
  return Json::parse(R"({
    "graph_inputs": [{"name": "ids", "shape": [1, "T"], "dtype": "int64"},
                     {"name": "at", "shape": ["T"], "dtype": "int64"},
                     {"name": "k0", "shape": [1, 2, 64, 8], "dtype": "float32"}],
    "graph_outputs": [{"name": "logits", "shape": [1, "T", 96], "dtype": "float32"}],
    "nodes": [],
    "npu": {"version": 1, "generate": {"tokens": "ids", "positions": "at", "logits": "logits"}}})");
}

std::vector<std::string> role_faults(const Json& document) {
  Diagnostics diagnostics;
  read_generate_roles(document, "d.json", diagnostics);
  std::vector<std::string> texts;
  for (const Diagnostic& entry : diagnostics.entries()) texts.push_back(format_diagnostic(entry));
  return texts;
}

Json with_role(std::string_view key, Json value) {
  Json document = decoder();
  document["npu"]["generate"][std::string(key)] = std::move(value);
  return document;
}

TEST_CASE("roles of a decoder are read and written", "[generate]") {
  Diagnostics diagnostics;
  const auto roles = read_generate_roles(decoder(), "d.json", diagnostics);
  REQUIRE(roles);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(*roles == GenerateRoles{"ids", "at", "logits"});
  CHECK(roles_json(*roles) == decoder()["npu"]["generate"]);
  Json document = decoder();
  document["npu"]["generate"].erase("positions");
  const auto without = read_generate_roles(document, "d.json", diagnostics);
  REQUIRE(without);
  CHECK(without->positions.empty());
  CHECK(roles_json(*without) == document["npu"]["generate"]);
  document["npu"].erase("generate");
  CHECK_FALSE(read_generate_roles(document, "d.json", diagnostics));
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("an encoder has a source, and a decoder may have ids to begin with", "[generate]") {
  Diagnostics diagnostics;
  Json encoder = decoder();
  encoder["npu"]["generate"] = {{"source", "k0"}};
  const auto source = read_generate_roles(encoder, "d.json", diagnostics);
  REQUIRE(source);
  CHECK(source->source == "k0");
  CHECK(source->tokens.empty());
  CHECK(roles_json(*source) == encoder["npu"]["generate"]);
  const Json begun = with_role("start", {2, 0});
  const auto roles = read_generate_roles(begun, "d.json", diagnostics);
  REQUIRE(roles);
  CHECK(roles->start == std::vector<std::int64_t>{2, 0});
  CHECK(roles_json(*roles) == begun["npu"]["generate"]);
  CHECK_FALSE(diagnostics.has_errors());

  using Texts = std::vector<std::string>;
  for (const Json& start : {Json("2"), Json::array(), Json{-1}, Json{1.5}, Json{1, "2"}}) {
    CHECK(role_faults(with_role("start", start)) ==
          Texts{"d.json: /npu/generate/start: error: 'start' is no list of 1 to 1024 ids"});
  }
  encoder["npu"]["generate"] = {{"source", "at"}};
  CHECK(role_faults(encoder) ==
        Texts{"d.json: /npu/generate/source: error: 'source' is 'at' of 1 dimensions, expected at "
              "least 2, [1, ...]"});
  CHECK_FALSE(role_faults(with_role("source", "k0")).empty());  // beside the roles of a decoder
}

TEST_CASE("roles that do not suit are refused", "[generate]") {
  using Texts = std::vector<std::string>;
  CHECK(role_faults(with_role("tokens", 3)) ==
        Texts{"d.json: /npu/generate/tokens: error: 'tokens' is not the name of a graph input, but "
              "3"});
  CHECK(role_faults(with_role("logits", "logit")) ==
        Texts{"d.json: /npu/generate/logits: error: 'logits' is 'logit', which is no graph output; "
              "did you mean 'logits'?"});
  CHECK(role_faults(with_role("positions", "ids")) ==
        Texts{"d.json: /npu/generate/positions: error: 'positions' is 'ids', which is 'tokens' as "
              "well"});
  CHECK(role_faults(with_role("positions", "k0")) ==
        Texts{"d.json: /npu/generate/positions: error: 'positions' is 'k0' of dtype float32, "
              "expected int64",
              "d.json: /npu/generate/positions: error: 'positions' is 'k0' of 4 dimensions, "
              "expected 1 or 2, [T] or [1, T]"});
  CHECK(role_faults(with_role("new", "npu.n.T")).size() == 1);
  Json document = decoder();
  document["npu"]["generate"] = "ids";
  CHECK(role_faults(document).size() == 1);
  document = decoder();
  document["npu"]["generate"].erase("logits");
  CHECK(role_faults(document).size() == 1);
  document = decoder();
  document["graph_inputs"][0]["shape"] = {2, 8};
  CHECK(role_faults(document) ==
        Texts{"d.json: /npu/generate/tokens: error: 'tokens' is 'ids' with a batch of 2, expected "
              "1"});
}

}  // namespace
}  // namespace npu

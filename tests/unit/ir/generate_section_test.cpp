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

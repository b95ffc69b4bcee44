// SPDX-License-Identifier: Apache-2.0
#include "passes/states/append_nodes.hpp"

#include <string>

#include "catch.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::states {
namespace {

constexpr const char* kProjecting = R"(
    size R 1..64; size T 1..8
    input ids [1,T] int64; input hidden [1,R,8]
    weight table [9,8]; weight k [8,8]
    x = embedding(table, ids) [1,T,8]
    key = linear(hidden, k) [1,R,8]
    split = view(key) [1,R,2,4] {"size": [1, "R", 2, 4]}
    mixed = cat(x, key) [1,"R + T",8] {"dim": 1, "_tensor_list_sizes": [2]}
    output split; output mixed)";

Json encoder() {
  return test::template_document(R"(
    size S 1..16; input x [1,S,8]
    y = relu(x) [1,S,8]
    output y)");
}

Json given() { return {{"name", "y"}, {"shape", {1, "S", 8}}, {"dtype", "float32"}}; }

TEST_CASE("a part of another model is appended under other names", "[states]") {
  Json document = encoder();
  Diagnostics faults;
  const Template other = test::template_of(kProjecting);
  REQUIRE(append_nodes(document,
                       {.model = other,
                        .outputs = {"split"},
                        .inputs = {{"hidden", given()}},
                        .sizes = {{"R", SizeExpression::symbol("S")}},
                        .prefix = "o:",
                        .file = {}},
                       faults));
  const Json& nodes = *member_list(document, "nodes");
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[1]["name"] == "o:key");
  CHECK(nodes[1]["inputs"][0]["name"] == "y");
  CHECK(nodes[2]["outputs"][0]["shape"].dump() == R"([1,"S",2,4])");
  CHECK(nodes[2]["attrs"]["size"].dump() == R"([1,"S",2,4])");
  // Only the weights that are read come along, and the result is a template.
  bool has_table = false;
  for (const Json& weight : *member_list(document, "weights")) {
    has_table = has_table || *member_text(weight, "name") == "o:table";
  }
  CHECK_FALSE(has_table);
  set_member(document, "graph_outputs", Json::array({nodes[2]["outputs"][0]}));
  const Template result = Template::read(document, "joined", faults);
  CHECK_FALSE(faults.has_errors());
  bind_sizes(result, {{"S", 5}}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
}

TEST_CASE("a part that needs another input, or another size, is refused", "[states]") {
  const Template other = test::template_of(kProjecting);
  const auto refusal = [&](const std::string& output, const SizeSubstitution& sizes) {
    Json document = encoder();
    Diagnostics faults;
    CHECK_FALSE(append_nodes(document,
                             {.model = other,
                              .outputs = {output},
                              .inputs = {{"hidden", given()}},
                              .sizes = sizes,
                              .prefix = "o:",
                              .file = {}},
                             faults));
    return faults.entries().empty() ? std::string() : faults.entries().front().text;
  };
  CHECK(refusal("mixed", {{"R", SizeExpression::symbol("S")}}) ==
        "'mixed' depends on the input 'ids', not on a source alone");
  CHECK(refusal("split", {}) == "the size 'R' is none of a source");

  Json stored = encoder();
  (*find_member(stored, "npu"))["weights_file"] = "encoder.safetensors";
  Diagnostics faults;
  CHECK_FALSE(append_nodes(stored,
                           {.model = other,
                            .outputs = {"split"},
                            .inputs = {{"hidden", given()}},
                            .sizes = {{"R", SizeExpression::symbol("S")}},
                            .prefix = "o:",
                            .file = {}},
                           faults));
  CHECK_THAT(faults.entries().front().text, Catch::Contains("npu.weights_file"));
}

}  // namespace
}  // namespace npu::states

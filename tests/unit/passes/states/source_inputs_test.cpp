// SPDX-License-Identifier: Apache-2.0
#include "passes/states/source_inputs.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "passes/states/adopt_caches.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::states {
namespace {

constexpr const char* kCrossing = R"(
    size B 1..4; size P 1..64; size R 1..64; size U 1..64
    input ids [B,1] int64; input past_k [B,2,P,4]; input past_v [B,2,P,4]
    input past_key_values.0.encoder.key [B,2,R,4]; input past_key_values.0.encoder.value [B,2,R,4]
    input encoder_hidden_states [B,U,8]
    weight table [9,8]
    x = embedding(table, ids) [B,1,8]
    split = view(x) [B,1,2,4] {"size": ["B", 1, 2, 4]}
    q = transpose.int(split) [B,2,1,4] {"dim0": 1, "dim1": 2}
    present_k = cat(past_k, q) [B,2,"P + 1",4] {"dim": 2, "_tensor_list_sizes": [2]}
    present_v = cat(past_v, q) [B,2,"P + 1",4] {"dim": 2, "_tensor_list_sizes": [2]}
    own = scaled_dot_product_attention(q, present_k, present_v) [B,2,1,4]
    y = scaled_dot_product_attention(own, past_key_values.0.encoder.key, past_key_values.0.encoder.value) [B,2,1,4]
    present.0.encoder.key = clone(past_key_values.0.encoder.key) [B,2,R,4]
    flat = view(y) [B,1,8] {"size": ["B", 1, 8]}
    logits = linear(flat, table) [B,1,9]
    output logits; output present_k; output present_v; output present.0.encoder.key)";

std::string states_text(const Json& document) {
  return find_member(*find_member(document, "npu"), "states")->dump();
}

TEST_CASE("inputs of a source become states that are only read", "[states]") {
  Diagnostics faults;
  const auto document = adopt_caches(test::template_of(kCrossing),
                                     {.capacity = 16, .names = {}, .source_rows = 10}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  CHECK(states_text(*document) ==
        R"([{"name":"past_k","input":"past_k","output":"present_k","axis":2},)"
        R"({"name":"past_v","input":"past_v","output":"present_v","axis":2},)"
        R"({"name":"past_key_values.0.encoder.key","input":"past_key_values.0.encoder.key"},)"
        R"({"name":"past_key_values.0.encoder.value","input":"past_key_values.0.encoder.value"}])");
  for (const Json& input : *member_list(*document, "graph_inputs")) {
    const std::string& name = *member_text(input, "name");
    CHECK(name != "encoder_hidden_states");  // nothing reads it
    if (name.starts_with("past_key")) CHECK(find_member(input, "shape")->dump() == "[1,2,10,4]");
  }
  // What only hands a state on is no output.
  CHECK(member_list(*document, "graph_outputs")->size() == 3);
}

TEST_CASE("rows of a source are stated where they vary", "[states]") {
  const auto refusal = [](const std::string& text, const AdoptOptions& options) {
    Diagnostics faults;
    CHECK_FALSE(adopt_caches(test::template_of(text), options, faults));
    return faults.entries().empty() ? std::string() : faults.entries().front().text;
  };
  CHECK_THAT(refusal(kCrossing, {.capacity = 16}),
             Catch::Contains("'past_key_values.0.encoder.key' has 'R' rows of a source: say with "
                             "--source-rows"));
  CHECK_THAT(refusal("size T 1..4; input x [1,T]; y = relu(x) [1,T]; output y",
                     {.capacity = 16, .names = {}, .source_rows = 3}),
             Catch::Contains("no input comes of an encoder's source"));
}

}  // namespace
}  // namespace npu::states

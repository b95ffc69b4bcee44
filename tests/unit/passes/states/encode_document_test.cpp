// SPDX-License-Identifier: Apache-2.0
#include "passes/states/encode_document.hpp"

#include <string>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "passes/padding/pad_graph.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::states {
namespace {

constexpr const char* kEncoder = R"(
    size B 1..4; size S 1..64
    input ids [B,S] int64; input attention_mask [B,S] int64
    weight table [9,8]
    x = embedding(table, ids) [B,S,8]
    column = unsqueeze(attention_mask) [B,S,1] int64 {"dim": 2}
    last_hidden_state = mul.Tensor(x, column) [B,S,8]
    output last_hidden_state)";

constexpr const char* kCross = R"(
    size B 1..4; size R 1..64; size T 1..8
    input ids [B,T] int64; input encoder_hidden_states [B,R,8]
    weight k [8,8]
    present.0.encoder.key = linear(encoder_hidden_states, k) [B,R,8]
    y = neg(ids) [B,T] int64
    output y; output present.0.encoder.key)";

/// A decoder that reads states.
Json decoder(const std::string& inputs, const Json& states) {
  Json document = test::template_document("size T 1..8; " + inputs +
                                          "input x [1,T]; y = relu(x) [1,T]; output y");
  set_member(*find_member(document, "npu"), "states", states);
  return document;
}

Json read_only(const std::string& name) { return {{"name", name}, {"input", name}}; }

std::string fault_of(const Json& decoder, const char* cross) {
  Diagnostics faults;
  std::optional<Template> other;
  if (cross != nullptr) other = test::template_of(cross);
  CHECK_FALSE(encode_document(test::template_of(kEncoder), decoder, "decode.json",
                              other ? &*other : nullptr, faults));
  return faults.entries().empty() ? std::string() : faults.entries().front().text;
}

TEST_CASE("an encoder writes what a decoder reads, and is proved for padding", "[states]") {
  const Json wanted = decoder(
      "input encoder_attention_mask [1,12] int64; input past_key_values.0.encoder.key "
      "[1,12,8]; input encoder_hidden_states [1,16,8]; ",
      Json::array({read_only("encoder_attention_mask"),
                   read_only("past_key_values.0.encoder.key"),
                   read_only("encoder_hidden_states"),
                   {{"name", "own"}, {"input", "a"}, {"output", "b"}}}));
  Diagnostics faults;
  const Template cross = test::template_of(kCross);
  const auto document =
      encode_document(test::template_of(kEncoder), wanted, "decode.json", &cross, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  const Json& npu = *find_member(*document, "npu");
  CHECK(npu["generate"].dump() == R"({"source":"ids"})");
  CHECK(npu["states"].size() == 3);
  CHECK(npu["symbols"].dump() == R"({"S":{"min":1,"max":12,"of":[["ids",1]]}})");
  CHECK(member_list(*document, "graph_inputs")->size() == 1);
  const Template model = Template::read(*document, "encode.json", faults);
  const PaddedGraph padded = pad_graph(model, {{"S", 8}}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  CHECK(padded.graph.tensor(padded.graph.graph_outputs()[1]).shape == Shape{1, 12, 8});
}

TEST_CASE("an encoder of a fixed size may give keys of cross attention itself", "[states]") {
  const Template listener = test::template_of(R"(
    size B 1..4; input audio_features [B,8,16]
    hidden_states = transpose.int(audio_features) [B,16,8] {"dim0": 1, "dim1": 2}
    present_key_cross_0 = relu(hidden_states) [B,16,8]
    output hidden_states; output present_key_cross_0)");
  const Json wanted =
      decoder("input past_key_cross_0 [1,16,8]; ", Json::array({read_only("past_key_cross_0")}));
  Diagnostics faults;
  const auto document = encode_document(listener, wanted, "decode.json", nullptr, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  const Json& npu = *find_member(*document, "npu");
  CHECK(npu["generate"]["source"] == "audio_features");
  CHECK(npu["states"].dump() == R"([{"name":"past_key_cross_0","output":"past_key_cross_0"}])");
  CHECK_FALSE(npu.contains("symbols"));
  assemble_graph(*document, "encode.json", faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
}

TEST_CASE("states that an encoder cannot give are refused", "[states]") {
  const std::string key = "past_key_values.0.encoder.key";
  const Json wanted = decoder("input " + key + " [1,12,8]; ", Json::array({read_only(key)}));
  CHECK_THAT(fault_of(wanted, nullptr),
             Catch::Contains("is neither an output of the encoder nor 'present.0.encoder.key' of a "
                             "decoder: give with --cross"));
  CHECK_THAT(fault_of(wanted, kEncoder), Catch::Contains("none of its outputs is a state"));
  const Json wide = decoder("input " + key + " [1,12,9]; ", Json::array({read_only(key)}));
  CHECK_THAT(fault_of(wide, kCross), Catch::Contains("is float32 [1,12,9]"));
  const Json unmasked = decoder("input " + key + " [1,12,8]; ", Json::array({read_only(key)}));
  CHECK_THAT(fault_of(unmasked, kCross),
             Catch::Contains("the decoder has no mask of its source, so that all rows count"));
  CHECK_THAT(fault_of(decoder("", Json::array()), nullptr),
             Catch::Contains("has no state that it only reads"));
}

}  // namespace
}  // namespace npu::states

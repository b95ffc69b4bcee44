// SPDX-License-Identifier: Apache-2.0
// Caches that are stacked, by the forms in which parts are taken and put together.
#include "passes/states/plain/unstack_caches.hpp"

#include <string>

#include "catch.hpp"
#include "passes/states/adopt_caches.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::unstack_test {
namespace {

constexpr const char* kSelects = R"(
    k = select.int(past) [B,2,P,4] {"dim": 0, "index": 0}
    v = select.int(past) [B,2,P,4] {"dim": 0, "index": -1})";
constexpr const char* kStack = R"(
    present = stack(keys, values) [2,B,2,"P + T",4] {"dim": 0, "_tensor_list_sizes": [2]})";

std::string stacked_decoder(const std::string& taken, const std::string& stacked,
                            const std::string& past = "2,B,2,P,4") {
  return R"(
    size B 1..4; size P 1..64; size T 1..64
    input ids [B,T] int64; input past [)" +
         past + R"(]
    weight table [9,8]; weight head [9,8]
    x = embedding(table, ids) [B,T,8]
    split = view(x) [B,T,2,4] {"size": ["B", "T", 2, 4]}
    q = transpose.int(split) [B,2,T,4] {"dim0": 1, "dim1": 2})" +
         taken + R"(
    keys = cat(k, q) [B,2,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    values = cat(v, q) [B,2,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]})" +
         stacked + R"(
    places = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    mask = le.Tensor(places, column) [T,"P + T"] bool
    y = scaled_dot_product_attention(q, keys, values, mask) [B,2,T,4]
    back = transpose.int(y) [B,T,2,4] {"dim0": 1, "dim1": 2}
    flat = reshape(back) [B,T,8] {"shape": ["B", "T", 8]}
    logits = linear(flat, head) [B,T,9]
    output logits; output present)";
}

/// The name, operands and results of every node up to the masks.
std::string nodes(const Json& document) {
  std::string text;
  for (const Json& node : document["nodes"]) {
    if (node["name"] == "places") break;
    std::string operands;
    for (const Json& input : node["inputs"]) {
      operands += (operands.empty() ? "" : " ") + input["name"].get<std::string>();
    }
    text += (text.empty() ? "" : "; ") + node["outputs"][0]["name"].get<std::string>() + "(" +
            operands + ")";
  }
  return text;
}

std::string mentions(const Json& list) {
  std::string text;
  for (const Json& each : list) {
    text += (text.empty() ? "" : "; ") + each["name"].get<std::string>() + each["shape"].dump();
  }
  return text;
}

Json apart(const std::string& text) {
  std::vector<std::string> reasons;
  auto document = states::unstack_caches(test::template_of(text), {}, reasons);
  CHECK(reasons.empty());
  REQUIRE(document);
  return *std::move(document);
}

std::string kept(const std::string& text) {
  std::vector<std::string> reasons;
  CHECK_FALSE(states::unstack_caches(test::template_of(text), {}, reasons));
  std::string all;
  for (const std::string& reason : reasons) all += (all.empty() ? "" : "; ") + reason;
  return all;
}

constexpr const char* kPlain =
    "x(table ids); split(x); q(split); present.0(past.0 q); present.1(past.1 q)";

}  // namespace

TEST_CASE("states: a stack of keys and values has an input and an output for each", "[states]") {
  const Json document = apart(stacked_decoder(kSelects, kStack));
  CHECK(nodes(document) == kPlain);
  CHECK(mentions(document["graph_inputs"]) ==
        R"(ids["B","T"]; past.0["B",2,"P",4]; past.1["B",2,"P",4])");
  CHECK(mentions(document["graph_outputs"]) == R"(logits["B","T",9]; )"
                                               R"(present.0["B",2,"P + T",4]; )"
                                               R"(present.1["B",2,"P + T",4])");
}

TEST_CASE("states: every form of a stack is taken apart", "[states]") {
  const std::string split = R"(
    parts = split_with_sizes(past) [1,B,2,P,4] | [1,B,2,P,4] {"split_sizes": [1, 1], "dim": 0}
    k1 = getitem(parts_0, parts_1) [1,B,2,P,4] {"index": 0}
    v1 = getitem(parts_0, parts_1) [1,B,2,P,4] {"index": 1}
    k = reshape(k1) [B,2,P,4] {"shape": ["B", 2, "P", 4]}
    v = squeeze.dim(v1) [B,2,P,4] {"dim": 0})";
  const std::string unbound = R"(
    parts = unbind.int(past) [B,2,P,4] | [B,2,P,4] {"dim": 0}
    k = getitem(parts_0, parts_1) [B,2,P,4] {"index": 0}
    v = getitem(parts_0, parts_1) [B,2,P,4] {"index": 1})";
  const std::string slices = R"(
    k1 = slice.Tensor(past) [1,B,2,P,4] {"dim": 0, "start": 0, "end": 1}
    v1 = slice.Tensor(past) [1,B,2,P,4] {"dim": 0, "start": 1, "end": 9223372036854775807}
    k = select.int(k1) [B,2,P,4] {"dim": 0, "index": 0}
    v = squeeze.dim(v1) [B,2,P,4] {"dim": 0})";
  const std::string joined = R"(
    k2 = unsqueeze(keys) [1,B,2,"P + T",4] {"dim": 0}
    v2 = reshape(values) [1,B,2,"P + T",4] {"shape": [1, "B", 2, "P + T", 4]}
    whole = cat(k2, v2) [2,B,2,"P + T",4] {"dim": 0, "_tensor_list_sizes": [2]}
    present = clone(whole) [2,B,2,"P + T",4])";
  for (const std::string& taken : {std::string(kSelects), split, unbound, slices}) {
    CHECK(nodes(apart(stacked_decoder(taken, joined))) == kPlain);
    CHECK(nodes(apart(stacked_decoder(taken, kStack))) == kPlain);
  }
}

TEST_CASE("states: a stack along another dimension, and of stacks", "[states]") {
  const Json between = apart(stacked_decoder(R"(
    k = select.int(past) [B,2,P,4] {"dim": 1, "index": 0}
    v = select.int(past) [B,2,P,4] {"dim": 1, "index": 1})",
                                             R"(
    present = stack(keys, values) [B,2,2,"P + T",4] {"dim": 1, "_tensor_list_sizes": [2]})",
                                             "B,2,2,P,4"));
  CHECK(nodes(between) == kPlain);
  CHECK(mentions(between["graph_inputs"]) ==
        R"(ids["B","T"]; past.0["B",2,"P",4]; past.1["B",2,"P",4])");
  // As layers, of which there is one here, with keys and values.
  const Json layers = apart(stacked_decoder(R"(
    layer = select.int(past) [2,B,2,P,4] {"dim": 0, "index": 0}
    k = select.int(layer) [B,2,P,4] {"dim": 0, "index": 0}
    v = select.int(layer) [B,2,P,4] {"dim": 0, "index": 1})",
                                            R"(
    both = stack(keys, values) [2,B,2,"P + T",4] {"dim": 0, "_tensor_list_sizes": [2]}
    present = unsqueeze(both) [1,2,B,2,"P + T",4] {"dim": 0})",
                                            "1,2,B,2,P,4"));
  CHECK(nodes(layers) ==
        "x(table ids); split(x); q(split); present.0.0(past.0.0 q); present.0.1(past.0.1 q)");
}

TEST_CASE("states: what reads a part of the new stack reads that output", "[states]") {
  std::string text = stacked_decoder(kSelects, std::string(kStack) + R"(
    seen = select.int(present) [B,2,"P + T",4] {"dim": 0, "index": 1})");
  text.replace(text.find("(q, keys, values,"), 17, "(q, keys, seen,");
  const Json document = apart(text);
  for (const Json& node : document["nodes"]) {
    if (node["name"] == "y")
      CHECK(mentions(node["inputs"]).find("present.1[") != std::string::npos);
  }
}

TEST_CASE("states: a stack that is none of caches for certain stays one", "[states]") {
  const std::string swapped = R"(
    present = stack(values, keys) [2,B,2,"P + T",4] {"dim": 0, "_tensor_list_sizes": [2]})";
  const std::string reason =
      "output 'present' stays a stack of caches: part 0 is made of part 1 of input 'past', "
      "expected the same part of 'past', along one dimension";
  CHECK(kept(stacked_decoder(kSelects, swapped)) == reason);
  CHECK(kept(stacked_decoder(kSelects, kStack, "3,B,2,P,4")).find("expected the same part") !=
        std::string::npos);
  CHECK(kept(stacked_decoder(R"(
    k = select.int(past) [B,2,P,4] {"dim": 0, "index": 0}
    v = select.int(past) [B,2,P,4] {"dim": 0, "index": 1})",
                             kStack, "3,B,2,P,4")) ==
        "output 'present' stays a stack of caches: it has 2 parts, and input 'past' 3");
  CHECK(kept(stacked_decoder(kSelects, std::string(kStack) + "\n    r = relu(past) [2,B,2,P,4]")) ==
        "output 'present' stays a stack of caches: node 'r' ('relu') reads more than a part of "
        "'past'");
  // Told behind the refusal.
  Diagnostics faults;
  CHECK_FALSE(adopt_caches(test::template_of(stacked_decoder(kSelects, swapped)), {.capacity = 16},
                           faults));
  REQUIRE(faults.entries().size() == 2);
  CHECK(faults.entries()[0].text.starts_with("output 'present' is no concatenation"));
  CHECK(faults.entries()[1].text == reason);
}

TEST_CASE("states: parts of a stack become states", "[states]") {
  Diagnostics faults;
  const auto document =
      adopt_caches(test::template_of(stacked_decoder(kSelects, kStack)), {.capacity = 16}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  CHECK((*document)["npu"]["states"] ==
        Json{{{"name", "past.0"}, {"input", "past.0"}, {"output", "present.0"}, {"axis", 2}},
             {{"name", "past.1"}, {"input", "past.1"}, {"output", "present.1"}, {"axis", 2}}});
}

TEST_CASE("states: new rows that are stacked leave a cache one, with a batch inside", "[states]") {
  std::string text = stacked_decoder(R"(
    both = stack(q, q) [2,B,2,T,4] {"dim": 0, "_tensor_list_sizes": [2]}
    present = cat(past, both) [2,B,2,"P + T",4] {"dim": 3, "_tensor_list_sizes": [2]})",
                                     "");
  const std::size_t from = text.find("    keys = cat");
  text.replace(from, text.find("    places =") - from, R"(
    keys = select.int(present) [B,2,"P + T",4] {"dim": 0, "index": 0}
    values = select.int(present) [B,2,"P + T",4] {"dim": 0, "index": 1}
)");
  Diagnostics faults;
  const auto document = adopt_caches(test::template_of(text), {.capacity = 16}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  CHECK(mentions((*document)["graph_inputs"]).find("past[2,1,2,16,4]") != std::string::npos);
}

}  // namespace npu::unstack_test

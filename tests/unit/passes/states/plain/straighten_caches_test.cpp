// SPDX-License-Identifier: Apache-2.0
// Caches that are turned before new rows are put behind them.
#include "passes/states/plain/straighten_caches.hpp"

#include <string>

#include "catch.hpp"
#include "passes/states/adopt_caches.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::straighten_test {
namespace {

/// As transformers 3 has the keys of GPT-2.
std::string turned_decoder(const std::string& back) {
  return R"(
    size B 1..4; size P 1..64; size T 1..64
    input ids [B,T] int64; input past_k [B,2,P,4]; input past_v [B,2,P,4]
    weight table [9,8]; weight head [9,8]
    x = embedding(table, ids) [B,T,8]
    split = view(x) [B,T,2,4] {"size": ["B", "T", 2, 4]}
    q = transpose.int(split) [B,2,T,4] {"dim0": 1, "dim1": 2}
    new = permute(split) [B,2,4,T] {"dims": [0, 2, 3, 1]}
    before = transpose.int(past_k) [B,2,4,P] {"dim0": -2, "dim1": -1}
    keys = cat(before, new) [B,2,4,"P + T"] {"dim": -1, "_tensor_list_sizes": [2]}
    present_k = )" +
         back + R"(
    present_v = cat(past_v, q) [B,2,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    places = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    mask = le.Tensor(places, column) [T,"P + T"] bool
    scores = matmul(q, keys) [B,2,T,"P + T"]
    hidden = where.ScalarOther(mask, scores) [B,2,T,"P + T"] {"other": "-inf"}
    shares = softmax.int(hidden) [B,2,T,"P + T"] {"dim": -1}
    y = matmul(shares, present_v) [B,2,T,4]
    back = transpose.int(y) [B,T,2,4] {"dim0": 1, "dim1": 2}
    flat = reshape(back) [B,T,8] {"shape": ["B", "T", 8]}
    logits = linear(flat, head) [B,T,9]
    output logits; output present_k; output present_v)";
}

constexpr const char* kBack = R"(permute(keys) [B,2,"P + T",4] {"dims": [0, 1, 3, 2]})";

}  // namespace

TEST_CASE("states: new rows are put behind a cache as it comes", "[states]") {
  const auto document = states::straighten_caches(test::template_of(turned_decoder(kBack)));
  REQUIRE(document);
  std::string text;
  for (const Json& node : (*document)["nodes"]) {
    const Json& result = node["outputs"][0];
    if (node["name"] == "present_v") break;
    text += result["name"].get<std::string>() + result["shape"].dump() + " = ";
    for (const Json& input : node["inputs"]) text += input["name"].get<std::string>() + " ";
    text += node["attrs"].dump() + "\n";
  }
  CHECK(text.substr(text.find("new[")) == R"(new["B",2,4,"T"] = split {"dims":[0,2,3,1]}
new.turned["B",2,"T",4] = new {"dims":[0,1,3,2]}
present_k["B",2,"P + T",4] = past_k new.turned {"dim":2,"_tensor_list_sizes":[2]}
keys["B",2,4,"P + T"] = present_k {"dims":[0,1,3,2]}
)");
}

TEST_CASE("states: a cache that is turned becomes a state as it comes", "[states]") {
  Diagnostics faults;
  const auto document =
      adopt_caches(test::template_of(turned_decoder(kBack)), {.capacity = 16}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  CHECK((*document)["npu"]["states"][0] ==
        Json{{"name", "past_k"}, {"input", "past_k"}, {"output", "present_k"}, {"axis", 2}});
}

TEST_CASE("states: what is not turned back is no cache", "[states]") {
  const std::string other = R"(permute(keys) ["P + T",2,B,4] {"dims": [3, 1, 0, 2]})";
  CHECK_FALSE(states::straighten_caches(test::template_of(turned_decoder(other))));
  // What is an output itself keeps its node.
  CHECK_FALSE(
      states::straighten_caches(test::template_of(turned_decoder(kBack) + "\n    output keys")));
}

}  // namespace npu::straighten_test

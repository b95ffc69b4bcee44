// SPDX-License-Identifier: Apache-2.0
// Which biases of scores by position are computed for all rows of a state, as what nodes, and which
// are refused.
#include "passes/states/place_step.hpp"

#include <string>

#include "catch.hpp"
#include "passes/states/adopt_caches.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::place_test {
namespace {

/// A decoder with attention written out, whose scores are made by `lines` of "scores" [1,2,T,P +
/// T].
std::string decoder(const std::string& lines) {
  return R"(
    size P 1..64; size T 1..64
    input ids [1,T] int64; input attention_mask [1,"P + T"] int64
    input past_k [1,2,P,4]; input past_v [1,2,P,4]
    weight table [9,8]; weight head [9,8]; weight slopes [2,1,1]; weight biases [8,2]
    weight long [1,2,1,40]
    x = embedding(table, ids) [1,T,8]
    split = view(x) [1,T,2,4] {"size": [1, "T", 2, 4]}
    q = transpose.int(split) [1,2,T,4] {"dim0": 1, "dim1": 2}
    present_k = cat(past_k, q) [1,2,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    present_v = cat(past_v, q) [1,2,"P + T",4] {"dim": -2, "_tensor_list_sizes": [2]}
    keys = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    all = unsqueeze(keys) ["P + T",1] int64 {"dim": 1}
    seen = le.Tensor(keys, column) [T,"P + T"] bool
    mask = where.Scalar(seen) [T,"P + T"] {"self": 0.0, "other": "-inf"}
    turned = transpose.int(present_k) [1,2,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [1,2,T,"P + T"]
)" + lines +
         R"(
    shares = softmax.int(last) [1,2,T,"P + T"] {"dim": -1}
    y = matmul(shares, present_v) [1,2,T,4]
    back = transpose.int(y) [1,T,2,4] {"dim0": 1, "dim1": 2}
    flat = reshape(back) [1,T,8] {"shape": [1, "T", 8]}
    logits = linear(flat, head) [1,T,9]
    output logits; output present_k; output present_v)";
}

/// The nodes behind "scores", up to "shares", each with its op, operands and shape.
std::string written(const std::string& lines, std::int64_t capacity = 16) {
  Diagnostics faults;
  const auto document =
      adopt_caches(test::template_of(decoder(lines)), {.capacity = capacity}, faults);
  std::string text;
  for (const Diagnostic& fault : faults.entries()) text += "error: " + fault.text;
  if (!document) return text;
  bool is_behind = false;
  for (const Json& node : (*document)["nodes"]) {
    const auto name = node["name"].get<std::string>();
    if (name == "shares") break;
    if (is_behind) {
      std::string op = node["op_type"];
      op = op.substr(op.find('.') + 1);
      text += (text.empty() ? "" : "; ") + name + " = " + op.substr(0, op.find('.')) + "(";
      for (std::size_t i = 0; i < node["inputs"].size(); ++i) {
        text += (i == 0 ? "" : " ") + node["inputs"][i]["name"].get<std::string>();
      }
      text += ")" + node["outputs"][0]["shape"].dump();
    }
    is_behind = is_behind || name == "scores";
  }
  return text;
}

constexpr const char* kMasked = R"(
    biased = add.Tensor(scores, bias) [1,2,T,"P + T"]
    last = add.Tensor(biased, mask) [1,2,T,"P + T"])";
const std::string kMaskedNodes =
    R"(biased = add(scores bias)[1,2,"T",16]; length_mask = length_mask(cache_position)[1,1,"T",16]; )"
    R"(last = where(length_mask biased)[1,2,"T",16])";
const std::string kKeys = R"(keys_1 = arange()[16]; last_position = select(cache_position)[]; )"
                          R"(keys_used = minimum(keys_1 last_position)[16]; )";

}  // namespace

TEST_CASE("states: a slope by distance is computed for the used keys and repeated behind them",
          "[states]") {
  CHECK(written(std::string(R"(
    apart = sub.Tensor(keys, column) [T,"P + T"] int64
    far = to.dtype(apart) [T,"P + T"] {"dtype": "torch.float32"}
    bias = mul.Tensor(far, slopes) [2,T,"P + T"])") +
                kMasked) ==
        kKeys + R"(far_1 = view(keys_used)[1,16]; far_2 = view(cache_position)["T",1]; )" +
            R"(far_3 = sub(far_1 far_2)["T",16]; far_4 = to(far_3)["T",16]; )" +
            R"(bias = mul(far_4 slopes)[2,"T",16]; )" + kMaskedNodes);
}

TEST_CASE("states: a slope by key, counted in the mask of ones", "[states]") {
  // As BLOOM has it: scores and bias without the batch.
  CHECK(written(R"(
    counted = cumsum(attention_mask) [1,"P + T"] int64 {"dim": -1}
    before = sub.Scalar(counted) [1,"P + T"] int64 {"other": 1}
    place = mul.Tensor(before, attention_mask) [1,"P + T"] int64
    row = unsqueeze(place) [1,1,"P + T"] int64 {"dim": 1}
    slope = view(slopes) [2,1] {"size": [2, 1]}
    alibi = mul.Tensor(slope, row) [1,2,"P + T"]
    bias = reshape(alibi) [2,1,"P + T"] {"shape": [2, 1, "P + T"]}
    flat_scores = view(scores) [2,T,"P + T"] {"size": [2, "T", "P + T"]}
    sum = add.Tensor(flat_scores, bias) [2,T,"P + T"]
    heads = view(sum) [1,2,T,"P + T"] {"size": [1, 2, "T", "P + T"]}
    last = add.Tensor(heads, mask) [1,2,T,"P + T"])") ==
        R"(slope = view(slopes)[2,1]; flat_scores = view(scores)[2,"T",16]; )" + kKeys +
            R"(row_1 = view(keys_used)[1,1,16]; alibi = mul(slope row_1)[1,2,16]; )" +
            R"(bias = reshape(alibi)[2,1,16]; sum = add(flat_scores bias)[2,"T",16]; )" +
            R"(heads = view(sum)[1,2,"T",16]; )" +
            R"(length_mask = length_mask(cache_position)[1,1,"T",16]; )" +
            R"(last = where(length_mask heads)[1,2,"T",16])");
}

namespace {
// As T5 has it: of all rows by all keys, cut to the new ones, with the mask added to it.
constexpr const char* kBuckets = R"(
    apart = sub.Tensor(keys, all) ["P + T","P + T"] int64
    near = clamp(apart) ["P + T","P + T"] int64 {"max": 0}
    back_1 = neg(near) ["P + T","P + T"] int64
    bucket = clamp(back_1) ["P + T","P + T"] int64 {"max": 7}
    found = embedding(biases, bucket) ["P + T","P + T",2]
    first = permute(found) [2,"P + T","P + T"] {"dims": [2, 0, 1]}
    whole = unsqueeze(first) [1,2,"P + T","P + T"] {"dim": 0}
    new = slice.Tensor(whole) [1,2,T,"P + T"] {"dim": 2, "start": "-T"}
    bias = add.Tensor(new, mask) [1,2,T,"P + T"]
    last = add.Tensor(scores, bias) [1,2,T,"P + T"])";
}  // namespace

TEST_CASE("states: of a bias for all rows those of the new ones are computed", "[states]") {
  CHECK(written(kBuckets) ==
        kKeys + R"(apart_1 = view(keys_used)[1,16]; apart_2 = view(cache_position)["T",1]; )" +
            R"(apart_3 = sub(apart_1 apart_2)["T",16]; near = clamp(apart_3)["T",16]; )" +
            R"(back_1 = neg(near)["T",16]; bucket = clamp(back_1)["T",16]; )" +
            R"(found = embedding(biases bucket)["T",16,2]; first = permute(found)[2,"T",16]; )" +
            R"(whole = reshape(first)[1,2,"T",16]; )" +
            R"(length_mask = length_mask(cache_position)[1,1,"T",16]; )" +
            R"(mask_1 = where(length_mask)[1,1,"T",16]; mask_2 = view(mask_1)["T",16]; )" +
            R"(bias = add(whole mask_2)[1,2,"T",16]; last = add(scores bias)[1,2,"T",16])");
}

TEST_CASE("states: a mask that chooses in a bias hides keys", "[states]") {
  CHECK(written(R"(
    far = mul.Tensor(keys, slopes) [2,1,"P + T"]
    bias = where.ScalarOther(seen, far) [2,T,"P + T"] {"other": "-inf"}
    last = add.Tensor(scores, bias) [1,2,T,"P + T"])") ==
        R"(length_mask = length_mask(cache_position)[1,1,"T",16]; )"
        R"(seen_1 = view(length_mask)["T",16]; )" +
            kKeys +
            R"(far = mul(keys_used slopes)[2,1,16]; bias = where(seen_1 far)[2,"T",16]; )"
            R"(last = add(scores bias)[1,2,"T",16])");
}

TEST_CASE("states: the end of a table of biases is read by the numbers of its rows", "[states]") {
  const std::string end = R"(
    bias = slice.Tensor(long) [1,2,1,"P + T"] {"dim": 3, "start": "40 - P - T"})";
  CHECK(written(end + kMasked) ==
        kKeys + R"(bias.rows = add(keys_used)[16]; bias.rows_1 = view(last_position)[1]; )" +
            R"(bias.rows_2 = sub(bias.rows bias.rows_1)[16]; )" +
            R"(bias = index_select(long bias.rows_2)[1,2,1,16]; )" + kMaskedNodes);
  CHECK(written(end + kMasked, 41) ==
        "error: node 'biased' ('add.Tensor') reads 'bias', which is cut from a table of 40 rows, "
        "fewer than the capacity needs");
  // From the front, too.
  const std::string front = R"(
    bias = slice.Tensor(long) [1,2,1,"P + T"] {"dim": 3, "end": "P + T"})";
  CHECK(written(front + kMasked) ==
        kKeys + R"(bias = index_select(long keys_used)[1,2,1,16]; )" + kMaskedNodes);
  CHECK(written(front + kMasked, 41).starts_with("error: node 'biased' ('add.Tensor') reads"));
}

TEST_CASE("states: with a bias and without a mask all keys up to the last one count", "[states]") {
  CHECK(
      written(R"(
    bias = mul.Tensor(keys, slopes) [2,1,"P + T"]
    last = add.Tensor(scores, bias) [1,2,T,"P + T"])") ==
      kKeys + R"(bias = mul(keys_used slopes)[2,1,16]; last = add(scores bias)[1,2,"T",16]; )" +
          R"(keys_used_1 = add(last_position)[]; length_mask = length_mask(keys_used_1)[1,1,1,16]; )" +
          R"(last.masked = where(length_mask last)[1,2,"T",16])");
}

TEST_CASE("states: what is not computed place by place is refused", "[states]") {
  // Numbers of rows that change with the past, by a sum over all of them.
  CHECK(written(std::string(R"(
    all_keys = mul.Tensor(keys, slopes) [2,1,"P + T"]
    most = sum.dim_IntList(all_keys) [2,1,1] {"dim": [2], "keepdim": true}
    bias = mul.Tensor(all_keys, most) [2,1,"P + T"])") +
                kMasked) ==
        "error: node 'most' ('sum.dim_IntList') computes with the number of past rows in a way "
        "that is not known, for node 'biased' ('add.Tensor')");
  CHECK(written(std::string(R"(
    all_keys = mul.Tensor(keys, slopes) [2,1,"P + T"]
    bias = flip(all_keys) [2,1,"P + T"] {"dims": [2]})") +
                kMasked) ==
        "error: node 'bias' ('flip') computes with the number of past rows in a way that is not "
        "known, for node 'biased' ('add.Tensor')");
  CHECK(written(std::string(R"(
    most = sum.dim_IntList(keys) [1] int64 {"dim": [0], "keepdim": true}
    bias = mul.Tensor(most, slopes) [2,1,1])") +
                kMasked) ==
        "error: node 'most' ('sum.dim_IntList') computes with the number of past rows in a way "
        "that is not known, for node 'biased' ('add.Tensor')");
  // A part of a bias that is neither all of it nor the new rows.
  CHECK(written(std::string(R"(
    all_keys = mul.Tensor(all, slopes) [2,"P + T",1]
    one = slice.Tensor(all_keys) [2,1,1] {"dim": 1, "start": 0, "end": 1}
    bias = mul.Tensor(one, keys) [2,1,"P + T"])") +
                kMasked)
            .starts_with("error: node 'one' ('slice.Tensor') computes with the number of past"));
  // A permutation whose result has other sizes than its operand.
  CHECK(written(R"(
    far = mul.Tensor(keys, slopes) [2,1,"P + T"]
    swapped = permute(far) [2,T,"P + T"] {"dims": [1, 2, 0]}
    last = add.Tensor(scores, swapped) [1,2,T,"P + T"])") ==
        "error: node 'swapped' ('permute') computes with the number of past rows in a way that is "
        "not known, for node 'last' ('add.Tensor')");
  // Hidden keys are hidden by what is added, not by what is taken off.
  CHECK(written(R"(
    far = mul.Tensor(keys, slopes) [2,1,"P + T"]
    bias = add.Tensor(far, mask) [2,T,"P + T"]
    last = sub.Tensor(scores, bias) [1,2,T,"P + T"])") ==
        "error: node 'last' ('sub.Tensor') hides keys other than by a sum");
  CHECK(written(R"(
    far = mul.Tensor(keys, slopes) [2,1,"P + T"]
    both = add.Tensor(far, mask) [2,T,"P + T"]
    bias = neg(both) [2,T,"P + T"]
    last = add.Tensor(scores, bias) [1,2,T,"P + T"])") ==
        "error: node 'bias' ('neg') computes with the number of past rows in a way that is not "
        "known, for node 'last' ('add.Tensor')");
  CHECK(written(std::string(R"(
    bias = mul.Tensor(keys, slopes) [2,1,"P + T"]
    output bias)") +
                kMasked) == "error: output 'bias' is computed of the number of past rows alone");
}

TEST_CASE("states: angles of all rows of which the new ones are cut", "[states]") {
  const std::string text = written(std::string(R"(
    numbers = to.dtype(keys) ["P + T"] {"dtype": "torch.float32"}
    ones = ones() [4] {"size": [4]}
    angles = einsum(numbers, ones) ["P + T",4] {"equation": "i,j->ij", "_tensor_list_sizes": [2]}
    both = cat(angles, angles) ["P + T",8] {"dim": -1, "_tensor_list_sizes": [2]}
    turns = cos(both) ["P + T",8]
    new = slice.Tensor(turns) [T,8] {"dim": 0, "start": "P", "end": "P + T"}
    sums = sum.dim_IntList(new) [T,1] {"dim": [1], "keepdim": true}
    bias = neg(sums) [T,1])") + kMasked);
  CHECK(text.starts_with(
      R"(ones = ones()[4]; numbers_1 = to(cache_position)["T"]; )"
      R"(angles = einsum(numbers_1 ones)["T",4]; both = cat(angles angles)["T",8]; )"
      R"(turns = cos(both)["T",8]; sums = sum(turns)["T",1]; )"));
}

}  // namespace npu::place_test

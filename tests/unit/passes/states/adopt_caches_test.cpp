// SPDX-License-Identifier: Apache-2.0
// What documents with states say, and what is refused.
#include "passes/states/adopt_caches.hpp"

#include <string>

#include "catch.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::adopt_test {
namespace {

constexpr const char* kDecoder = R"(
    size B 1..4; size P 1..64; size T 1..64
    input ids [B,T] int64; input attention_mask [B,"P + T"] int64; input position_ids [B,T] int64
    input past_k [B,2,P,4]; input past_v [B,2,P,4]
    weight table [9,8]; weight head [9,8]
    x = embedding(table, ids) [B,T,8]
    split = view(x) [B,T,2,4] {"size": ["B", "T", 2, 4]}
    q = transpose.int(split) [B,2,T,4] {"dim0": 1, "dim1": 2}
    present_k = cat(past_k, q) [B,2,"P + T",4] {"dim": 2, "_tensor_list_sizes": [2]}
    present_v = cat(past_v, q) [B,2,"P + T",4] {"dim": -2, "_tensor_list_sizes": [2]}
    keys = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    mask = le.Tensor(keys, column) [T,"P + T"] bool
    y = scaled_dot_product_attention(q, present_k, present_v, mask) [B,2,T,4]
    back = transpose.int(y) [B,T,2,4] {"dim0": 1, "dim1": 2}
    flat = reshape(back) [B,T,8] {"shape": ["B", "T", 8]}
    logits = linear(flat, head) [B,T,9]
    output logits; output present_k; output present_v)";

/// The decoder with one line in place of that of another node, or behind the nodes.
std::string with(const std::string& node, const std::string& lines) {
  std::string text = kDecoder;
  const std::size_t begin = text.find("    " + node + " =");
  const std::size_t from = begin == std::string::npos ? text.find("    output logits") : begin;
  const std::size_t end = begin == std::string::npos ? from : text.find('\n', from) + 1;
  return text.replace(from, end - from, lines + "\n");
}

std::string refusal(const std::string& text, std::int64_t capacity = 16) {
  Diagnostics faults;
  const auto document = adopt_caches(test::template_of(text), {.capacity = capacity}, faults);
  CHECK_FALSE(document);
  std::string all;
  for (const Diagnostic& fault : faults.entries()) all += (all.empty() ? "" : "; ") + fault.text;
  return all;
}

Json adopted(const std::string& text) {
  Diagnostics faults;
  auto document = adopt_caches(test::template_of(text), {.capacity = 16}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  REQUIRE(document);
  return *std::move(document);
}

std::string ops(const Json& document) {
  std::string text;
  for (const Json& node : document["nodes"]) {
    std::string operands;
    for (const Json& input : node["inputs"]) {
      operands += (operands.empty() ? "" : " ") + input["name"].get<std::string>();
    }
    text += (text.empty() ? "" : "; ") + node["name"].get<std::string>() + "(" + operands + ")";
  }
  return text;
}

}  // namespace

TEST_CASE("states: caches become states, and a batch of one", "[states]") {
  const Json document = adopted(kDecoder);
  CHECK(ops(document) ==
        "x(table ids); split(x); q(split); positions(position_ids); "
        "present_k(past_k positions q); present_v(past_v positions q); length_mask(positions); "
        "y(q present_k present_v length_mask); back(y); flat(back); logits(flat head)");
  const Json& npu = document["npu"];
  CHECK(npu["states"] ==
        Json{{{"name", "past_k"}, {"input", "past_k"}, {"output", "present_k"}, {"axis", 2}},
             {{"name", "past_v"}, {"input", "past_v"}, {"output", "present_v"}, {"axis", 2}}});
  CHECK(npu["generate"] ==
        Json{{"tokens", "ids"}, {"positions", "position_ids"}, {"logits", "logits"}});
  CHECK(npu["symbols"] ==
        Json{{"T",
              {{"min", 1},
               {"max", 16},
               {"of", Json::array({Json::array({"ids", 1}), Json::array({"position_ids", 1})})}}}});
  std::string inputs;
  for (const Json& input : document["graph_inputs"]) {
    inputs += input["name"].get<std::string>() + input["shape"].dump() + " ";
  }
  CHECK(inputs == R"(ids[1,"T"] position_ids[1,"T"] past_k[1,2,16,4] past_v[1,2,16,4] )");
}

TEST_CASE("states: tokens and positions of 32 bits get 64", "[states]") {
  // As ONNX Runtime's own exporters have them.
  std::string text = with("x", R"(    word = embedding(table, ids) [B,T,8]
    place = embedding(table, position_ids) [B,T,8]
    x = add.Tensor(word, place) [B,T,8])");
  for (const char* name : {"ids [B,T] int64", "position_ids [B,T] int64"}) {
    const std::size_t at = text.find(std::string("input ") + name) + 6 + std::string(name).size();
    text.replace(at - 2, 2, "32");
  }
  const Json document = adopted(text);
  CHECK_THAT(ops(document), Catch::Contains("ids.int32(ids); "));
  CHECK_THAT(ops(document), Catch::Contains("word(table ids.int32); place(table "));
  CHECK(document["graph_inputs"][0]["dtype"] == "int64");
  CHECK(document["npu"]["generate"] ==
        Json{{"tokens", "ids"}, {"positions", "position_ids"}, {"logits", "logits"}});
}

TEST_CASE("states: ids that are no padding are counted behind the rows of the past", "[states]") {
  // As M2M100 has it.
  const Json document = adopted(with("x", R"(    seen = ne.Scalar(ids) [B,T] bool {"other": 1}
    one = to.dtype(seen) [B,T] int64 {"dtype": "torch.int64"}
    count = cumsum(one) [B,T] int64 {"dim": 1}
    behind = add.Tensor(count) [B,T] int64 {"other": "P"}
    place = mul.Tensor(behind, one) [B,T] int64
    x = embedding(table, place) [B,T,8])"));
  CHECK(ops(document).starts_with(
      "seen(ids); one(seen); count(one); positions(position_ids); first_position(positions); "
      "behind(count first_position); place(behind one); x(table place)"));
  CHECK(document["nodes"][5]["op_type"] == "aten.add.Tensor");
  CHECK_FALSE(document["nodes"][5]["attrs"].contains("other"));
}

TEST_CASE("states: a mask of ones that is repeated", "[states]") {
  // As T5 has it: seq_ids.repeat(batch, T, 1) <= seq_ids[:, None], behind ones for the past.
  const Json document =
      adopted(with("mask", R"(    new = arange() [T] int64 {"end": "T", "dtype": "torch.int64"}
    row = view(new) [1,1,T] int64 {"size": [1, 1, "T"]}
    rows = repeat(row) [B,T,T] int64 {"repeats": ["B", "T", 1]}
    down = view(new) [1,T,1] int64 {"size": [1, "T", 1]}
    own = le.Tensor(rows, down) [B,T,T] bool
    before = full() [B,T,P] bool {"size": ["B", "T", "P"], "fill_value": true, "dtype": "torch.bool"}
    both = cat(before, own) [B,T,"P + T"] bool {"dim": 2, "_tensor_list_sizes": [2]}
    mask = view(both) [B,1,T,"P + T"] bool {"size": ["B", 1, "T", "P + T"]})"));
  CHECK(ops(document).find("length_mask(positions); y(q present_k present_v length_mask)") !=
        std::string::npos);
}

TEST_CASE("states: a mask of which a part is assigned", "[states]") {
  // As Falcon and BLOOM had it: a triangle is put behind what is shown of the past.
  const std::string part = R"(    new = arange() [T] int64 {"end": "T", "dtype": "torch.int64"}
    down = unsqueeze(new) [T,1] int64 {"dim": 1}
    own = le.Tensor(new, down) [T,T] bool
    all = full() [T,"P + T"] bool {"size": ["T", "P + T"], "fill_value": true, "dtype": "torch.bool"}
    mask = slice_scatter(all, own) [T,"P + T"] bool {"dim": 1, "start": "P", "end": "P + T"})";
  CHECK(ops(adopted(with("mask", part))).find("length_mask(positions); y(") != std::string::npos);
  // Other rows of the part would be an other mask.
  std::string late = part;
  late.replace(late.find("\"start\": \"P\""), 12, "\"start\": 0")
      .replace(late.find("\"end\": \"P + T\"}"), 16, "\"end\": \"T\"}");
  CHECK(refusal(with("mask", late)).find("'y'") != std::string::npos);
}

TEST_CASE("states: what is no cache is told", "[states]") {
  CHECK(refusal(R"(
    size P 1..8; input x [1,P]
    y = relu(x) [1,P]
    output y)") ==
        "no output is the concatenation of an input and new rows along a size that varies, as a "
        "cache is; what a step replaces as a whole is named by --state INPUT=OUTPUT, without "
        "--states");
  CHECK(refusal(R"(
    size P 1..8; input past [1,P]; input new [1,1]
    n = relu(past) [1,P]
    present = cat(n, new) [1,"P + 1"] {"dim": 1, "_tensor_list_sizes": [2]}
    output present)") ==
        "output 'present' is no concatenation of an input and new rows: node 'present' "
        "('aten.cat.default') gives it; if a step replaces it as a whole, say so with --state "
        "INPUT=present");
  CHECK(refusal(R"(
    size P 1..8; size Q 1..8; input a [1,P]; input b [1,Q]; input new [1,1]
    c = cat(a, new) [1,"P + 1"] {"dim": 1, "_tensor_list_sizes": [2]}
    d = cat(b, new) [1,"Q + 1"] {"dim": 1, "_tensor_list_sizes": [2]}
    output c; output d)") == "caches 'c' and 'd' have P + 1 and Q + 1 rows, expected one number");
}

TEST_CASE("states: what unused rows could change is refused by name", "[states]") {
  CHECK(refusal(with("",
                     "    s = sum.dim_IntList(present_v) [B,2,4] {\"dim\": [2]}\n"
                     "    output s")) ==
        "node 's' ('sum.dim_IntList') reads rows of a cache, which only an attention may");
  CHECK(refusal(with("", "    r = relu(past_v) [B,2,P,4]\n    output r")) ==
        "node 'r' ('relu') reads 'past_v' other than to put new rows behind it");
  CHECK(refusal(with("mask", R"(    later = add.Scalar(column) [T,1] int64 {"other": 1}
    mask = le.Tensor(keys, later) [T,"P + T"] bool)")) ==
        "node 'y' ('scaled_dot_product_attention') reads a mask 'mask' that shows keys up to 1 "
        "behind the position of a row");
  CHECK(refusal(with("mask", R"(    odd = remainder.Scalar(keys) ["P + T"] int64 {"other": 2}
    mask = le.Tensor(odd, column) [T,"P + T"] bool)")) ==
        "node 'y' ('scaled_dot_product_attention') has a mask that does not follow from positions");
  CHECK(
      refusal(with(
          "mask", R"(    least = full() [T,"P + T"] {"size": ["T", "P + T"], "fill_value": -10000.0}
    mask = triu(least) [T,"P + T"] {"diagonal": "P + 1"})")) ==
      "node 'y' ('scaled_dot_product_attention') has a mask that hides no key for certain");
  CHECK(
      refusal(
          with(
              "y",
              R"(    y = scaled_dot_product_attention(q, present_k, present_v) [B,2,T,4] {"is_causal": true})"))
          .starts_with("node 'y' ('scaled_dot_product_attention') is causal from the first key"));
  CHECK(refusal(with("",
                     "    e = full() [\"P + T\"] {\"size\": [\"P + T\"], \"fill_value\": 1.0}\n"
                     "    output e")) == "output 'e' is computed of the number of past rows alone");
}

TEST_CASE("states: scores with a cap keep their nodes and get the mask once", "[states]") {
  const Json document = adopted(
      with("y", R"(    turned = transpose.int(present_k) [B,2,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [B,2,T,"P + T"]
    part = div.Scalar(scores) [B,2,T,"P + T"] {"other": 5.0}
    bent = tanh(part) [B,2,T,"P + T"]
    capped = mul.Scalar(bent) [B,2,T,"P + T"] {"other": 5.0}
    hidden = where.ScalarOther(mask, capped) [B,2,T,"P + T"] {"other": "-inf"}
    shares = softmax.int(hidden) [B,2,T,"P + T"] {"dim": -1}
    y = matmul(shares, present_v) [B,2,T,4])"));
  CHECK(ops(document).find(
            "turned(present_k); scores(q turned); part(scores); bent(part); capped(bent); "
            "length_mask(positions); hidden(length_mask capped); shares(hidden); "
            "y(shares present_v)") != std::string::npos);
}

TEST_CASE("states: an attention reads a bias with the mask in it, or behind one of the length",
          "[states]") {
  CHECK(ops(adopted(with("mask", R"(    seen = le.Tensor(keys, column) [T,"P + T"] bool
    far = mul.Scalar(keys) ["P + T"] {"other": 0.5}
    mask = where.ScalarOther(seen, far) [T,"P + T"] {"other": "-inf"})")))
            .find("far(keys_used); mask(seen_1 far); y(q present_k present_v mask)") !=
        std::string::npos);
  CHECK(ops(adopted(with("mask", R"(    far = mul.Scalar(keys) ["P + T"] {"other": 0.5}
    mask = unsqueeze(far) [1,"P + T"] {"dim": 0})")))
            .find("mask(far); keys_used_1(last_position); length_mask(keys_used_1); "
                  "mask.masked(length_mask); mask.masked_1(mask.masked mask); "
                  "y(q present_k present_v mask.masked_1)") != std::string::npos);
}

TEST_CASE("states: rows of a table that is cut to all rows are taken of the table", "[states]") {
  const std::string cut = R"(
    input turns [1,1,64,4]
    cut = slice.Tensor(turns) [1,1,"P + T",4] {"dim": 2, "start": 0, "end": "P + T"}
    seen = reshape(cut) ["P + T",4] {"shape": ["P + T", 4]}
    taken = index_select(seen, here) [T,4] {"dim": 0}
    row = reshape(taken) [1,1,T,4] {"shape": [1, 1, "T", 4]}
    turned = mul.Tensor(q, row) [B,2,T,4])";
  std::string text = with("mask", cut + "\n    mask = le.Tensor(keys, column) [T,\"P + T\"] bool");
  text.replace(text.find("attention(q,"), 12, "attention(turned,");
  const Json document = adopted(text);
  CHECK(ops(document).find("seen.whole(turns); taken(seen.whole positions)") != std::string::npos);
  // A table with fewer rows than the caches is not read behind its end, which the range says.
  std::string less = text;
  for (std::size_t at = less.find("64,4"); at != std::string::npos; at = less.find("64,4")) {
    less.replace(at, 4, "15,4");
  }
  less.replace(less.find("size P 1..64; size T 1..64"), 26, "size P 1..7; size T 1..7");
  CHECK(refusal(less).find("size 'P' is at most 7; expected --capacity of at most 8") !=
        std::string::npos);
  less.replace(less.find("size P 1..7"), 11, "size P 4..7");
  CHECK(refusal(less).find("size 'P' is at least 4, but a decoder begins without a past") !=
        std::string::npos);
}

TEST_CASE("states: what hides nothing, and a bound that hides, are left out", "[states]") {
  const std::string written = R"(
    up = transpose.int(present_k) [B,2,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, up) [B,2,T,"P + T"]
    ones = to.dtype(attention_mask) [B,"P + T"] {"dtype": "torch.float32"}
    less = rsub.Scalar(ones) [B,"P + T"] {"other": 1}
    low = mul.Tensor(less) [B,"P + T"] {"other": -1e30}
    four = view(low) [B,1,1,"P + T"] {"size": ["B", 1, 1, "P + T"]}
    hidden = where.ScalarOther(mask, scores) [B,2,T,"P + T"] {"other": -1e30}
    sum = add.Tensor(hidden, four) [B,2,T,"P + T"]
    bound = clamp_min(sum) [B,2,T,"P + T"] {"min": -1e30}
    share = softmax.int(bound) [B,2,T,"P + T"] {"dim": -1}
    y = matmul(share, present_v) [B,2,T,4])";
  const Json document = adopted(with("y", written));
  CHECK(ops(document).find("y(q present_k present_v length_mask)") != std::string::npos);
  // An output is not left out.
  std::string ends = with("logits", R"(
    plain = linear(flat, head) [B,T,9]
    nothing = zeros() [B,T,9] {"size": ["B", "T", 9]}
    logits = add.Tensor(plain, nothing) [B,T,9])");
  CHECK(ops(adopted(ends)).find("logits(plain nothing)") != std::string::npos);
}

TEST_CASE("states: scores less the largest of them are the scores", "[states]") {
  // As gpt-oss has it, with a sink behind them.
  const Json document = adopted(
      with("y", R"(    turned = transpose.int(present_k) [B,2,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(q, turned) [B,2,T,"P + T"]
    hidden = where.ScalarOther(mask, scores) [B,2,T,"P + T"] {"other": "-inf"}
    sink = sum.dim_IntList(q) [B,2,T,1] {"dim": [3], "keepdim": true}
    all = cat(hidden, sink) [B,2,T,"P + T + 1"] {"dim": -1, "_tensor_list_sizes": [2]}
    most = amax(all) [B,2,T,1] {"dim": [-1], "keepdim": true}
    less = sub.Tensor(all, most) [B,2,T,"P + T + 1"]
    shares = softmax.int(less) [B,2,T,"P + T + 1"] {"dim": -1}
    cut = slice.Tensor(shares) [B,2,T,"P + T"] {"dim": 3, "start": 0, "end": "P + T", "step": 1}
    y = matmul(cut, present_v) [B,2,T,4])"));
  CHECK(ops(document).find("all(hidden sink); shares(all); cut(shares); y(cut present_v)") !=
        std::string::npos);
}

TEST_CASE("states: keys and values in one cache are cut apart", "[states]") {
  // As GPT-BigCode has it.
  const Json document = adopted(R"(
    size B 1..4; size P 1..64; size T 1..64
    input ids [B,T] int64; input attention_mask [B,"P + T"] int64
    input past [B,P,8]
    weight table [9,4]; weight head [9,4]
    x = embedding(table, ids) [B,T,4]
    new = cat(x, x) [B,T,8] {"dim": 2, "_tensor_list_sizes": [2]}
    present = cat(past, new) [B,"P + T",8] {"dim": 1, "_tensor_list_sizes": [2]}
    parts = split_with_sizes(present) [B,"P + T",4] | [B,"P + T",4] {"split_sizes": [4, 4], "dim": 2}
    k = getitem(parts_0, parts_1) [B,"P + T",4] {"index": 0}
    v = getitem(parts_0, parts_1) [B,"P + T",4] {"index": 1}
    keys = arange() ["P + T"] int64 {"end": "P + T", "dtype": "torch.int64"}
    here = arange.start() [T] int64 {"start": "P", "end": "P + T", "dtype": "torch.int64"}
    column = unsqueeze(here) [T,1] int64 {"dim": 1}
    mask = le.Tensor(keys, column) [T,"P + T"] bool
    turned = transpose.int(k) [B,4,"P + T"] {"dim0": 1, "dim1": 2}
    scores = matmul(x, turned) [B,T,"P + T"]
    hidden = where.ScalarOther(mask, scores) [B,T,"P + T"] {"other": "-inf"}
    shares = softmax.int(hidden) [B,T,"P + T"] {"dim": -1}
    y = matmul(shares, v) [B,T,4]
    logits = linear(y, head) [B,T,9]
    output logits; output present)");
  CHECK(ops(document).find("k(present); v(present); ") != std::string::npos);
  CHECK(document["npu"]["states"].size() == 1);
}

TEST_CASE("states: rows of a cache are mixed each for itself", "[states]") {
  // As DeepSeek's compressed keys are taken apart, and as values of two heads are joined.
  const Json document = adopted(with(
      "y",
      R"(    both = cat(present_k, present_v) [B,2,"P + T",8] {"dim": 3, "_tensor_list_sizes": [2]}
    twice = repeat(both) [B,4,"P + T",8] {"repeats": [1, 2, 1, 1]}
    wide = linear(twice, head) [B,4,"P + T",9]
    half = slice.Tensor(wide) [B,2,"P + T",9] {"dim": 1, "start": 0, "end": 2, "step": 1}
    k = slice.Tensor(half) [B,2,"P + T",4] {"dim": 3, "start": 0, "end": 4, "step": 1}
    y = scaled_dot_product_attention(q, k, present_v, mask) [B,2,T,4])"));
  CHECK(ops(document).find("both(present_k present_v); twice(both); wide(twice head)") !=
        std::string::npos);
  // Rows among each other are not.
  CHECK(refusal(with("", R"(    r = transpose.int(present_v) [B,2,4,"P + T"] {"dim0": 2, "dim1": 3}
    s = linear(r, r) [B,2,4,4]
    output s)"))
            .starts_with("node 's' ('linear') reads rows of a cache"));
}

TEST_CASE("states: a window that hides what a joined mask shows", "[states]") {
  // As Mistral had it: zeros for the past beside a triangle, then what is too far behind.
  const Json document =
      adopted(with("mask", R"(    new = arange() [T] int64 {"end": "T", "dtype": "torch.int64"}
    down = unsqueeze(new) [T,1] int64 {"dim": 1}
    own = le.Tensor(new, down) [T,T] bool
    before = full() [T,P] bool {"size": ["T", "P"], "fill_value": true, "dtype": "torch.bool"}
    both = cat(before, own) [T,"P + T"] bool {"dim": 1, "_tensor_list_sizes": [2]}
    ones = full() [T,"P + T"] bool {"size": ["T", "P + T"], "fill_value": true, "dtype": "torch.bool"}
    far = tril(ones) [T,"P + T"] bool {"diagonal": "P - 5"}
    mask = masked_fill.Scalar(both, far) [T,"P + T"] bool {"value": false})"));
  CHECK(ops(document).find("y(q present_k present_v length_mask)") != std::string::npos);
  for (const Json& node : document["nodes"]) {
    if (node["name"] == "length_mask") CHECK(node["attrs"]["window"] == 5);
  }
}

TEST_CASE("states: a mask of scores with heads between rows and keys", "[states]") {
  // A kernel's mask is of [rows, keys]; this one is computed as it is.
  const Json document =
      adopted(with("y", R"(    down = transpose.int(q) [B,T,2,4] {"dim0": 1, "dim1": 2}
    first = slice.Tensor(present_k) [B,1,"P + T",4] {"dim": 1, "start": 0, "end": 1, "step": 1}
    turned = transpose.int(first) [B,1,4,"P + T"] {"dim0": 2, "dim1": 3}
    scores = matmul(down, turned) [B,T,2,"P + T"]
    seen = view(mask) [1,T,1,"P + T"] bool {"size": [1, "T", 1, "P + T"]}
    hidden = where.ScalarOther(seen, scores) [B,T,2,"P + T"] {"other": "-inf"}
    shares = softmax.int(hidden) [B,T,2,"P + T"] {"dim": -1}
    values = slice.Tensor(present_v) [B,1,"P + T",4] {"dim": 1, "start": 0, "end": 1, "step": 1}
    mixed = matmul(shares, values) [B,T,2,4]
    y = transpose.int(mixed) [B,2,T,4] {"dim0": 1, "dim1": 2})"));
  CHECK(ops(document).find("seen_1(length_mask); hidden(seen_1 scores); shares(hidden)") !=
        std::string::npos);
}

TEST_CASE("states: a mask that is no row of ones is not guessed", "[states]") {
  std::string text = kDecoder;
  text.replace(text.find("attention_mask [B,\"P + T\"]"), 26, "attention_mask [B,1,\"P + T\"]");
  CHECK(
      refusal(text).starts_with("input 'attention_mask' [1, 1, P + T] has a size that follows "
                                "from the past; expected only caches and a mask [1, P + T]"));
}

TEST_CASE("states: a genai_config.json says what inputs are called", "[states]") {
  const auto config = [](const char* text) {
    return genai_config(parse_json(text, "g.json"), "g.json");
  };
  const GenaiConfig read = config(R"({"model": {"context_length": 99, "decoder": {
    "inputs": {"input_ids": "a", "attention_mask": "b", "position_ids": "c",
               "past_key_names": "past.%d.key"},
    "outputs": {"logits": "d"}}}, "search": {"max_length": 7}})");
  CHECK(read.names.tokens == "a");
  CHECK(read.names.mask == "b");
  CHECK(read.names.positions == "c");
  CHECK(read.names.logits == "d");
  CHECK(read.max_length == 7);
  CHECK(config("{}").names.tokens.empty());
  CHECK_THROWS_WITH(config("[]"), Catch::Contains("expected an object"));
  CHECK_THROWS_WITH(config(R"({"search": {"max_length": 0}})"),
                    Catch::Contains("expected a number of tokens above 0, found 0"));
  CHECK_THROWS_WITH(config(R"({"model": {"decoder": {"inputs": {"input_ids": 3}}}})"),
                    Catch::Contains("expected a string, found 3"));
}

}  // namespace npu::adopt_test

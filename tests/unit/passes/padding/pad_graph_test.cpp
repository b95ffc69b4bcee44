// SPDX-License-Identifier: Apache-2.0
#include "passes/padding/pad_graph.hpp"

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/bind_sizes.hpp"
#include "template_lines.hpp"

using namespace npu;
using namespace npu::test;

namespace {

PaddedGraph padded(std::string_view lines, const SizeBindings& capacities) {
  Diagnostics faults;
  PaddedGraph result = pad_graph(template_of(lines), capacities, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  return result;
}

std::string refusal(std::string_view lines, const SizeBindings& capacities) {
  Diagnostics faults;
  pad_graph(template_of(lines), capacities, faults);
  std::string text;
  for (const Diagnostic& fault : faults.entries()) text += (text.empty() ? "" : "; ") + fault.text;
  return text;
}

// "x 1 S R; y 1 S F": what is proved.
std::string claims(const padding::PaddingSection& section) {
  std::string text;
  for (const padding::PaddedTensor& entry : section.tensors) {
    text += (text.empty() ? "" : "; ") + entry.name + " " + std::to_string(entry.dim) + " " +
            entry.size.text() + " " + entry.tail.text();
  }
  return text;
}

// "mask zero on x of dim 1 for y"
std::string masks(const padding::PaddingSection& section) {
  std::string text;
  for (const padding::PaddingMask& mask : section.masks) {
    text += (text.empty() ? "" : "; ") + std::string(padding::fill_name(mask.fill)) + " on " +
            mask.tensor + " dim " + std::to_string(mask.dim) + " for";
    for (const std::string& reader : mask.readers) text += " " + reader;
  }
  return text;
}

std::string ops(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text += (text.empty() ? "" : " ") + node.name + ":" + node.op_type;
  }
  return text;
}

}  // namespace

TEST_CASE("padding: rows that ops treat alike need nothing", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [1,S,8]; weight w [8,8]; weight g [8]
    a = linear(x, w) [1,S,8]
    b = layer_norm(a, g) [1,S,8] {"normalized_shape": [8], "_none_args": ["bias"]}
    c = log(b) [1,S,8]
    output c)",
                                    {{"S", 16}});
  CHECK(claims(result.padding) == "x 1 S R; a 1 S R; b 1 S R; c 1 S R");
  CHECK(result.padding.masks.empty());
  CHECK(result.graph.graph_inputs().size() == 1);
  CHECK(format_padding(result.padding) == "padding of S proved for 1..16: 4 tensors, 0 masks\n");
}

TEST_CASE("padding: a size with one value beside one that varies", "[padding]") {
  const PaddedGraph result = padded(R"(
    size B 1..8; size S 1..64; input x [B,S,8]
    y = relu(x) [B,S,8]
    output y)",
                                    {{"B", 1}, {"S", 16}});
  CHECK(claims(result.padding) == "x 1 S R; y 1 S R");
}

TEST_CASE("padding: a sum over rows is masked where that is cheapest", "[padding]") {
  // relu keeps zeros, and x is smaller than what is expanded from it.
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [1,S,1]; input y [1,S,8]
    a = relu(x) [1,S,1]
    b = mul.Tensor(a, y) [1,S,8]
    c = sum.dim_IntList(b) [1,8] {"dim": [1]}
    output c)",
                                    {{"S", 16}});
  CHECK(masks(result.padding) == "zero on x dim 1 for a");
  CHECK(result.padding.cut == 64);
  CHECK(result.padding.flow == 64);
  CHECK(claims(result.padding) == "x 1 S R; y 1 S R; x:tail 1 S Z; a 1 S Z; b 1 S Z");
  CHECK(result.padding.symbols[0].valid == "npu.n.S");
  CHECK(result.graph.tensor(result.graph.graph_inputs().back()).name == "npu.n.S");
}

TEST_CASE("padding: attention is masked at its small mask", "[padding]") {
  constexpr auto kBert = R"(
    size S 1..64; input x [2,S,16]; input mask [2,1,1,S]
    q = view(x) [2,S,4,4] {"size": [2, "S", 4, 4]}
    h = transpose.int(q) [2,4,S,4] {"dim0": 1, "dim1": 2}
    k = transpose.int(h) [2,4,4,S] {"dim0": 2, "dim1": 3}
    scores = matmul(h, k) [2,4,S,S]
    masked = add.Tensor(scores, mask) [2,4,S,S]
    shares = softmax.int(masked) [2,4,S,S] {"dim": -1}
    mixed = matmul(shares, h) [2,4,S,4]
    back = transpose.int(mixed) [2,S,4,4] {"dim0": 1, "dim1": 2}
    y = view(back) [2,S,16] {"size": [2, "S", 16]}
    output y)";
  const PaddedGraph result = padded(kBert, {{"S", 32}});
  CHECK(masks(result.padding) == "lowest on mask dim 3 for masked");
  CHECK(result.padding.cut == 2 * 32 * 4);
  CHECK(claims(result.padding).ends_with("y 1 S R"));
}

TEST_CASE("padding: attention without a mask gets one", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..64; input q [2,4,S,8]; input k [2,4,S,8]
    y = scaled_dot_product_attention(q, k, k) [2,4,S,8] {"_none_args": ["attn_mask"]}
    z = scaled_dot_product_attention(y, k, k) [2,4,S,8]
    output z)",
                                    {{"S", 32}});
  CHECK(masks(result.padding) == "zero on keys.S.4 dim 3 for y z");
  CHECK(result.padding.cut == 32);
  // A causal one sees no rows behind its own.
  const PaddedGraph causal = padded(R"(
    size S 1..64; input q [2,4,S,8]; input k [2,4,S,8]
    y = scaled_dot_product_attention(q, k, k) [2,4,S,8] {"is_causal": true}
    output y)",
                                    {{"S", 32}});
  CHECK(causal.padding.masks.empty());
  CHECK(claims(causal.padding) == "q 2 S R; k 2 S R; y 2 S F");
}

TEST_CASE("padding: rows of a cache are written where their positions say", "[padding]") {
  // Rows of the padding write the last one again, and see what it sees.
  const PaddedGraph result = padded(R"(
    size T 1..32; input q [1,4,T,8]; input new [1,4,T,8]; input at [T] int64
    input state [1,4,64,8]
    k = index_copy(state, at, new) [1,4,64,8] {"dim": 2}
    mask = npu.length_mask(at) [1,1,T,64] bool {"operands": "positions", "keys": 64, "causal": true}
    y = scaled_dot_product_attention(q, k, k, mask) [1,4,T,8]
    output k; output y)",
                                    {{"T", 16}});
  CHECK(result.padding.masks.empty());
  CHECK(claims(result.padding) == "q 2 T R; new 2 T R; at 0 T R; mask 2 T R; y 2 T R");
}

TEST_CASE("padding: a mean becomes a sum over the number of rows", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [2,S,8]
    y = mean.dim(x) [2,8] {"dim": [1], "keepdim": false}
    output y)",
                                    {{"S", 16}});
  CHECK(ops(result.graph) ==
        "size.S.float32:aten._to_copy.default x:tail:npu.tail y:sum:aten.sum.dim_IntList "
        "y:aten.div.Tensor");
  CHECK(masks(result.padding) == "zero on x dim 1 for y:sum");
}

TEST_CASE("padding: a window that rounds has its size computed", "[padding]") {
  const PaddedGraph result = padded(R"(
    size H 8..64; input x [1,3,H,8]; weight w [4,3,3,3]
    c = conv2d(x, w) [1,4,"(H - 1) // 2 + 1",4] {"stride": [2, 2], "padding": [1, 1]}
    y = adaptive_avg_pool2d(c) [1,4,1,1] {"output_size": [1, 1]}
    output y)",
                                    {{"H", 32}});
  CHECK(masks(result.padding) == "zero on x dim 2 for c; zero on c dim 2 for y:sum");
}

TEST_CASE("padding: the last row is read where it is", "[padding]") {
  // It is repeated: nothing has to be computed.
  const PaddedGraph easy = padded(R"(
    size S 1..64; input x [2,S,8]
    y = select.int(x) [2,8] {"dim": 1, "index": -1}
    output y)",
                                  {{"S", 16}});
  CHECK(ops(easy.graph) == "y:aten.select.int");
  const PaddedGraph hard = padded(R"(
    size S 1..64; input x [2,S,8]
    c = cumsum(x) [2,S,8] {"dim": 1}
    y = select.int(c) [2,8] {"dim": 1, "index": -1}
    output y)",
                                  {{"S", 16}});
  CHECK(ops(hard.graph) ==
        "size.n.S.add.-1:aten.add.Scalar size.S - 1.row:aten.view.default c:aten.cumsum.default "
        "y:row:aten.index_select.default y:aten.squeeze.dim");
}

TEST_CASE("padding: rows that are counted from the end are those of the valid ones", "[padding]") {
  const auto last_two = [](const std::string& bounds) {
    return ops(
        padded("size S 1..64; input x [2,S,8]; input kept [2,2,8]\n"
               "all = cat(kept, x) [2,\"S + 2\",8] {\"dim\": 1, \"_tensor_list_sizes\": [2]}\n"
               "y = slice.Tensor(all) [2,2,8] {\"dim\": 1, " +
                   bounds + "}\noutput y",
               {{"S", 16}})
            .graph);
  };
  const std::string taken =
      "rows.2:aten.arange.default size.S.rows.2:aten.add.Tensor all:aten.cat.default "
      "y:aten.index_select.default";
  CHECK(last_two(R"("start": -2)") == taken);
  // As importers write it: the start is an expression, which a bound document has as a number.
  CHECK(last_two(R"("start": "S")") == taken);
  CHECK(last_two(R"("start": "S", "end": "S + 2")") == taken);
  CHECK(last_two(R"("start": -2, "end": 9223372036854775807)") == taken);
  const PaddedGraph inner = padded(R"(
    size S 4..64; input x [2,S,8]
    y = slice.Tensor(x) [2,2,8] {"dim": 1, "start": -4, "end": "S - 2"}
    z = select.int(x) [2,8] {"dim": 1, "index": -3}
    output y; output z)",
                                   {{"S", 16}});
  CHECK(ops(inner.graph) ==
        "size.n.S.add.-4:aten.add.Scalar rows.2:aten.arange.default "
        "size.S - 4.rows.2:aten.add.Tensor size.n.S.add.-3:aten.add.Scalar "
        "rows.1:aten.arange.default size.S - 3.rows.1:aten.add.Tensor "
        "y:aten.index_select.default z:row:aten.index_select.default z:aten.squeeze.dim");
}

TEST_CASE("padding: sizes of a later round stand behind those that they are made of", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..5; input x [1,1,S,5]; weight w [2,1,2,2]; weight b [2]
    c = conv2d(x, w, b) [1,2,"(S + 1) // 2 + 1",10] {"stride": [2, 1], "padding": [2, 3], "dilation": [2, 1]}
    r = relu(c) [1,2,"(S + 1) // 2 + 1",10]
    a = add_.Scalar(r) [1,2,"(S + 1) // 2 + 1",10] {"other": 2.0}
    m = mean.dim(a) [1,1,1,1] {"dim": [0, 1, 2, 3], "keepdim": true}
    output m)",
                                    {{"S", 5}});
  CHECK(result.graph.nodes().size() > 4);
}

TEST_CASE("padding: what has no rule is refused by name", "[padding]") {
  const auto of = [](const std::string& node) {
    return refusal(
        "size S 4..64; size T 1..8; input x [2,8,S]; input i [S] int64; input z [T,4]; "
        "weight t [40,4]\n" +
            node + "\noutput y",
        {{"S", 32}, {"T", 4}});
  };
  CHECK(of(R"(y = flip(x) [2,8,S] {"dims": [2]})") ==
        "node 'y': 'aten.flip' moves rows of the padded dimension 2; compile for exact sizes with "
        "--bind, or leave it out of the bucketed part");
  CHECK(of(R"(y = group_norm(x) [2,8,S] {"num_groups": 2, "_none_args": ["weight", "bias"]})") ==
        "node 'y': a group norm over 'S' mixes padding into its statistics (no rule yet)");
  CHECK(of(R"(y = select.int(x) [2,8] {"dim": 2, "index": -5})") ==
        "node 'y': 5 rows from the end are more than the padded size 'S' has at its least");
  CHECK(of(R"(y = slice.Tensor(x) [2,8,2] {"dim": 2, "start": -4, "step": 2})") ==
        "node 'y': start -4 counts from the end of the padded size 'S'");
  CHECK(of(R"(y = pow.Tensor_Scalar(x) [2,8,S] {"exponent": "S"})") ==
        "node 'y': attribute 'exponent' varies with 'S' other than as a shape");
  CHECK(of(R"(y = linspace() [3] {"start": 0.0, "end": "S", "steps": 3})") ==
        "node 'y': attribute 'end' varies with 'S' other than as a shape");
  CHECK(refusal(R"(size S 1..8; input x [1,S]; y = squeeze(x) [S]; output y)", {{"S", 8}}) ==
        "node 'y': it drops the padded size 'S' where that is 1");
  CHECK(of(R"(y = argsort(x) [2,8,S] int64 {"dim": -1})")
            .starts_with("node 'y': 'aten.argsort' moves rows of the padded dimension 2"));
  CHECK(of(R"(y = avg_pool1d(x) [2,8,S] {"kernel_size": [3], "stride": [1], "padding": [1], )"
           R"("count_include_pad": false})") ==
        "node 'y': an average pool whose divisor leaves padding out depends on 'S'");
  CHECK(refusal("size S 1..8; input x [1,2,S]; y = max_pool1d(x) [1,2,S] {\"kernel_size\": [3], "
                "\"stride\": [1], \"padding\": [3], \"dilation\": [3]}; output y",
                {{"S", 8}}) ==
        "node 'y': a window has nothing but padding where the padded size 'S' is below 3; narrow "
        "the range of its size: --bind NAME=MIN..MAX");
  CHECK(of(R"(y = npu.unknown(x) [2,8,S])") ==
        "node 'y': there is no padding rule for operator 'npu.unknown'");
}

TEST_CASE("padding: indices behind the valid ones stay in range", "[padding]") {
  // cumsum counts on: the last valid index is repeated.
  const PaddedGraph result = padded(R"(
    size S 1..64; input m [1,S] int64; weight t [70,4]
    c = cumsum(m) [1,S] int64 {"dim": 1}
    y = embedding(t, c) [1,S,4]
    output y)",
                                    {{"S", 64}});
  CHECK(masks(result.padding) == "edge on c dim 1 for y");
  // Those that no input decides are in range at the capacity, or the model is wrong.
  const PaddedGraph fixed = padded(R"(
    size S 1..64; input x [S,4]; weight t [70,4]
    i = arange() [S] int64 {"end": "S"}
    e = embedding(t, i) [S,4]
    y = add.Tensor(e, x) [S,4]
    output y)",
                                   {{"S", 64}});
  CHECK(fixed.padding.masks.empty());
  CHECK(claims(fixed.padding) == "x 0 S R; i 0 S F; e 0 S F; y 0 S F");
}

TEST_CASE("padding: bounds of an index are found once for each tensor", "[padding]") {
  // 2^31 times its last row, if each sum looked at both of its operands anew.
  std::string lines = "size S 1..64; input x [S,4]; i0 = arange() [S] int64 {\"end\": \"S\"}\n";
  for (int i = 0; i < 31; ++i) {
    const std::string from = "i" + std::to_string(i);
    lines += "i" + std::to_string(i + 1) + " = add.Tensor(" + from + ", " + from + ") [S] int64\n";
  }
  lines +=
      "y = index.Tensor(x, i31) [S,4] {\"_tensor_list_sizes\": [1], "
      "\"_tensor_list_none_masks\": [[false]]}\noutput y";
  CHECK(ops(padded(lines, {{"S", 64}}).graph).find("aten.masked_fill.Scalar") != std::string::npos);
}

TEST_CASE("padding: what follows a padded size in a concatenation is read where it is",
          "[padding]") {
  const std::string lines = R"(
    size S 1..4; size T 1..6; input x [2,S]; input z [2,T]
    y = cat(x, z) [2,"S + T"] {"dim": 1, "_tensor_list_sizes": [2]}
    output y)";
  const PaddedGraph result = padded(lines, {{"S", 4}, {"T", 6}});
  CHECK(masks(result.padding) ==
        "edge on y:place_1 dim 0 for y:rows; edge on y:place_3 dim 0 for y:rows_1");
  CHECK(claims(result.padding)
            .ends_with("y:rows_1 1 S + T R; y:place_4 0 S + T F; "
                       "y:place_5 0 S + T F; y:rows_2 1 S + T F; y 1 S + T F"));
}

TEST_CASE("padding: a view that moves rows is read at computed places", "[padding]") {
  const std::string lines = R"(
    size H 1..4; size W 1..5; input x [2,H,W]
    y = view(x) [2,"H*W"] {"size": [2, "H*W"]}
    output y)";
  const PaddedGraph result = padded(lines, {{"H", 4}, {"W", 5}});
  CHECK(masks(result.padding) ==
        "edge on y:place_1 dim 0 for y:rows; edge on y:place_2 dim 0 for y:rows");
  CHECK(claims(result.padding) ==
        "x 1 H R; x 2 W R; y:place 0 H*W F; y:place_1 0 H*W F; y:place_2 0 H*W F; "
        "y:place_1:tail 0 H*W R; y:place_2:tail 0 H*W R; y:rows 1 H*W R; y 1 H*W R");
  // Without that the padding of a row would stand in front of the next row.
  Diagnostics faults;
  Graph plain = bind_sizes(template_of(lines), {{"H", 4}, {"W", 5}}, faults);
  plain.set_npu_member("padding",
                       Json::parse(R"({"symbols": {"H": {"capacity": 4, "min": 1, "multiple_of": 1},
                                  "W": {"capacity": 5, "min": 1, "multiple_of": 1}},
                      "claim": "exact", "tensors": [["x", 1, "H", "R"], ["x", 2, "W", "R"],
                      ["y", 1, "H*W", "F"]], "masks": [], "cut": 0, "flow": 0})"));
  verify_padding(plain, faults);
  REQUIRE(faults.has_errors());
  CHECK(faults.entries().front().text ==
        "node 'y': it joins or parts rows of padded sizes, and moves their padding among them");
}

TEST_CASE("padding: joined rows are kept apart where a view parts them again", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [2,S,8]; weight w [8,4]; weight b [4]
    r = view(x) ["2*S",8] {"size": ["2*S", 8]}
    h = addmm(b, r, w) ["2*S",4]
    y = view(h) [2,S,4] {"size": [2, "S", 4]}
    output y)",
                                    {{"S", 16}});
  CHECK(ops(result.graph) ==
        "h:product:aten.matmul.default h:rows:aten.add.Tensor y:aten.view.default");
  CHECK(claims(result.padding) == "x 1 S R; h:product 1 S R; h:rows 1 S R; y 1 S R");
  // Nothing parts them: they are joined without their padding.
  const PaddedGraph joined = padded(R"(
    size S 1..64; input x [2,S,8]; weight w [8,4]
    r = view(x) ["2*S",8] {"size": ["2*S", 8]}
    y = mm(r, w) ["2*S",4]
    output y)",
                                    {{"S", 16}});
  CHECK(ops(joined.graph).find("r:rows:aten.index.Tensor r:aten.view.default y:aten.mm") !=
        std::string::npos);
}

TEST_CASE("padding: rows that are filled up to a fixed number are masked", "[padding]") {
  const char* const text = R"(
    size S 1..24; input x [1,S,4]
    y = relu(x) [1,S,4]
    z = constant_pad_nd(y) [1,24,4] {"pad": [0, 0, 0, "24 - S"]}
    output z)";
  for (const std::int64_t capacity : {8, 24}) {
    const PaddedGraph result = padded(text, {{"S", capacity}});
    CHECK(ops(result.graph).find("npu.tail") != std::string::npos);
    CHECK(result.padding.masks.size() == 1);
  }
  // In front they would move the rows, and other values are none that a mask writes.
  CHECK(refusal(R"(
    size S 1..24; input x [1,S,4]
    z = constant_pad_nd(x) [1,24,4] {"pad": [0, 0, "24 - S", 0]}
    output z)",
                {{"S", 24}})
            .find("attribute 'pad' varies") != std::string::npos);
  CHECK(refusal(R"(
    size S 1..24; input x [1,S,4]
    z = constant_pad_nd(x) [1,24,4] {"pad": [0, 0, 0, "24 - S"], "value": 1.0}
    output z)",
                {{"S", 16}})
            .find("node 'z'") != std::string::npos);
}

TEST_CASE("padding: an index that may be no valid row is guarded, once", "[padding]") {
  // Row 3 is there at the least size 4; row 4 is not, and would be one of the padding.
  const auto guards = [](std::int64_t row) {
    Json document = template_document(R"(
      size S 4..64; input x [S,4]; weight i [1] int64
      y = index.Tensor(x, i) [1,4] {"_tensor_list_sizes": [1]}
      z = index.Tensor(x, i) [1,4] {"_tensor_list_sizes": [1]}
      output y; output z)");
    document["constants"]["i"] = {{"data", {row}}, {"dtype", "int64"}};
    Diagnostics faults;
    const PaddedGraph result =
        pad_graph(Template::read(document, "constant", faults), {{"S", 32}}, faults);
    for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
    return std::count_if(
        result.graph.nodes().begin(), result.graph.nodes().end(),
        [](const Node& node) { return node.op_type == "aten.masked_fill.Scalar"; });
  };
  CHECK(guards(3) == 0);
  CHECK(guards(4) == 1);
}

TEST_CASE("padding: a changed certificate is refused", "[padding]") {
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [1,S,4]; input y [1,S,8]; weight w [8,4]
    a = relu(x) [1,S,4]
    l = linear(a, w) [1,S,8]
    b = mul.Tensor(l, y) [1,S,8]
    c = sum.dim_IntList(b) [1,8] {"dim": [1]}
    m = amax(y) [1,8] {"dim": [1]}
    o = add.Tensor(c, m) [1,8]
    output o)",
                                    {{"S", 16}});
  const Json section = *result.graph.npu_member("padding");
  const auto faults = [&](const Json& changed) {
    Graph graph = result.graph;
    graph.set_npu_member("padding", changed);
    Diagnostics diagnostics;
    verify_padding(graph, diagnostics);
    return diagnostics.error_count();
  };
  CHECK(faults(section) == 0);
  for (std::size_t i = 0; i < section["tensors"].size(); ++i) {
    for (const char* other : {"R", "Z", "N", "F", "A", "RZ", "RN"}) {
      Json changed = section;
      if (changed["tensors"][i][3] == other) continue;
      changed["tensors"][i][3] = other;
      INFO(changed["tensors"][i].dump());
      CHECK(faults(changed) > 0);
    }
    for (const char* other : {"S + 1", "S - 1", "16", "(S + 16) // 2", "T", "", "min(S, 4)"}) {
      Json changed = section;
      changed["tensors"][i][2] = other;
      INFO(changed["tensors"][i].dump());
      CHECK(faults(changed) > 0);
    }
    Json changed = section;
    changed["tensors"].erase(i);
    CHECK(faults(changed) > 0);
  }
  for (std::size_t i = 0; i < section["masks"].size(); ++i) {
    Json changed = section;
    changed["masks"][i]["fill"] = "edge";
    CHECK(faults(changed) > 0);
    changed = section;
    changed["masks"][i]["bytes"] = 1;
    CHECK(faults(changed) > 0);
    changed = section;
    changed["masks"].erase(i);
    CHECK(faults(changed) > 0);
  }
  Json changed = section;
  changed["symbols"]["S"]["capacity"] = 17;
  CHECK(faults(changed) > 0);
  changed = section;
  changed["symbols"]["S"]["valid"] = "x";
  CHECK(faults(changed) > 0);
  changed = section;
  changed["flow"] = 1 << 30;
  CHECK(faults(changed) > 0);
}

TEST_CASE("padding: rows that are finite stay so behind a mask of minus infinity", "[padding]") {
  // Positions that are added leave rows finite, no copies: one mask for all layers.
  const PaddedGraph result = padded(R"(
    size S 1..64; input x [1,S,8]; input mask [1,1,S]; weight t [64,8]
    i = arange() [S] int64 {"end": "S"}
    e = embedding(t, i) [S,8]
    h = add.Tensor(x, e) [1,S,8]
    k = transpose.int(h) [1,8,S] {"dim0": 1, "dim1": 2}
    s = matmul(h, k) [1,S,S]
    m = add.Tensor(s, mask) [1,S,S]
    p = softmax.int(m) [1,S,S] {"dim": -1}
    v = matmul(p, h) [1,S,8]
    k2 = transpose.int(v) [1,8,S] {"dim0": 1, "dim1": 2}
    s2 = matmul(v, k2) [1,S,S]
    m2 = add.Tensor(s2, mask) [1,S,S]
    p2 = softmax.int(m2) [1,S,S] {"dim": -1}
    y = matmul(p2, v) [1,S,8]
    output y)",
                                    {{"S", 32}});
  CHECK(masks(result.padding) == "lowest on mask dim 2 for m m2");
  CHECK(claims(result.padding).ends_with("y 1 S F"));
}

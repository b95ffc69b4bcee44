// SPDX-License-Identifier: Apache-2.0
#include "passes/padding/sink_last_row.hpp"

#include <string>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "passes/padding/pad_graph.hpp"
#include "template_lines.hpp"

using namespace npu;
using namespace npu::test;

namespace {

PaddedGraph last_row(std::string_view lines, const SizeBindings& capacities) {
  Diagnostics faults;
  PaddedGraph result = pad_graph(template_of(lines), capacities, faults, {.last_row_of = "logits"});
  for (const Diagnostic& fault : faults.entries()) FAIL_CHECK(format_diagnostic(fault));
  return result;
}

// "y = relu(x) [1,4]": the nodes, a line each, with the names of operands.
std::string nodes(const PaddedGraph& padded) {
  std::string text;
  for (const Node& node : padded.graph.nodes()) {
    text += node.name + " = " + node.op_type + "(";
    for (const TensorId input : node.inputs) {
      text += (text.ends_with("(") ? "" : ",") + padded.graph.tensor(input).name;
    }
    text += ") " + shape_text(padded.graph.tensor(node.outputs.front()).shape) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("last row: only the head and what is in front of it alone", "[padding][last-row]") {
  const PaddedGraph result = last_row(R"(
    size T 1..64; input x [1,T,8]; weight w [32,8]; weight g [8]
    h = cumsum(x) [1,T,8] {"dim": 2}
    n = layer_norm(h, g) [1,T,8] {"normalized_shape": [8], "_none_args": ["bias"]}
    f = view(n) [T,8] {"size": ["T", 8]}
    p = linear(f, w) [T,32]
    r = view(p) [1,T,32] {"size": [1, "T", 32]}
    d = div.Scalar(r) [1,T,32] {"other": 30}
    t = tanh(d) [1,T,32]
    m = mul.Scalar(t) [1,T,32] {"other": 30}
    logits = _to_copy(m) [1,T,32] {"dtype": "float32"}
    output logits; output h)",
                                      {{"T", 16}});
  REQUIRE(result.has_last_row);
  CHECK(nodes(result) ==
        "h = aten.cumsum.default(x) [1, 16, 8]\n"
        "h:last = aten.slice.Tensor(h) [1, 1, 8]\n"
        "n = aten.layer_norm.default(h:last,g) [1, 1, 8]\n"
        "f = aten.reshape.default(n) [1, 8]\n"
        "p = aten.linear.default(f,w) [1, 32]\n"
        "r = aten.reshape.default(p) [1, 1, 32]\n"
        "d = aten.div.Scalar(r) [1, 1, 32]\n"
        "t = aten.tanh.default(d) [1, 1, 32]\n"
        "m = aten.mul.Scalar(t) [1, 1, 32]\n"
        "logits = aten._to_copy.default(m) [1, 1, 32]\n");
  CHECK(result.graph.tensor(result.graph.graph_outputs().front()).shape == Shape{1, 1, 32});
  CHECK(result.padding.symbols.front().valid.empty());
}

TEST_CASE("last row: its index is computed where padding does not repeat it",
          "[padding][last-row]") {
  const PaddedGraph result = last_row(R"(
    size T 1..64; input x [1,T,8]; weight w [32,8]
    h = cumsum(x) [1,T,8] {"dim": 1}
    logits = linear(h, w) [1,T,32]
    output logits)",
                                      {{"T", 16}});
  REQUIRE(result.has_last_row);
  CHECK(nodes(result) ==
        "size.n.T.add.-1 = aten.add.Scalar(npu.n.T) []\n"
        "size.T - 1.row = aten.view.default(size.n.T.add.-1) [1]\n"
        "h = aten.cumsum.default(x) [1, 16, 8]\n"
        "h:last = aten.index_select.default(h,size.T - 1.row) [1, 1, 8]\n"
        "logits = aten.linear.default(h:last,w) [1, 1, 32]\n");
}

TEST_CASE("last row: the last layer reads all keys for one query", "[padding][last-row]") {
  // The mask of the row is made of its position, and its states are written for all rows.
  const PaddedGraph result = last_row(R"(
    size T 1..32; input x [1,T,32]; input at [T] int64; input state [1,4,64,8]
    weight wq [32,32]; weight wk [32,32]; weight wo [32,32]; weight wh [100,32]
    q0 = linear(x, wq) [1,T,32]
    q1 = view(q0) [1,T,4,8] {"size": [1, "T", 4, 8]}
    q = transpose.int(q1) [1,4,T,8] {"dim0": 1, "dim1": 2}
    k0 = linear(x, wk) [1,T,32]
    k1 = view(k0) [1,T,4,8] {"size": [1, "T", 4, 8]}
    k2 = transpose.int(k1) [1,4,T,8] {"dim0": 1, "dim1": 2}
    k = index_copy(state, at, k2) [1,4,64,8] {"dim": 2}
    mask = npu.length_mask(at) [1,1,T,64] bool {"operands": "positions", "keys": 64, "causal": true}
    y0 = scaled_dot_product_attention(q, k, k, mask) [1,4,T,8]
    y1 = transpose.int(y0) [1,T,4,8] {"dim0": 1, "dim1": 2}
    y2 = reshape(y1) [1,T,32] {"shape": [1, "T", 32]}
    y3 = linear(y2, wo) [1,T,32]
    s = add.Tensor(x, y3) [1,T,32]
    logits = linear(s, wh) [1,T,100]
    other = npu.length_mask(at) [1,1,T,64] bool {"operands": "positions", "keys": 64, "causal": true}
    output k; output logits; output other)",
                                      {{"T", 16}});
  REQUIRE(result.has_last_row);
  CHECK(nodes(result) ==
        "x:last = aten.slice.Tensor(x) [1, 1, 32]\n"
        "q0 = aten.linear.default(x:last,wq) [1, 1, 32]\n"
        "q1 = aten.reshape.default(q0) [1, 1, 4, 8]\n"
        "q = aten.transpose.int(q1) [1, 4, 1, 8]\n"
        "k0 = aten.linear.default(x,wk) [1, 16, 32]\n"
        "k1 = aten.view.default(k0) [1, 16, 4, 8]\n"
        "k2 = aten.transpose.int(k1) [1, 4, 16, 8]\n"
        "k = aten.index_copy.default(state,at,k2) [1, 4, 64, 8]\n"
        "at:last = aten.slice.Tensor(at) [1]\n"
        "mask = npu.length_mask(at:last) [1, 1, 1, 64]\n"
        "y0 = aten.scaled_dot_product_attention.default(q,k,k,mask) [1, 4, 1, 8]\n"
        "y1 = aten.transpose.int(y0) [1, 1, 4, 8]\n"
        "y2 = aten.reshape.default(y1) [1, 1, 32]\n"
        "y3 = aten.linear.default(y2,wo) [1, 1, 32]\n"
        "s = aten.add.Tensor(x:last,y3) [1, 1, 32]\n"
        "logits = aten.linear.default(s,wh) [1, 1, 100]\n"
        "other = npu.length_mask(at) [1, 1, 16, 64]\n");
}

TEST_CASE("last row: a mask that others read whole is made again", "[padding][last-row]") {
  const PaddedGraph result = last_row(R"(
    size T 1..32; input q [1,4,T,8]; input at [T] int64; input k [1,4,64,8]
    mask = npu.length_mask(at) [1,1,T,64] bool {"operands": "positions", "keys": 64, "causal": true}
    first = scaled_dot_product_attention(q, k, k, mask) [1,4,T,8]
    sums = sum.dim_IntList(first) [1,4,8] {"dim": [2]}
    kept = add.Tensor(k, sums) [1,4,64,8]
    second = scaled_dot_product_attention(first, kept, kept, mask) [1,4,T,8]
    turned = transpose.int(second) [1,T,4,8] {"dim0": 1, "dim1": 2}
    logits = view(turned) [1,T,32] {"size": [1, "T", 32]}
    output logits)",
                                      {{"T", 16}});
  // Of `kept`, [1, 4, 64, 8], no dimension is the rows': the sum over rows needs all of `first`.
  REQUIRE(result.has_last_row);
  CHECK(nodes(result) ==
        "mask = npu.length_mask(at) [1, 1, 16, 64]\n"
        "first = aten.scaled_dot_product_attention.default(q,k,k,mask) [1, 4, 16, 8]\n"
        "first:tail = npu.tail(first,npu.n.T) [1, 4, 16, 8]\n"
        "sums = aten.sum.dim_IntList(first:tail) [1, 4, 8]\n"
        "kept = aten.add.Tensor(k,sums) [1, 4, 64, 8]\n"
        "first:last = aten.slice.Tensor(first) [1, 4, 1, 8]\n"
        "at:last = aten.slice.Tensor(at) [1]\n"
        "mask:last = npu.length_mask(at:last) [1, 1, 1, 64]\n"
        "second = aten.scaled_dot_product_attention.default(first:last,kept,kept,mask:last) "
        "[1, 4, 1, 8]\n"
        "turned = aten.transpose.int(second) [1, 1, 4, 8]\n"
        "logits = aten.reshape.default(turned) [1, 1, 32]\n");
}

TEST_CASE("last row: parts of a split are all of one row, or none is", "[padding][last-row]") {
  const std::string lines = R"(
    size T 1..32; input x [1,T,8]; weight w0 [8,8]; weight w [32,4]
    h = linear(x, w0) [1,T,8]
    s = aten.split.Tensor(h) [1,T,4] | [1,T,4] {"split_size": 4, "dim": -1}
    left = getitem(s_0, s_1) [1,T,4] {"index": 0}
    right = getitem(s_0, s_1) [1,T,4] {"index": 1}
    m = mul.Tensor(left, right) [1,T,4]
    logits = linear(m, w) [1,T,32]
    output logits)";
  const PaddedGraph all = last_row(lines, {{"T", 16}});
  REQUIRE(all.has_last_row);
  CHECK(nodes(all) ==
        "x:last = aten.slice.Tensor(x) [1, 1, 8]\n"
        "h = aten.linear.default(x:last,w0) [1, 1, 8]\n"
        "s = aten.split.Tensor(h) [1, 1, 4]\n"
        "left = <built-in function getitem>(s_0,s_1) [1, 1, 4]\n"
        "right = <built-in function getitem>(s_0,s_1) [1, 1, 4]\n"
        "m = aten.mul.Tensor(left,right) [1, 1, 4]\n"
        "logits = aten.linear.default(m,w) [1, 1, 32]\n");
  const PaddedGraph some = last_row(lines + "; output left", {{"T", 16}});
  REQUIRE(some.has_last_row);
  CHECK(nodes(some) ==
        "h = aten.linear.default(x,w0) [1, 16, 8]\n"
        "s = aten.split.Tensor(h) [1, 16, 4]\n"
        "left = <built-in function getitem>(s_0,s_1) [1, 16, 4]\n"
        "right = <built-in function getitem>(s_0,s_1) [1, 16, 4]\n"
        "left:last = aten.slice.Tensor(left) [1, 1, 4]\n"
        "right:last = aten.slice.Tensor(right) [1, 1, 4]\n"
        "m = aten.mul.Tensor(left:last,right:last) [1, 1, 4]\n"
        "logits = aten.linear.default(m,w) [1, 1, 32]\n");
}

TEST_CASE("last row: where nothing is saved all rows stay", "[padding][last-row]") {
  // One row is there already; rows that depend on their place; a capacity of one token.
  const PaddedGraph one = last_row(R"(
    size T 1..32; input x [1,T,8]
    logits = slice.Tensor(x) [1,1,8] {"dim": 1, "start": -1}
    output logits)",
                                   {{"T", 16}});
  CHECK_FALSE(one.has_last_row);
  const PaddedGraph scan = last_row(R"(
    size T 1..32; input x [1,T,8]
    logits = cumsum(x) [1,T,8] {"dim": 1}
    output logits)",
                                    {{"T", 16}});
  CHECK_FALSE(scan.has_last_row);
  CHECK(nodes(scan) == "logits = aten.cumsum.default(x) [1, 16, 8]\n");
  const PaddedGraph step = last_row(R"(
    size T 1..32; input x [1,T,8]
    logits = relu(x) [1,T,8]
    output logits)",
                                    {{"T", 1}});
  CHECK_FALSE(step.has_last_row);
  CHECK(nodes(step) == "logits = aten.relu.default(x) [1, 1, 8]\n");
}

// SPDX-License-Identifier: Apache-2.0
// What is read of an attention over a cache that is written out; which graphs are one is tested by
// kernel_patterns_test.cpp.
#include "passes/fusion/cached_attention_form.hpp"

#include <string>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// `capped` and `sunk` say whether there are a cap and sinks; `mask_rows` is what the mask has.
Graph attention(bool capped, bool sunk, std::int64_t mask_rows = 2) {
  const Shape scores{1, 4, 2, 32};
  const Shape mask{1, 1, mask_rows, 32};
  GraphBuilder net;
  net.input("q", {1, 4, 2, 8}).input("k", {1, 4, 8, 32}).input("v", {1, 4, 32, 8});
  net.input("n", {1, 4, 1, 1}).input("at", {mask_rows}, "int64");
  net.node("mask", "npu.length_mask", {"at"}, mask,
           {{"operands", "positions"}, {"keys", 32}, {"causal", true}}, "bool");
  net.node("not", "aten.logical_not.default", {"mask"}, mask, {}, "bool");
  net.node("p", "aten.matmul.default", {"q", "k"}, scores);
  net.node("f", "aten.div.Tensor", {"p"}, scores, {{"other", 4.0}});
  net.node("g", "aten.mul.Tensor", {"f"}, scores, {{"other", 3.0}});
  std::string value = "g";
  if (capped) {
    net.node("t", "aten.tanh.default", {"g"}, scores);
    net.node("c", "aten.mul.Tensor", {"t"}, scores, {{"other", 5.0}});
    value = "c";
  }
  net.node("m", "aten.masked_fill.Scalar", {value, "not"}, scores, {{"value", "-inf"}});
  value = "m";
  const Shape wide{1, 4, 2, 33};
  if (sunk) {
    net.node("e", "aten.expand.default", {"n"}, Shape{1, 4, 2, 1}, {{"size", {1, 4, 2, 1}}});
    net.node("s", "aten.cat.default", {"m", "e"}, wide, {{"dim", 3}});
    net.node_with_typed_results("l1", "aten.max.dim", {"s"}, {{1, 4, 2, 1}, {1, 4, 2, 1}},
                                {"float32", "int64"}, {{"dim", -1}, {"keepdim", true}});
    net.node("l", "<built-in function getitem>", {"l1_0", "l1_1"}, Shape{1, 4, 2, 1},
             {{"index", 0}});
    net.node("d", "aten.sub.Tensor", {"s", "l"}, wide);
    value = "d";
  }
  net.node("w", "aten.softmax.int", {value}, sunk ? wide : scores, {{"dim", -1}});
  value = "w";
  if (sunk) {
    net.node("r", "aten.slice.Tensor", {"w"}, scores, {{"dim", -1}, {"start", 0}, {"end", -1}});
    value = "r";
  }
  net.node("y", "aten.matmul.default", {value, "v"}, Shape{1, 4, 2, 8}).output("y");
  return net.build();
}

std::string names(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::string text;
  for (const NodeId id : nodes) text += (text.empty() ? "" : " ") + graph.node(id).name;
  return text;
}

}  // namespace

TEST_CASE("the form of an attention over a cache", "[fuse][cached-attention]") {
  const bool capped = GENERATE(false, true);
  const bool sunk = GENERATE(false, true);
  const Graph graph = attention(capped, sunk);
  const auto form = cached_attention_form(graph, graph.find_node("y"));
  REQUIRE(form);
  CHECK(graph.tensor(form->query).name == "q");
  CHECK(graph.tensor(form->key).name == "k");
  CHECK(graph.tensor(form->value).name == "v");
  CHECK(graph.tensor(form->mask).name == "not");
  CHECK(graph.node(form->masking).name == "m");
  CHECK(graph.node(form->lengths).name == "mask");
  CHECK(form->scale == 0.75);
  CHECK(form->cap == (capped ? 5 : 0));
  REQUIRE(form->sinks.valid() == sunk);
  if (sunk) CHECK(graph.tensor(form->sinks).name == "n");
  CHECK(names(graph, form->nodes) == std::string("p f g") + (capped ? " t c" : "") + " m" +
                                         (sunk ? " s l1 l d" : "") + " w" + (sunk ? " r" : "") +
                                         " y");
  CHECK(is_opposite_length_mask(graph, graph.find_node("not")));
  CHECK_FALSE(is_opposite_length_mask(graph, graph.find_node("mask")));
  for (const char* other : {"p", "w", "m", "mask"}) {
    CHECK_FALSE(cached_attention_form(graph, graph.find_node(other)));
  }
}

TEST_CASE("a mask of one row is for all queries", "[fuse][cached-attention]") {
  const Graph graph = attention(true, false, 1);
  CHECK(cached_attention_form(graph, graph.find_node("y")));
}

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

namespace {

/// An attention with a bias, and what hides keys: "added" to the bias as numbers, "chosen" in it,
/// or "filled" into the sum, with a number; the mask says `attrs`.
Graph biased(const std::string& form, const Json& fill, const std::string& dtype = "float32",
             const std::string& operands = "positions") {
  const Shape scores{1, 4, 2, 32};
  const Shape mask{1, 1, 2, 32};
  GraphBuilder net;
  net.input("q", {1, 4, 2, 8}, dtype).input("k", {1, 4, 8, 32}, dtype);
  net.input("v", {1, 4, 32, 8}, dtype).input("b", {4, 2, 32}, dtype);
  net.input("at", {2}, "int64").input("n", {}, "int64");
  std::vector<std::string> reads{"at"};
  if (operands == "both") reads.emplace_back("n");
  net.node("mask", "npu.length_mask", reads, mask,
           {{"operands", operands}, {"keys", 32}, {"causal", true}}, "bool");
  net.node("seen", "aten.view.default", {"mask"}, Shape{2, 32}, {{"size", {2, 32}}}, "bool");
  net.node("p", "aten.matmul.default", {"q", "k"}, scores, {}, dtype);
  net.node("g", "aten.mul.Tensor", {"p"}, scores, {{"other", 3.0}}, dtype);
  std::string added = "b";
  if (form == "added") {
    net.node("m", "aten.where.Scalar", {"mask"}, mask, {{"self", 0.0}, {"other", fill}}, dtype);
    net.node("mv", "aten.reshape.default", {"m"}, Shape{1, 2, 32}, {{"shape", {1, 2, 32}}}, dtype);
    net.node("x", "aten.add.Tensor", {"b", "mv"}, Shape{4, 2, 32}, {}, dtype);
    added = "x";
  } else if (form == "chosen") {
    net.node("x", "aten.where.ScalarOther", {"seen", "b"}, Shape{4, 2, 32}, {{"other", fill}},
             dtype);
    added = "x";
  }
  net.node("s", "aten.add.Tensor", {"g", added}, scores, {}, dtype);
  std::string last = "s";
  if (form == "filled") {
    net.node("f", "aten.where.ScalarOther", {"mask", "s"}, scores, {{"other", fill}}, dtype);
    last = "f";
  }
  net.node("w", "aten.softmax.int", {last}, scores, {{"dim", -1}}, dtype);
  net.node("y", "aten.matmul.default", {"w", "v"}, Shape{1, 4, 2, 8}, {}, dtype).output("y");
  return net.build();
}

}  // namespace

TEST_CASE("an attention over a cache may have a bias", "[fuse][cached-attention]") {
  const std::string form = GENERATE("added", "chosen", "filled");
  const Graph graph = biased(form, "-inf");
  const auto found = cached_attention_form(graph, graph.find_node("y"));
  REQUIRE(found);
  CHECK(graph.tensor(found->bias).name == (form == "filled" ? "b" : "x"));
  CHECK(found->bias_space == Shape{1, 4, 2, 32});
  CHECK(found->mask.valid() == (form == "filled"));
  CHECK(found->scale == 3);
  CHECK(graph.node(found->lengths).name == "mask");
  CHECK(names(graph, found->nodes) == (form == "filled" ? "p g s f w y" : "p g s w y"));
}

TEST_CASE("numbers that hide keys of a cache", "[fuse][cached-attention]") {
  const std::string form = GENERATE("added", "chosen", "filled");
  const auto is_found = [&](double fill, const std::string& dtype, const std::string& operands) {
    const Graph graph = biased(form, fill, dtype, operands);
    return cached_attention_form(graph, graph.find_node("y")).has_value();
  };
  INFO(form);
  for (const double fill : {-3.4028234663852886e38, -1e9}) {
    CHECK(is_found(fill, "float32", "positions"));
    // A row may see no key, and then has the weights of hidden scores.
    CHECK_FALSE(is_found(fill, "float32", "both"));
  }
  CHECK_FALSE(is_found(-1e4, "float32", "positions"));
  CHECK_FALSE(is_found(-65504.0, "float32", "positions"));
  CHECK(is_found(-65504.0, "float16", "positions"));
}

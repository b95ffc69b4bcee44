// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles what text models are made of: joined products, attention, GELU.
#include <string>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::onednn::CompiledGraph;
using test::onednn::runs_kernel;

}  // namespace

TEST_CASE("onednn joins linear nodes with one input and finds attention", "[onednn][compiler]") {
  const bool written_out = GENERATE(false, true);
  const std::string mask = written_out ? GENERATE("", "mask") : "";
  GraphBuilder graph;
  const Shape flat{1, 10, 32};
  const Shape split{1, 10, 4, 8};
  const Shape heads{1, 4, 10, 8};
  graph.input("x", flat);
  for (const std::string name : {"q", "k", "v"}) {
    graph.weight(name, {32, 32}).weight(name + "b", {32});
    graph.node(name + "l", "aten.linear.default", {"x", "p_" + name, "p_" + name + "b"}, flat);
    graph.node(name + "v", "aten.view.default", {name + "l"}, split, {{"size", split}});
    graph.node(name + "t", "aten.transpose.int", {name + "v"}, heads, {{"dim0", 1}, {"dim1", 2}});
  }
  const Shape scores{1, 4, 10, 10};
  if (written_out) {
    graph.node("kt2", "aten.transpose.int", {"kt"}, {1, 4, 8, 10}, {{"dim0", -2}, {"dim1", -1}});
    graph.node("s", "aten.matmul.default", {"qt", "kt2"}, scores);
    graph.node("d", "aten.div.Tensor", {"s"}, scores, {{"other", 2.5}});
    std::string value = "d";
    if (mask == "mask") {
      graph.weight("mask", {10, 10});
      graph.node("m", "aten.add.Tensor", {"d", "p_mask"}, scores);
      value = "m";
    }
    graph.node("p", "aten.softmax.int", {value}, scores, {{"dim", -1}});
    graph.node("o", "aten.matmul.default", {"p", "vt"}, heads);
  } else {
    graph.node("o", "aten.scaled_dot_product_attention.default", {"qt", "kt", "vt"}, heads);
  }
  graph.lines(R"(
    ot = aten.transpose.int(o) [1,10,4,8] {"dim0": 1, "dim1": 2}
    y = reshape(ot) [1,10,32] {"shape": [1, 10, 32]}
    weight w [32,32]
    z = linear(y, p_w)
    r = aten.add.Tensor(x, z) [1,10,32]; output r)");
  CompiledGraph compiled(graph);
  // One product for q, k and v; attention; one product with the sum.
  CHECK(compiled.count("kernels") == 3);
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn reads grouped heads and masks of bool where they are", "[onednn][compiler]") {
  const std::string heads = GENERATE("expand", "copy", "interleave", "enable_gqa");
  const std::string form = GENERATE("op", "added", "selected", "filled", "guarded");
  const bool written_out = form != "op";
  if (written_out && heads == "enable_gqa") return;
  const Shape all{2, 6, 12, 8};
  const Shape scores{2, 6, 10, 12};
  GraphBuilder graph;
  graph.input("q", {2, 6, 10, 8}).input("k", {2, 2, 12, 8}).input("v", {2, 2, 12, 8});
  graph.input("m", {2, 1, 10, 12}, form == "added" ? "float32" : "bool");
  const auto of_all_heads = [&](const std::string& name) {
    const auto step = [&](const char* suffix, const char* op, const std::string& from,
                          const Shape& shape, Json attrs) {
      graph.node(name + suffix, op, {from}, shape, std::move(attrs));
      return name + suffix;
    };
    if (heads == "enable_gqa") return name;
    if (heads == "interleave") {
      return step("i", "aten.repeat_interleave.self_int", name, all, {{"repeats", 3}, {"dim", 1}});
    }
    const Shape apart{2, 2, 3, 12, 8};
    std::string last = step("u", "aten.unsqueeze.default", name, {2, 2, 1, 12, 8}, {{"dim", 2}});
    last = step("e", "aten.expand.default", last, apart, {{"size", apart}});
    if (heads == "copy") last = step("c", "aten.clone.default", last, apart, Json::object());
    return step("r", "aten.reshape.default", last, all, {{"shape", all}});
  };
  const std::string key = of_all_heads("k");
  const std::string value = of_all_heads("v");
  if (!written_out) {
    graph.node("y", "aten.scaled_dot_product_attention.default", {"q", key, value, "m"},
               Shape{2, 6, 10, 8}, {{"enable_gqa", heads == "enable_gqa"}});
  } else {
    // Turned by way of planes, as ONNX's exporters write it.
    graph.node("k1", "aten.view.default", {key}, Shape{12, 12, 8}, {{"size", {12, 12, 8}}});
    graph.node("k2", "aten.transpose.int", {"k1"}, Shape{12, 8, 12}, {{"dim0", 1}, {"dim1", 2}});
    graph.node("k3", "aten.view.default", {"k2"}, Shape{2, 6, 8, 12}, {{"size", {2, 6, 8, 12}}});
    graph.node("k4", "aten.mul.Tensor", {"k3"}, Shape{2, 6, 8, 12}, {{"other", 0.5}});
    graph.node("s", "aten.matmul.default", {"q", "k4"}, scores);
    if (form == "added") graph.node("w", "aten.add.Tensor", {"s", "m"}, scores);
    if (form == "selected") {
      graph.node("w", "aten.where.ScalarOther", {"m", "s"}, scores, {{"other", -3e38}});
    }
    if (form == "filled" || form == "guarded") {
      graph.node("w", "aten.masked_fill.Scalar", {"s", "m"}, scores, {{"value", "-inf"}});
    }
    graph.node("p", "aten.softmax.int", {"w"}, scores, {{"dim", -1}});
    std::string weights = "p";
    if (form == "guarded") {
      graph.node("t", "aten.isnan.default", {"p"}, scores, Json::object(), "bool");
      graph.node("g", "aten.where.ScalarSelf", {"t", "p"}, scores, {{"self", 0}});
      weights = "g";
    }
    graph.node("y", "aten.matmul.default", {weights, value}, Shape{2, 6, 10, 8});
  }
  graph.output("y");
  CompiledGraph compiled(graph);
  INFO(heads << ", " << form << ": " << compiled.report.dump());
  CHECK(compiled.count("kernels") == 1);
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn reads the lengths of a cache in place of their mask", "[onednn][compiler]") {
  const std::string form = GENERATE("shared", "read", "valid", "window", "one row");
  const std::string heads = GENERATE("enable_gqa", "expand");
  const std::int64_t queries = form == "one row" ? 1 : GENERATE(3, 20);
  const Shape all{1, 6, 70, 8};
  const Shape mask{1, 1, form == "valid" ? 1 : queries, 70};
  const Shape result{1, 6, queries, 8};
  GraphBuilder graph;
  graph.input("q", result).input("k", {1, 2, 70, 8}).input("v", {1, 2, 70, 8});
  // From a step of the graph, whose memory has to stay until the last attention.
  graph.node("p", "aten.arange.start", {}, Shape{queries}, {{"start", 31}, {"end", 31 + queries}},
             "int64");
  Json attrs{{"operands", "positions"}, {"keys", 70}, {"causal", true}};
  std::vector<std::string> operands{"p"};
  if (form == "window") attrs["window"] = 5;
  if (form == "valid") {
    graph.node("n1", "aten.arange.start", {}, Shape{1}, {{"start", 41}, {"end", 42}}, "int64");
    graph.node("n", "aten.reshape.default", {"n1"}, Shape{}, {{"shape", Json::array()}}, "int64");
    operands = {"n"};
    attrs = {{"operands", "valid"}, {"keys", 70}};
  }
  graph.node("m", "npu.length_mask", operands, mask, attrs, "bool");
  std::string key = "k";
  std::string value = "v";
  if (heads == "expand") {
    for (std::string* each : {&key, &value}) {
      graph.node(*each + "u", "aten.unsqueeze.default", {*each}, Shape{1, 2, 1, 70, 8},
                 {{"dim", 2}});
      graph.node(*each + "e", "aten.expand.default", {*each + "u"}, Shape{1, 2, 3, 70, 8},
                 {{"size", {1, 2, 3, 70, 8}}});
      graph.node(*each + "r", "aten.reshape.default", {*each + "e"}, all, {{"shape", all}});
      *each += "r";
    }
  }
  const Json grouped{{"enable_gqa", heads == "enable_gqa"}, {"scale", 0.5}};
  const std::string op = "aten.scaled_dot_product_attention.default";
  graph.node("a", op, {"q", key, value, "m"}, result, grouped);
  graph.node("b", op, {"a", key, value, "m"}, result, grouped).output("b");
  if (form == "read") {  // by what takes it as a tensor
    graph.node("o", "aten.logical_not.default", {"m"}, mask, {}, "bool");
    graph.node("c", op, {"q", key, value, "o"}, result, grouped).output("c");
  }
  CompiledGraph compiled(graph);
  INFO(form << ": " << compiled.report.dump());
  CHECK(runs_kernel(compiled, "cached-attention"));
  CHECK(runs_kernel(compiled, "attention") == (form == "read"));
  // What reads it reads a constant here.
  CHECK(!runs_kernel(compiled, "length-mask"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn reads lengths where an attention over a cache is written out",
          "[onednn][compiler]") {
  const std::string form = GENERATE("capped", "sinks", "both", "both, read", "both, added");
  const std::int64_t queries = GENERATE(1, 3, 20);
  const bool has_cap = form != "sinks";
  const bool has_sinks = form != "capped";
  const Shape result{1, 6, queries, 8};
  const Shape all{1, 6, 70, 8};
  const Shape scores{1, 6, queries, 70};
  const Shape mask{1, 1, queries, 70};
  GraphBuilder graph;
  graph.input("q", result).input("k", {1, 2, 70, 8}).input("v", {1, 2, 70, 8}).input("n", {6});
  graph.node("p", "aten.arange.start", {}, Shape{queries}, {{"start", 31}, {"end", 31 + queries}},
             "int64");
  graph.node("m", "npu.length_mask", {"p"}, mask,
             {{"operands", "positions"}, {"keys", 70}, {"causal", true}}, "bool");
  graph.node("o", "aten.bitwise_not.default", {"m"}, mask, {}, "bool");
  for (const std::string each : {"k", "v"}) {
    graph.node(each + "u", "aten.unsqueeze.default", {each}, Shape{1, 2, 1, 70, 8}, {{"dim", 2}});
    graph.node(each + "e", "aten.expand.default", {each + "u"}, Shape{1, 2, 3, 70, 8},
               {{"size", {1, 2, 3, 70, 8}}});
    graph.node(each + "r", "aten.reshape.default", {each + "e"}, all, {{"shape", all}});
  }
  graph.node("kt", "aten.transpose.int", {"kr"}, Shape{1, 6, 8, 70}, {{"dim0", 2}, {"dim1", 3}});
  const auto attend = [&](const std::string& query, const std::string& end) {
    const auto name = [&](const char* part) { return part + end; };
    graph.node(name("a"), "aten.matmul.default", {query, "kt"}, scores);
    graph.node(name("b"), "aten.mul.Tensor", {name("a")}, scores, {{"other", 0.5}});
    std::string value = name("b");
    if (has_cap) {
      graph.node(name("c"), "aten.tanh.default", {value}, scores);
      graph.node(name("d"), "aten.mul.Tensor", {name("c")}, scores, {{"other", 3.0}});
      value = name("d");
    }
    if (form == "both, added") {
      graph.node(name("f"), "aten.add.Tensor", {value, "x"}, scores);
    } else {
      graph.node(name("f"), "aten.masked_fill.Scalar", {value, "o"}, scores, {{"value", "-inf"}});
    }
    value = name("f");
    const Shape wide{1, 6, queries, 71};
    if (has_sinks) {
      graph.node(name("g"), "aten.view.default", {"n"}, Shape{1, 6, 1, 1},
                 {{"size", {1, 6, 1, 1}}});
      graph.node(name("h"), "aten.expand.default", {name("g")}, Shape{1, 6, queries, 1},
                 {{"size", {1, 6, queries, 1}}});
      graph.node(name("i"), "aten.cat.default", {value, name("h")}, wide, {{"dim", -1}});
      value = name("i");
    }
    graph.node(name("s"), "aten.softmax.int", {value}, has_sinks ? wide : scores, {{"dim", -1}});
    value = name("s");
    if (has_sinks) {
      graph.node(name("j"), "aten.slice.Tensor", {value}, scores,
                 {{"dim", -1}, {"start", 0}, {"end", 70}});
      value = name("j");
    }
    graph.node(name("y"), "aten.matmul.default", {value, "vr"}, result);
  };
  if (form == "both, added") {
    graph.node("z", "aten.zeros.default", {}, mask, {{"size", mask}});
    graph.node("x", "aten.masked_fill.Scalar", {"z", "o"}, mask, {{"value", "-inf"}});
  }
  attend("q", "1");
  attend("y1", "2");
  graph.output("y2");
  if (form == "both, read") {  // by what takes it as a tensor
    graph.input("z", mask);
    graph.node("r", "aten.where.ScalarOther", {"o", "z"}, mask, {{"other", 2.0}}).output("r");
  }
  CompiledGraph compiled(graph);
  INFO(form << ": " << compiled.report.dump());
  CHECK(runs_kernel(compiled, "cached-attention"));
  CHECK(compiled.count("kernels") == (form == "both, read" ? 3 : 2));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn adds a bias to scores over a cache", "[onednn][compiler]") {
  const std::string form = GENERATE("in the mask", "below the mask", "planes", "op");
  const std::int64_t queries = GENERATE(1, 3, 20);
  const Shape result{1, 6, queries, 8};
  const Shape scores{1, 6, queries, 70};
  const Shape planes{6, queries, 70};
  const Shape mask{1, 1, queries, 70};
  GraphBuilder graph;
  graph.input("q", result).input("k", {1, 6, 70, 8}).input("v", {1, 6, 70, 8});
  graph.input("b", {1, 6, form == "in the mask" ? queries : 1, 70});
  graph.node("p", "aten.arange.start", {}, Shape{queries}, {{"start", 31}, {"end", 31 + queries}},
             "int64");
  graph.node("m", "npu.length_mask", {"p"}, mask,
             {{"operands", "positions"}, {"keys", 70}, {"causal", true}}, "bool");
  if (form == "in the mask") {
    graph.node("n", "aten.where.Scalar", {"m"}, mask, {{"self", 0.0}, {"other", -1e9}});
    graph.node("x", "aten.add.Tensor", {"b", "n"}, scores);
  } else if (form == "op") {
    graph.node("x", "aten.where.ScalarOther", {"m", "b"}, scores, {{"other", "-inf"}});
  }
  if (form == "op") {
    graph.node("y", "aten.scaled_dot_product_attention.default", {"q", "k", "v", "x"}, result,
               {{"scale", 0.5}});
  } else {
    graph.node("t", "aten.transpose.int", {"k"}, Shape{1, 6, 8, 70}, {{"dim0", 2}, {"dim1", 3}});
    graph.node("a", "aten.matmul.default", {"q", "t"}, scores);
    graph.node("c", "aten.mul.Tensor", {"a"}, scores, {{"other", 0.5}});
    if (form == "in the mask") {
      graph.node("f", "aten.add.Tensor", {"x", "c"}, scores);
    } else if (form == "planes") {
      graph.node("bv", "aten.view.default", {"b"}, Shape{6, 1, 70}, {{"size", {6, 1, 70}}});
      graph.node("cv", "aten.view.default", {"c"}, planes, {{"size", planes}});
      graph.node("s", "aten.add.Tensor", {"cv", "bv"}, planes);
      graph.node("sv", "aten.view.default", {"s"}, scores, {{"size", scores}});
      graph.node("f", "aten.where.ScalarOther", {"m", "sv"}, scores, {{"other", "-inf"}});
    } else {
      graph.node("s", "aten.add.Tensor", {"c", "b"}, scores);
      graph.node("f", "aten.where.ScalarOther", {"m", "s"}, scores, {{"other", "-inf"}});
    }
    graph.node("w", "aten.softmax.int", {"f"}, scores, {{"dim", -1}});
    graph.node("y", "aten.matmul.default", {"w", "v"}, result);
  }
  graph.output("y");
  CompiledGraph compiled(graph);
  INFO(form << ": " << compiled.report.dump());
  CHECK(runs_kernel(compiled, "cached-attention"));
  CHECK(!runs_kernel(compiled, "softmax"));
  CHECK(!runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn computes a GELU that is written out as one", "[onednn][compiler]") {
  const bool by_tanh = GENERATE(true, false);
  const Shape shape{5, 48};
  GraphBuilder graph;
  graph.input("x", shape);
  const auto number = [&](const char* name, const char* op, const char* from, double value,
                          const char* key = "other") {
    graph.node(name, op, {from}, shape, {{key, value}});
  };
  number("h", "aten.mul.Tensor", "x", 0.5);
  if (by_tanh) {
    number("p", "aten.pow.Tensor_Scalar", "x", 3.0, "exponent");
    number("c", "aten.mul.Tensor", "p", 0.044715);
    graph.node("s", "aten.add.Tensor", {"x", "c"}, shape);
    number("a", "aten.mul.Tensor", "s", 0.7978845608028654);
    graph.node("f", "aten.tanh.default", {"a"}, shape);
  } else {
    number("a", "aten.mul.Tensor", "x", 0.7071067811865476);
    graph.node("f", "aten.erf.default", {"a"}, shape);
  }
  number("o", "aten.add.Tensor", "f", 1.0);
  graph.node("y", "aten.mul.Tensor", {"h", "o"}, shape).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.count("kernels") - compiled.count("reorders") == 1);
  CHECK(runs_kernel(compiled, "elementwise"));
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn masks scores that a view divides into heads", "[onednn][compiler]") {
  const std::string form = GENERATE("filled", "selected", "added", "cut");
  const Shape planes{6, 5, 7};
  const Shape heads = form == "cut" ? Shape{3, 2, 5, 7} : Shape{2, 3, 5, 7};
  const Shape mask = form == "cut" ? Shape{1, 2, 5, 7} : Shape{2, 1, 5, 7};
  GraphBuilder graph;
  graph.input("q", {6, 5, 8}).input("k", {6, 8, 7}).input("v", {6, 7, 8});
  graph.input("m", mask, form == "added" ? "float32" : "bool");
  graph.node("s", "aten.bmm.default", {"q", "k"}, planes);
  graph.node("h", "aten.view.default", {"s"}, heads, {{"size", heads}});
  if (form == "added") {
    graph.node("w", "aten.add.Tensor", {"h", "m"}, heads);
  } else if (form == "selected") {
    graph.node("w", "aten.where.ScalarOther", {"m", "h"}, heads, {{"other", -1e9}});
  } else {
    graph.node("w", "aten.masked_fill.Scalar", {"h", "m"}, heads, {{"value", -1e9}});
  }
  graph.node("b", "aten.view.default", {"w"}, planes, {{"size", planes}});
  graph.node("p", "aten.softmax.int", {"b"}, planes, {{"dim", -1}});
  graph.node("y", "aten.bmm.default", {"p", "v"}, Shape{6, 5, 8}).output("y");
  CompiledGraph compiled(graph);
  INFO(form << ": " << compiled.report.dump());
  CHECK(runs_kernel(compiled, "attention"));
  CHECK(compiled.error_against_cpu() < 1e-5);
}

}  // namespace npu

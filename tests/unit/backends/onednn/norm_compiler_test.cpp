// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles norms and gates: rows, channels, and what a convolution or a
// product takes in of them.
#include <string>
#include <vector>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::onednn::add_norm;
using test::onednn::check_bfloat16;
using test::onednn::check_threads;
using test::onednn::CompiledGraph;
using test::onednn::has_avx2;
using test::onednn::runs_kernel;

}  // namespace

TEST_CASE("onednn brings the rows of a layer norm together", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,32,4,6]; weight w, b [32]
    f = aten.flatten.using_ints(x) [1,32,24] {"start_dim": 2}
    t = aten.transpose.int(f) [1,24,32] {"dim0": 1, "dim1": 2}
    y = layer_norm(t, p_w, p_b) {"normalized_shape": [32], "eps": 1e-05}; output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  for (const Json& step : compiled.report.at("steps")) {
    INFO(step.dump());
    CHECK((!has_avx2() || step.dump().find("lnorm_ref") == std::string::npos));
  }
}

TEST_CASE("onednn computes an RMS norm that is written out in one kernel", "[onednn][compiler]") {
  const std::string form = GENERATE("rsqrt", "sqrt", "reciprocal", "square", "cast", "one row",
                                    "no weights", "no number");
  const bool weight_first = GENERATE(true, false);
  const std::string shape = form == "one row" ? "[37]" : "[2,3,37]";
  const std::string means = form == "one row" ? "[1]" : "[2,3,1]";
  const std::string dim = form == "one row" ? "0" : "-1";
  std::string text = "input x " + shape + "; weight w [37]; e = exp(x) " + shape + "; ";
  std::string value = "e";
  if (form == "cast") {
    text += "c = aten.to.dtype(e) " + shape + R"( {"dtype": "float32"}; )";
    value = "c";
  }
  text += form == "square"
              ? "q = square(" + value + ") " + shape + "; "
              : "q = aten.pow.Tensor_Scalar(" + value + ") " + shape + R"( {"exponent": 2}; )";
  text += "m = aten.mean.dim(q) " + means + R"( {"dim": [)" + dim + R"(], "keepdim": true}; )";
  std::string sum = "m";
  if (form != "no number") {
    text += "s = aten.add.Tensor(m) " + means + R"( {"other": 0.25}; )";
    sum = "s";
  }
  if (form == "sqrt") {
    text += "r = sqrt(" + sum + ") " + means + "; n = aten.div.Tensor(" + value + ", r) ";
  } else if (form == "reciprocal") {
    text += "t = sqrt(" + sum + ") " + means + "; r = reciprocal(t) " + means +
            "; n = aten.mul.Tensor(r, " + value + ") ";
  } else {
    text += "r = rsqrt(" + sum + ") " + means + "; n = aten.mul.Tensor(" + value + ", r) ";
  }
  text += shape + "; ";
  if (form == "no weights") {
    text += "output n";
  } else {
    text += std::string("y = aten.mul.Tensor(") + (weight_first ? "p_w, n" : "n, p_w") + ") " +
            shape + "; output y";
  }
  INFO(text);
  GraphBuilder graph;
  graph.lines(text);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-6);
  CHECK(compiled.count("kernels") - compiled.count("reorders") == 2);  // exp, and the norm
  CHECK(runs_kernel(compiled, "rms-norm"));
  check_threads(compiled, graph, {1, 3});
  check_bfloat16(graph, 2e-2);
}

TEST_CASE("onednn normalizes rows that are parts of longer ones", "[onednn][compiler]") {
  // Columns, a head of several, rows of several planes, and all of these at a time.
  struct Case {
    std::int64_t dim;
    std::int64_t size;
    Shape shape;
    std::size_t normalized;
  };
  const Case one = GENERATE(Case{3, 8, {2, 4, 6, 8}, 1}, Case{1, 1, {2, 1, 6, 12}, 1},
                            Case{2, 1, {2, 4, 1, 12}, 1}, Case{2, 3, {2, 4, 3, 12}, 2},
                            Case{1, 2, {2, 2, 6, 12}, 3}, Case{3, 1, {2, 4, 6, 1}, 2});
  const std::string norm = GENERATE("aten.layer_norm.default", "aten.rms_norm.default");
  const Shape width(one.shape.end() - static_cast<std::ptrdiff_t>(one.normalized), one.shape.end());
  GraphBuilder graph;
  graph.input("x", {2, 4, 6, 12}).weight("w", width);
  graph.node("s", "aten.slice.Tensor", {"x"}, one.shape,
             {{"dim", one.dim}, {"start", 1}, {"end", 1 + one.size}});
  graph.node("y", norm, {"s", "p_w"}, one.shape, {{"normalized_shape", width}, {"eps", 1e-5}});
  graph.output("y");
  CompiledGraph compiled(graph);
  INFO(norm << " of " << one.size << " along " << one.dim);
  CHECK(compiled.error_against_cpu() < 1e-5);
}

TEST_CASE("onednn normalizes behind any permutation", "[onednn][compiler]") {
  const std::vector<int> order = GENERATE(std::vector{0, 3, 1, 2}, std::vector{0, 2, 3, 1},
                                          std::vector{3, 2, 1, 0}, std::vector{1, 0, 3, 2});
  const Shape source{3, 8, 2, 5};
  Shape shape;
  for (const int d : order) shape.push_back(source[static_cast<std::size_t>(d)]);
  GraphBuilder graph;
  graph.input("x", source).node("t", "aten.permute.default", {"x"}, shape, {{"dims", order}});
  add_norm(graph, "n", "t", shape).output("n");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn folds norms in front of nothing else into linear weights", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.input("x", {6, 20}).weight("w", {12, 20}).weight("b", {12});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, Shape{6, 12});
  add_norm(graph, "n", "l", Shape{6, 12})
      .node("y", "aten.relu.default", {"n"}, Shape{6, 12})
      .output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.count("kernels") == 1);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn normalizes inside the convolution of one by one behind a norm",
          "[onednn][compiler]") {
  // By the definition, by quarters, and in two runs of channels with half a panel at the end.
  struct Case {
    std::int64_t source;
    std::int64_t target;
  };
  const auto [channels, features] = GENERATE(Case{48, 256}, Case{512, 256}, Case{1056, 80});
  const std::int64_t batch = GENERATE(1, 2);
  const std::string between = GENERATE("none", "relu");
  const std::string other = GENERATE("none", "reader", "stride", "groups");
  const std::int64_t stride = other == "stride" ? 2 : 1;
  const std::int64_t groups = other == "groups" ? 2 : 1;
  const Shape source{batch, channels, 7, 9};
  const Shape target{batch, features, 6 / stride + 1, 8 / stride + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {features, channels / groups, 1, 1});
  // The source stays as it is for another reader.
  graph.node("e", "aten.tanh.default", {"x"}, source);
  add_norm(graph, "n", "e", source);
  std::string value = "n";
  if (between == "relu") graph.node(value = "r", "aten.relu.default", {"n"}, source);
  graph.node("c", "aten.conv2d.default", {value, "p_w"}, target,
             {{"stride", {stride, stride}}, {"groups", groups}});
  add_norm(graph, "m", "c", target).node("y", "aten.relu.default", {"m"}, target).output("y");
  graph.node("k", "aten.mul.Tensor", {"e", "e"}, source).output("k");
  if (other == "reader") graph.node("o", "aten.exp.default", {value}, source).output("o");
  INFO(channels << ", " << features << ", " << batch << ", " << between << ", " << other);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (other == "none" && has_avx2()) {
    // tanh, mul, and one for the rest.
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
    CHECK(runs_kernel(compiled, channels == 512 ? "strassen" : "packed-gemm"));
  }
  check_threads(compiled, graph, {1, 3});
  check_bfloat16(graph, 5e-2);
}

TEST_CASE("onednn squeezes and excites in one kernel", "[onednn][compiler]") {
  const std::string activation = GENERATE("relu", "silu_", "hardswish");
  const std::string gate = GENERATE("sigmoid", "hardsigmoid_");
  const std::string mean = GENERATE("pool", "mean");
  const Shape extent = GENERATE(Shape{2, 48, 23, 31}, Shape{1, 64, 1, 3});
  const std::int64_t hidden = GENERATE(1, 10);
  const bool with_bias = GENERATE(true, false);
  const Shape squeezed{extent[0], extent[1], 1, 1};
  const Shape middle{extent[0], hidden, 1, 1};
  GraphBuilder graph;
  graph.input("x", extent).weight("u", {hidden, extent[1], 1, 1}).weight("b", {hidden});
  graph.weight("w", {extent[1], hidden, 1, 1}).weight("c", {extent[1]});
  graph.node("r", "aten.relu.default", {"x"}, extent);
  if (mean == "pool") {
    graph.node("m", "aten.adaptive_avg_pool2d.default", {"r"}, squeezed, {{"output_size", {1, 1}}});
  } else {
    graph.node("m", "aten.mean.dim", {"r"}, squeezed, {{"dim", {2, 3}}, {"keepdim", true}});
  }
  using Names = std::vector<std::string>;
  graph.node("h", "aten.conv2d.default", with_bias ? Names{"m", "p_u", "p_b"} : Names{"m", "p_u"},
             middle);
  graph.node("a", "aten." + activation + ".default", {"h"}, middle);
  graph.node("e", "aten.conv2d.default", with_bias ? Names{"a", "p_w", "p_c"} : Names{"a", "p_w"},
             squeezed);
  graph.node("g", "aten." + gate + ".default", {"e"}, squeezed);
  graph.node("y", "aten.mul.Tensor", {"g", "r"}, extent).output("y");
  INFO(activation << ", " << gate << ", " << mean << ", " << hidden);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx2()) {
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 2);  // relu, and the rest
    CHECK(runs_kernel(compiled, "squeeze-excite"));
  }
  check_threads(compiled, graph, {1, 3});
  check_bfloat16(graph, 3e-2);
}

TEST_CASE("onednn leaves gates alone that are none", "[onednn][compiler]") {
  // The gate belongs to another tensor, or something else reads it.
  const std::string fault = GENERATE("other tensor", "other reader");
  const Shape extent{1, 32, 9, 9};
  GraphBuilder graph;
  graph.lines(R"(
    input x, z [1,32,9,9]; weight u, w [32,32,1,1]
    m = adaptive_avg_pool2d(x) [1,32,1,1] {"output_size": [1, 1]}
    h = conv2d(m, p_u)
    a = relu(h)
    e = conv2d(a, p_w)
    g = sigmoid(e))");
  graph.node("y", "aten.mul.Tensor", {fault == "other tensor" ? "z" : "x", "g"}, extent);
  graph.output("y");
  if (fault == "other reader") graph.output("g");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
}

}  // namespace npu

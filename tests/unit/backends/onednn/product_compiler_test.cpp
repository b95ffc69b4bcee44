// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles products of matrices.
#include <cmath>
#include <limits>
#include <string>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::onednn::check_chosen;
using test::onednn::check_threads;
using test::onednn::CompiledGraph;
using test::onednn::runs_kernel;

}  // namespace

TEST_CASE("onednn adds products of constants to what is computed", "[onednn][compiler]") {
  const Shape addend = GENERATE(Shape{17}, Shape{4, 17}, Shape{4, 1});
  const double alpha = GENERATE(1.0, 2.0);
  GraphBuilder graph;
  graph.input("x", addend).weight("a", {4, 3}).weight("b", {3, 17});
  graph.node("y", "aten.addmm.default", {"x", "p_a", "p_b"}, Shape{4, 17}, {{"alpha", alpha}});
  CompiledGraph compiled(graph.output("y"));
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn's products of one row have the same bits on any number of threads",
          "[onednn][compiler]") {
  // A function that no kernel of the backend's own computes behind a product leaves it to oneDNN.
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,768]; weight w [768,768]; weight b [768]
    l = linear(x, p_w, p_b)
    t = tanh(l); output t)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn multiplies matrices in seven products of quarters for eight",
          "[onednn][compiler]") {
  struct Case {
    std::int64_t rows;
    std::int64_t inner;
    std::int64_t columns;
  };
  // One task and several, an odd number of rows, one KC block and several. The first is the
  // smallest of them.
  const auto [rows, inner, columns] =
      GENERATE(Case{32, 512, 256}, Case{57, 544, 320}, Case{113, 800, 256}, Case{230, 1600, 832});
  const std::string epilogue = GENERATE("none", "add", "relu");
  const Shape target{1, rows, columns};
  GraphBuilder graph;
  graph.input("x", {1, rows, inner}).input("z", target);
  graph.weight("w", {columns, inner}).weight("b", {columns});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("l");
  if (epilogue == "add") {
    // In the memory of an operand that nothing else reads.
    graph.node("e", "aten.exp.default", {"z"}, target);
    graph.node("y", "aten.add.Tensor", {"e", "l"}, target).output("y");
  }
  if (epilogue == "relu") graph.node("y", "aten.relu.default", {"l"}, target).output("y");
  INFO(rows << " x " << inner << " x " << columns << ", " << epilogue);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 5e-6);
  check_chosen(compiled, "strassen");
  check_threads(compiled, graph, {1, 3, 7});
}

TEST_CASE("onednn multiplies a few rows in one run over the weights", "[onednn][compiler]") {
  const std::int64_t rows = GENERATE(1, 2, 3, 4);
  const std::int64_t inner = GENERATE(5, 64, 331);
  const std::int64_t columns = GENERATE(1, 48, 1003);
  const std::string epilogue = GENERATE("none", "add, relu", "mul");
  const Shape target{rows, columns};
  GraphBuilder graph;
  graph.input("x", {rows, inner}).input("z", target);
  graph.weight("w", {columns, inner}).weight("b", {columns});
  graph.node("l", "aten.linear.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("l");
  if (epilogue == "add, relu") {
    // In the memory of an operand that nothing else reads.
    graph.node("e", "aten.tanh.default", {"z"}, target);
    graph.node("s", "aten.add.Tensor", {"l", "e"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  if (epilogue == "mul") graph.node("y", "aten.mul.Tensor", {"z", "l"}, target).output("y");
  INFO(rows << " x " << inner << " x " << columns << ", " << epilogue);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 4e-6);  // of three results, the sums of 331 may cancel
  CHECK(runs_kernel(compiled, "gemv"));
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn's products of quarters keep rows apart that are unlike", "[onednn][compiler]") {
  constexpr std::int64_t kRows = 65;  // the first and the 34th are paired
  constexpr std::int64_t kWidth = 512;
  GraphBuilder graph;
  const Shape shape{kRows, kWidth};
  graph.input("x", shape).weight("w", {kWidth, kWidth});
  graph.node("y", "aten.linear.default", {"x", "p_w"}, shape).output("y");
  CompiledGraph compiled(graph);
  const auto expected = compiled.run(compiled.device.get());
  const float factor = GENERATE(1e8F, 0.0F, std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity());
  const std::int64_t changed = GENERATE(0, 33, 64);
  auto* row = compiled.inputs[0].as_mutable<float>() + changed * kWidth;
  for (std::int64_t i = 0; i < kWidth; ++i) row[i] *= factor;
  const auto actual = compiled.run(compiled.device.get());
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
    if (i / kWidth == changed) continue;
    REQUIRE(std::abs(actual[0].as<float>()[i] - expected[0].as<float>()[i]) < 1e-4F);
  }
  for (std::int64_t i = 0; factor == 0.0F && i < kWidth; ++i) {
    CHECK(actual[0].as<float>()[changed * kWidth + i] == 0.0F);
  }
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles ops that move elements: as views, in blocks of channels, in
// place.
#include <string>
#include <vector>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::onednn::check_threads;
using test::onednn::CompiledGraph;
using test::onednn::has_avx2;
using test::onednn::has_avx512;

}  // namespace

TEST_CASE("onednn keeps blocks of channels between tokens and pictures", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,48,16]; weight w1 [32,16]; weight w2 [32,1,3,3]; weight w3 [16,32]
    a = linear(x, p_w1) [1,48,32]
    b = aten.transpose.int(a) [1,32,48] {"dim0": 1, "dim1": 2}
    c = view(b) [1,32,6,8] {"size": [1, 32, 6, 8]}
    d = conv2d(c, p_w2) {"padding": [1, 1], "groups": 32}
    e = aten.flatten.using_ints(d) [1,32,48] {"start_dim": 2}
    f = aten.transpose.int(e) [1,48,32] {"dim0": 1, "dim1": 2}
    g = gelu(f)
    y = linear(g, p_w3) [1,48,16]; output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx2() && !has_avx512()) CHECK(compiled.count("reorders") == 0);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn writes concatenated channels in place, also nested", "[onednn][compiler]") {
  GraphBuilder graph;
  const auto shape = [](std::int64_t channels) { return Shape{1, channels, 6, 6}; };
  graph.input("x", shape(16));
  graph.node("f0", "aten.relu.default", {"x"}, shape(16));
  std::vector<std::string> features{"f0"};
  for (int i = 1; i <= 3; ++i) {
    const std::string name = std::to_string(i);
    const std::int64_t channels = 16 * i;
    std::string input = "f0";
    if (i > 1) {
      input = "cat" + name;
      graph.node(input, "aten.cat.default", features, shape(channels),
                 {{"dim", 1}, {"_tensor_list_sizes", {i}}});
    }
    graph.weight("w" + name, {16, channels, 3, 3});
    graph.node("f" + name, "aten.conv2d.default", {input, "p_w" + name}, shape(16),
               {{"padding", {1, 1}}});
    features.push_back("f" + name);
  }
  graph.node("y", "aten.cat.default", features, shape(64),
             {{"dim", 1}, {"_tensor_list_sizes", {4}}});
  graph.node("z", "aten.sigmoid.default", {"y"}, shape(64)).output("z").output("f2");
  CompiledGraph compiled(graph);
  // The input's relu goes into the blocked layout once, and f2 out as a result.
  std::int64_t moves = 0;
  for (const Json& step : compiled.report.at("steps")) moves += step.at("kind") == "move" ? 1 : 0;
  CHECK(moves <= 2);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn splits blocked channels without a copy", "[onednn][compiler]") {
  const std::int64_t batch = GENERATE(1, 2);
  const std::int64_t part = GENERATE(32, 24);
  const Shape half{batch, part, 9, 7};
  GraphBuilder graph;
  graph.input("x", {batch, 16, 9, 7}).weight("w", {2 * part, 16, 1, 1});
  graph.weight("v", {part, part, 1, 1}).weight("u", {part, part, 1, 1});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, Shape{batch, 2 * part, 9, 7});
  graph.node("a", "aten.slice.Tensor", {"c"}, half, {{"dim", 1}, {"start", 0}, {"end", part}});
  graph.node("b", "aten.slice.Tensor", {"c"}, half,
             {{"dim", 1}, {"start", part}, {"end", 2 * part}});
  graph.node("d", "aten.conv2d.default", {"a", "p_v"}, half);
  graph.node("e", "aten.conv2d.default", {"b", "p_u"}, half);
  // One half is read again, behind what could have overwritten it.
  graph.node("r", "aten.relu_.default", {"a"}, half);
  graph.node("s", "aten.add.Tensor", {"d", "e"}, half);
  graph.node("y", "aten.mul.Tensor", {"s", "r"}, half).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (batch == 1 && part == 32 && has_avx2()) {
    CHECK(compiled.count("reorders") <= 2);  // of the input and of the output
  }
}

TEST_CASE("onednn copies weights into a concatenation that others write", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,16,4,4]; weight w [1,16,4,4]
    a = relu(x)
    y = cat(p_w, a) [1,32,4,4] {"dim": 1, "_tensor_list_sizes": [2]}; output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-6);
}

TEST_CASE("onednn copies repeated elements for ops that do not read them in place",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [2,3]; input z [3,2,4,2]
    u = unsqueeze(x) [2,1,3] {"dim": 1}
    e = expand(u) [2,4,3] {"size": [2, 4, 3]}
    r = reshape(e) [8,3] {"shape": [8, 3]}
    t = t(r) [3,8]; output t
    v = view(t) [3,2,4] {"size": [3, 2, 4]}
    i = aten.repeat_interleave.self_int(v) [3,2,8] {"repeats": 2, "dim": 2}
    w = view(i) [3,2,4,2] {"size": [3, 2, 4, 2]}
    y = aten.add.Tensor(w, z); output y
    s = view(r) [4,6] {"size": [4, 6]}; output s
    c = view(i) [6,8] {"size": [6, 8]}; output c)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() == 0);
}

TEST_CASE("onednn subtracts slices without copies", "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [4,8,6]
    a = aten.slice.Tensor(x) [4,7,6] {"dim": 1, "start": 1}
    b = aten.slice.Tensor(x) [4,7,6] {"dim": 1, "end": 7}
    y = aten.sub.Tensor(a, b); output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.report.at("steps").size() == 1);
  CHECK(compiled.error_against_cpu() == 0);
}

}  // namespace npu

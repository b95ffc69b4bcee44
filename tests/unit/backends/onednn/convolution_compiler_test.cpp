// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles convolutions: by Winograd's filters, as products of matrices, in
// groups and with what stands behind them.
#include <algorithm>
#include <string>
#include <vector>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::GraphBuilder;
using test::onednn::add_norm;
using test::onednn::check_chosen;
using test::onednn::check_threads;
using test::onednn::CompiledGraph;
using test::onednn::has_avx2;
using test::onednn::has_avx512;
using test::onednn::runs_kernel;

}  // namespace

TEST_CASE("onednn computes a pointwise convolution before interpolations", "[onednn][compiler]") {
  const bool has_copy = GENERATE(true, false);
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,32,6,5]; input z [1,16,3,10]; input s [1,16,12,10]
    u = aten.upsample_bilinear2d.vec(x) [1,32,12,10] {"output_size": [12, 10],
        "align_corners": false}
    v = aten.upsample_nearest2d.vec(z) [1,16,12,10] {"output_size": [12, 10]})");
  std::vector<std::string> parts{"u", "v"};
  if (has_copy) parts.insert(parts.begin() + 1, "s");
  const std::int64_t channels = has_copy ? 64 : 48;
  graph.node("t", "aten.cat.default", parts, Shape{1, channels, 12, 10},
             {{"dim", 1}, {"_tensor_list_sizes", {parts.size()}}});
  graph.weight("w", {48, channels, 1, 1}).weight("b", {48});
  graph.node("c", "aten.conv2d.default", {"t", "p_w", "p_b"}, Shape{1, 48, 12, 10});
  graph.node("y", "aten.relu.default", {"c"}, Shape{1, 48, 12, 10}).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  check_threads(compiled, graph, {1, 3});
  const Json& steps = compiled.report.at("steps");
  const bool joins = std::any_of(steps.begin(), steps.end(), [](const Json& step) {
    return step.at("kernel") == "concatenation" || step.at("kernel") == "concat";
  });
  if (has_avx2()) CHECK_FALSE(joins);
}

TEST_CASE("onednn does not add in the memory that the convolution reads", "[onednn][compiler]") {
  const std::int64_t channels = GENERATE(16, 4);
  GraphBuilder graph;
  const Shape shape{1, channels, 6, 6};
  graph.input("x", shape).weight("w", {channels, channels, 3, 3});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape, {{"padding", {1, 1}}});
  graph.node("y", "aten.add.Tensor", {"c", "x"}, shape).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-4);
}

TEST_CASE("onednn convolves by Winograd's filters, with any borders and epilogue",
          "[onednn][compiler]") {
  struct Case {
    Shape kernel;
    Shape padding;
    std::int64_t products;  ///< of a tile
  };
  const auto [kernel, padding, products] =
      GENERATE(Case{{3, 3}, {1, 1}, 36}, Case{{3, 3}, {0, 2}, 36}, Case{{5, 5}, {2, 2}, 36},
               Case{{1, 7}, {0, 3}, 10}, Case{{7, 1}, {3, 0}, 10}, Case{{1, 3}, {0, 1}, 6},
               Case{{3, 1}, {0, 0}, 6}, Case{{5, 1}, {4, 0}, 8}, Case{{1, 5}, {0, 1}, 8});
  const std::string epilogue = GENERATE("none", "norm, relu", "add, relu", "silu", "clamp", "mul");
  const std::int64_t batch = epilogue == "none" ? 2 : 1;
  // Neither extents nor channels are multiples of anything but 16.
  const Shape source{batch, 64, 21, 18};
  const Shape target{batch, 48, 21 + 2 * padding[0] - kernel[0] + 1,
                     18 + 2 * padding[1] - kernel[1] + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 64, kernel[0], kernel[1]}).weight("b", {48});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"padding", {padding[0], padding[1]}}});
  if (epilogue == "none") graph.output("c");
  if (epilogue == "norm, relu") {
    add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  }
  if (epilogue == "add, relu" || epilogue == "mul") {
    graph.input("z", target);
    const bool adds = epilogue != "mul";
    graph.node("s", adds ? "aten.add.Tensor" : "aten.mul.Tensor", {"c", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  if (epilogue == "silu") graph.node("y", "aten.silu.default", {"c"}, target).output("y");
  if (epilogue == "clamp") {
    graph.node("y", "aten.hardtanh.default", {"c"}, target, {{"min_val", -5.5}, {"max_val", 4.25}})
        .output("y");
  }
  INFO("kernel " << kernel[0] << " x " << kernel[1] << ", epilogue " << epilogue);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_chosen(compiled, "winograd");
  if (has_avx2()) CHECK(compiled.count("weight_bytes") >= products * 64 * 48 * 4);
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves with stride 2 by Winograd's filters", "[onednn][compiler]") {
  const bool is_odd = GENERATE(false, true);
  const std::string epilogue = GENERATE("none", "norm, add, relu");
  const std::int64_t extent = is_odd ? 21 : 18;
  const Shape source{2, 64, extent, 26};
  const Shape target{2, 96, (extent - 1) / 2 + 1, 13};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {96, 64, 3, 3}).weight("b", {96});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {2, 2}}, {"padding", {1, 1}}});
  if (epilogue == "none") {
    graph.output("c");
  } else {
    graph.input("z", target);
    add_norm(graph, "n", "c", target).node("s", "aten.add.Tensor", {"n", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (!has_avx512()) check_chosen(compiled, "winograd");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves videos in space and in time by Winograd's filters",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [2,64,5,14,11]; input z [2,96,5,14,11]; weight w [96,64,1,3,3]; weight v [64,96,3,1,1]
    weight b [64]
    c = conv3d(x, p_w) [2,96,5,14,11] {"padding": [0, 1, 1]}
    s = aten.add.Tensor(c, z)
    r = relu(s)
    d = conv3d(r, p_v, p_b) [2,64,5,14,11] {"padding": [1, 0, 0]}; output d)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  check_chosen(compiled, "winograd");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves pixels that are a dilation apart by Winograd's filters",
          "[onednn][compiler]") {
  const Shape dilation = GENERATE(Shape{2, 2}, Shape{4, 2}, Shape{1, 3});
  const std::string epilogue = GENERATE("none", "norm, relu", "add");
  const Shape shape{2, 64, 24, 18};
  GraphBuilder graph;
  graph.input("x", shape).weight("w", {64, 64, 3, 3}).weight("b", {64});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, shape,
             {{"padding", dilation}, {"dilation", dilation}});
  if (epilogue == "none") graph.output("c");
  if (epilogue == "norm, relu") {
    add_norm(graph, "n", "c", shape).node("y", "aten.relu.default", {"n"}, shape).output("y");
  }
  if (epilogue == "add") {
    graph.input("z", shape).node("s", "aten.add.Tensor", {"c", "z"}, shape).output("s");
  }
  INFO("dilation " << dilation[0] << " x " << dilation[1] << ", epilogue " << epilogue);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  // What is added does not lie like the phases.
  if (epilogue != "add") check_chosen(compiled, "winograd");
  if (epilogue == "add") CHECK_FALSE(runs_kernel(compiled, "winograd"));
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn leaves out taps that read only padding", "[onednn][compiler]") {
  struct Case {
    Shape dilation;
    Shape padding;
    std::int64_t stride;
    const char* kernel;  ///< that is then taken; or one tap is left, or oneDNN chooses
  };
  const auto [dilation, padding, stride, kernel] =
      GENERATE(Case{{12, 13}, {12, 13}, 1, "implicit-gemm"}, Case{{14, 24}, {14, 24}, 1, "one tap"},
               Case{{24, 1}, {24, 1}, 1, "winograd"}, Case{{40, 9}, {40, 9}, 1, "implicit-gemm"},
               Case{{30, 30}, {29, 29}, 1, "implicit-gemm"}, Case{{30, 15}, {30, 15}, 2, "one tap"},
               Case{{30, 30}, {29, 29}, 2, "convolution"});
  const Shape source{2, 64, 14, 14};
  Shape target{2, 64};
  for (std::size_t i = 0; i < 2; ++i) {
    target.push_back((14 + 2 * padding[i] - 2 * dilation[i] - 1) / stride + 1);
  }
  GraphBuilder graph;
  graph.input("x", source).weight("w", {64, 64, 3, 3}).weight("b", {64});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {stride, stride}}, {"padding", padding}, {"dilation", dilation}});
  add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  INFO("dilation " << dilation[0] << " x " << dilation[1]);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (std::string_view(kernel) == "one tap") {
    CHECK(compiled.count("weight_bytes") < 2 * 64 * 64 * 4);
  } else if (std::string_view(kernel) != "convolution") {
    check_chosen(compiled, kernel);
  }
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn convolves a signal of one channel as a product of its windows",
          "[onednn][compiler]") {
  struct Case {
    std::int64_t length;
    std::int64_t taps;
    std::int64_t stride;
    std::int64_t padding;
  };
  // Windows that lie in the signal or beyond it, that fill blocks or do not; one in the padding.
  const auto [length, taps, stride, padding] = GENERATE(
      Case{1000, 80, 4, 40}, Case{1000, 80, 8, 0}, Case{997, 100, 3, 0}, Case{400, 90, 5, 7},
      Case{96, 96, 1, 0}, Case{64, 96, 7, 20}, Case{16, 96, 200, 100});
  const Shape source{3, 1, length};
  const Shape target{3, 48, (length + 2 * padding - taps) / stride + 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 1, taps}).weight("b", {48});
  graph.node("c", "aten.conv1d.default", {"x", "p_w", "p_b"}, target,
             {{"stride", {stride}}, {"padding", {padding}}});
  add_norm(graph, "n", "c", target).node("y", "aten.relu.default", {"n"}, target).output("y");
  INFO(taps << " taps over " << length << ", stride " << stride);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  // Without padding oneDNN has fast kernels for some.
  const bool is_padded = padding != 0 && padding < taps;
  if (has_avx2() && !has_avx512() && is_padded) check_chosen(compiled, "packed-gemm");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn expands and filters by channel in one kernel", "[onednn][compiler]") {
  const std::int64_t taps = GENERATE(3, 5);
  const std::int64_t stride = GENERATE(1, 2);
  const std::int64_t padding = GENERATE(0, 2);
  const std::string function = GENERATE("silu", "hardswish", "hardtanh", "relu", "none");
  const std::int64_t height = GENERATE(37, 6);
  const std::int64_t batch = height == 6 ? 2 : 1;
  const auto extent = [&](std::int64_t n) { return (n + 2 * padding - taps) / stride + 1; };
  const std::int64_t inputs = height == 6 ? 24 : 20;
  const Shape source{batch, inputs, height, 19};
  const Shape middle{batch, 48, height, 19};
  const Shape target{batch, 48, extent(height), extent(19)};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, inputs, 1, 1}).weight("d", {48, 1, taps, taps});
  graph.weight("b", {48});
  graph.node("x1", "aten.relu.default", {"x"}, source);
  const auto add_function = [&](const std::string& name, const std::string& input,
                                const Shape& shape) {
    if (function == "none") return input;
    graph.node(name, "aten." + function + ".default", {input}, shape);
    return name;
  };
  graph.node("c", "aten.conv2d.default", {"x1", "p_w"}, middle);
  add_norm(graph, "n", "c", middle);
  const std::string inner = add_function("f", "n", middle);
  // What the kernel reads later must still be there: the last reader of x1 works in place.
  graph.node("x2", "aten.sigmoid_.default", {"x1"}, source);
  graph.node("e", "aten.conv2d.default", {inner, "p_d", "p_b"}, target,
             {{"stride", {stride, stride}},
              {"padding", {padding, padding}},
              {"dilation", {1, 1}},
              {"groups", 48}});
  graph.output(add_function("g", "e", target)).output("x2");
  INFO(taps << " taps, stride " << stride << ", padding " << padding << ", " << function);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  if (has_avx512() || (has_avx2() && inputs % 8 == 0)) {
    // relu, sigmoid, and one for all the rest.
    CHECK(compiled.count("kernels") - compiled.count("reorders") == 3);
    CHECK(runs_kernel(compiled, "expand-depthwise"));
  }
}

TEST_CASE("onednn computes groups that do not fill vectors", "[onednn][compiler]") {
  struct Case {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t groups;
    std::vector<std::int64_t> stride;
    std::vector<std::int64_t> dilation;
  };
  const auto each = GENERATE(Case{32, 32, 8, {1, 1}, {1, 1}}, Case{16, 48, 16, {1, 1}, {2, 1}},
                             Case{48, 48, 4, {2, 2}, {1, 1}}, Case{64, 16, 8, {1, 2}, {1, 3}},
                             Case{32, 32, 8, {2}, {2}}, Case{24, 24, 8, {1, 1}, {1, 1}});
  const bool is_line = each.stride.size() == 1;
  const auto in_rank = [&](const Shape& shape) {
    return is_line ? Shape{shape[0], shape[1], shape[3]} : shape;
  };
  const auto extent = [&](std::int64_t size, std::size_t i) {
    return (size + 2 - 2 * each.dilation[i] - 1) / each.stride[i] + 1;
  };
  const Shape source = in_rank({2, each.inputs, 9, 20});
  const Shape target =
      in_rank({2, each.outputs, is_line ? 1 : extent(9, 0), extent(20, is_line ? 0 : 1)});
  GraphBuilder graph;
  graph.input("x", source).input("y", target).weight("b", {each.outputs});
  graph.weight("w", in_rank({each.outputs, each.inputs / each.groups, 3, 3}));
  const std::string rank = is_line ? "1" : "2";
  graph.node("x1", "aten.relu.default", {"x"}, source);
  graph.node("c", "aten.conv" + rank + "d.default", {"x1", "p_w", "p_b"}, target,
             {{"stride", each.stride},
              {"padding", std::vector<std::int64_t>(each.stride.size(), 1)},
              {"dilation", each.dilation},
              {"groups", each.groups}});
  graph.node("s", "aten.add.Tensor", {"c", "y"}, target);
  graph.node("r", "aten.relu.default", {"s"}, target).output("r");
  INFO(each.groups << " groups of " << each.inputs << " to " << each.outputs << " channels");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  const bool fills_blocks = each.inputs % 16 == 0 && each.outputs % 16 == 0;
  if (fills_blocks && has_avx2()) CHECK(runs_kernel(compiled, "grouped-convolution"));
}

TEST_CASE("onednn convolves by Winograd's filters with weights larger than a cache",
          "[onednn][compiler]") {
  // Threads share channels where tiles are few, else tiles; the last 16 channels are alone.
  const Shape extent = GENERATE(Shape{9, 11}, Shape{3, 4}, Shape{30, 29});
  const std::int64_t channels = 272;
  const Shape target{1, channels, extent[0], extent[1]};
  GraphBuilder graph;
  graph.input("x", {1, 160, extent[0], extent[1]}).input("z", target);
  graph.weight("w", {channels, 160, 3, 3}).weight("b", {channels});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target, {{"padding", {1, 1}}});
  graph.node("s", "aten.add.Tensor", {"c", "z"}, target).output("s");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-5);
  if (extent[0] == 3) {  // too few pixels for the weights of any filter
    CHECK(runs_kernel(compiled, "convolution"));
  } else {
    check_chosen(compiled, "winograd");
  }
  check_threads(compiled, graph, {1, 2, 3, 4});
}

TEST_CASE("onednn convolves one by one as a product of matrices", "[onednn][compiler]") {
  const std::int64_t height = GENERATE(6, 23);
  const std::string epilogue = GENERATE("none", "norm, add, relu", "silu");
  const Shape source{2, 544, height, 11};
  const Shape target{2, 256, height, 11};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {256, 544, 1, 1}).weight("b", {256});
  graph.node("c", "aten.conv2d.default", {"x", "p_w", "p_b"}, target);
  if (epilogue == "none") graph.output("c");
  if (epilogue == "silu") graph.node("y", "aten.silu.default", {"c"}, target).output("y");
  if (epilogue == "norm, add, relu") {
    add_norm(graph, "n", "c", target).input("z", target);
    graph.node("s", "aten.add.Tensor", {"n", "z"}, target);
    graph.node("y", "aten.relu.default", {"s"}, target).output("y");
  }
  INFO(height << ", " << epilogue);
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 5e-6);
  check_chosen(compiled, "strassen");
  check_threads(compiled, graph, {1, 3});
}

TEST_CASE("onednn multiplies the only pixel of each image with the weights", "[onednn][compiler]") {
  const std::int64_t images = GENERATE(1, 3);
  const Shape source{images, 96, 1, 1};
  const Shape target{images, 48, 1, 1};
  GraphBuilder graph;
  graph.input("x", source).weight("w", {48, 96, 1, 1}).weight("b", {48});
  graph.node("t", "aten.tanh.default", {"x"}, source);
  graph.node("c", "aten.conv2d.default", {"t", "p_w", "p_b"}, target);
  graph.node("y", "aten.hardswish.default", {"c"}, target).output("y");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 2e-6);
  check_chosen(compiled, "gemv");
}

// Of one channel the layout is that of channels last, too, and oneDNN has fast kernels for either,
// but none that reads the one and writes the other.
TEST_CASE("onednn convolves one channel with a long filter by a fast kernel",
          "[onednn][compiler]") {
  GraphBuilder graph;
  graph.lines(R"(
    input x [1,1,800]; weight w [64,1,80]
    c = conv1d(x, p_w) [1,64,201] {"stride": [4], "padding": [40]}
    y = relu(c); output y)");
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
  for (const Json& step : compiled.report.at("steps")) {
    const Json* name = find_member(step, "implementation");
    if (name != nullptr) CHECK_FALSE(name->get<std::string>().starts_with("ref"));
  }
}

TEST_CASE("onednn keeps the result of an expansion that something else reads",
          "[onednn][compiler]") {
  GraphBuilder graph;
  const Shape shape{1, 32, 9, 9};
  graph.input("x", {1, 16, 9, 9}).weight("w", {32, 16, 1, 1}).weight("d", {32, 1, 3, 3});
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape);
  const bool adds_behind = GENERATE(false, true);
  if (!adds_behind) graph.output("c");
  graph.node("e", "aten.conv2d.default", {"c", "p_d"}, shape,
             {{"stride", {1, 1}}, {"padding", {1, 1}}, {"dilation", {1, 1}}, {"groups", 32}});
  if (adds_behind) {
    // The depthwise convolution's own epilogue has an operand, which the kernel does not take.
    graph.input("z", shape).node("y", "aten.add.Tensor", {"e", "z"}, shape).output("y");
  } else {
    graph.output("e");
  }
  CompiledGraph compiled(graph);
  CHECK(compiled.error_against_cpu() < 1e-5);
}

}  // namespace npu

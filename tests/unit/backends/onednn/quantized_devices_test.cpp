// SPDX-License-Identifier: Apache-2.0
// Ops between dequantize and quantize nodes: the numbers of int8 kernels against those of libtorch,
// which computes node by node, and no tensor of floats in between.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "backends/two_devices.hpp"
#include "catch.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu {
namespace {

using test::DeviceRun;
using test::GraphBuilder;
using test::onednn::multiplies_int8;
using Kernels = std::vector<std::string>;

struct Numbers {
  DType dtype = DType::kUInt8;
  double scale = 1;
  int zero_point = 0;
};
constexpr Numbers kUint8Numbers{DType::kUInt8, 0.0213, 131};
constexpr Numbers kInt8Numbers{DType::kInt8, 0.0307, -5};

const std::string kQuantizedOps = "quantized_decomposed.";

/// A document whose activations are integers.
class QuantizedGraph : public GraphBuilder {
 public:
  /// In between are tensors of this dtype.
  explicit QuantizedGraph(DType between = DType::kFloat32) : between_(between) {}

  /// Integers from the host as floats.
  QuantizedGraph& numbers(const std::string& name, const Shape& shape, const Numbers& as) {
    input("q_" + name, shape, std::string(dtype_name(as.dtype)));
    node(name, kQuantizedOps + "dequantize_per_tensor.default", {"q_" + name}, shape,
         with_result(attrs_of(as)), std::string(dtype_name(between_)));
    return *this;
  }
  /// int8 weights with a scale for each element of a dimension.
  QuantizedGraph& channel_weight(const std::string& name, const Shape& shape, std::int64_t axis) {
    const Shape channels{shape[static_cast<std::size_t>(axis)]};
    weight("q_" + name, shape, "int8");
    weight("s_" + name, channels, std::string(dtype_name(between_)));
    weight("z_" + name, channels, "int64");
    node(name, kQuantizedOps + "dequantize_per_channel.default",
         {"p_q_" + name, "p_s_" + name, "p_z_" + name}, shape,
         with_result(
             {{"axis", axis}, {"quant_min", -127}, {"quant_max", 127}, {"dtype", "torch.int8"}}),
         std::string(dtype_name(between_)));
    return *this;
  }
  /// A bias of int32 with a scale for each element.
  QuantizedGraph& integer_bias(const std::string& name, std::int64_t channels) {
    weight("q_" + name, {channels}, "int32");
    weight("s_" + name, {channels}, std::string(dtype_name(between_)));
    weight("z_" + name, {channels}, "int64");
    node(name, kQuantizedOps + "dequantize_per_channel.default",
         {"p_q_" + name, "p_s_" + name, "p_z_" + name}, Shape{channels},
         with_result({{"axis", 0},
                      {"quant_min", -2147483648},
                      {"quant_max", 2147483647},
                      {"dtype", "torch.int32"}}),
         std::string(dtype_name(between_)));
    return *this;
  }
  QuantizedGraph& op(const std::string& name, const std::string& type,
                     const std::vector<std::string>& operands, const Shape& shape,
                     const Json& attrs = Json::object()) {
    node(name, type, operands, shape, attrs, std::string(dtype_name(between_)));
    return *this;
  }
  QuantizedGraph& quantize(const std::string& from, const Shape& shape, const Numbers& to) {
    Json attrs = attrs_of(to);
    if (between_ == DType::kFloat64) attrs["divide_by_scale"] = true;
    node("result", kQuantizedOps + "quantize_per_tensor.default", {from}, shape, attrs,
         std::string(dtype_name(to.dtype)));
    output("result");
    return *this;
  }

 private:
  static Json attrs_of(const Numbers& as) {
    const auto [least, most] = range_of(as.dtype);
    return {{"scale", as.scale},
            {"zero_point", as.zero_point},
            {"quant_min", least},
            {"quant_max", most},
            {"dtype", "torch." + std::string(dtype_name(as.dtype))}};
  }
  Json with_result(Json attrs) const {
    if (between_ != DType::kFloat32) {
      attrs["out_dtype"] = "torch." + std::string(dtype_name(between_));
    }
    return attrs;
  }

  DType between_;
};

/// Integers all over the range; scales and biases above 0; zero points of 0.
Tensor filled(const TensorInfo& info, unsigned seed) {
  Tensor values(info.dtype, info.shape);
  unsigned state = seed * 2654435761U + 1;
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    state = state * 1664525U + 1013904223U;
    const auto byte = static_cast<int>(state >> 24);
    if (info.dtype == DType::kUInt8) {
      values.as_mutable<std::uint8_t>()[i] = static_cast<std::uint8_t>(byte);
    } else if (info.dtype == DType::kInt8) {
      values.as_mutable<std::int8_t>()[i] = static_cast<std::int8_t>(std::max(-127, byte - 128));
    } else if (info.dtype == DType::kFloat32) {
      values.as_mutable<float>()[i] = 0.001F * static_cast<float>(1 + byte % 7);
    } else if (info.dtype == DType::kFloat64) {
      values.as_mutable<double>()[i] = double{0.001F * static_cast<float>(1 + byte % 7)};
    } else if (info.dtype == DType::kInt32) {
      values.as_mutable<std::int32_t>()[i] = byte * 40 - 5000;
    }
  }
  return values;
}

DeviceRun run_filled(const GraphBuilder& builder, const std::string& device) {
  const Graph graph = builder.build();
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  for (const TensorInfo& tensor : graph.tensors()) {
    weights.push_back(tensor.kind == TensorKind::kWeight ? filled(tensor, 3) : Tensor());
  }
  for (const TensorId id : graph.graph_inputs()) {
    inputs.push_back(filled(graph.tensor(id), 5 + static_cast<unsigned>(inputs.size())));
  }
  return test::run_on(builder, device, weights, inputs);
}

/// Compares, and returns the kernels. `differing`: the share of numbers that may be a step off.
Kernels check_numbers(const GraphBuilder& builder, double differing) {
  const DeviceRun run = run_filled(builder, "npu");
  const Tensor expected = run_filled(builder, "cpu").result;
  REQUIRE(run.result.dtype() == expected.dtype());
  REQUIRE(run.result.shape() == expected.shape());
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double difference = run.result.value_as_double(i) - expected.value_as_double(i);
    INFO(i);
    REQUIRE(std::abs(difference) <= 1);
    differ += difference != 0 ? 1 : 0;
  }
  CHECK(static_cast<double>(differ) <= differing * static_cast<double>(expected.element_count()));
  return run.kernels;
}

struct Moved {
  std::string op;
  Shape source;
  Json attrs;
  Shape result;
};

const Json kNone = nullptr;

const Moved kNearest[]{
    {"aten.upsample_nearest2d.vec",
     {2, 19, 5, 7},
     {{"output_size", kNone}, {"scale_factors", {2.0, 2.0}}},
     {2, 19, 10, 14}},
    {"aten.upsample_nearest1d.default", {1, 130, 9}, {{"output_size", {13}}}, {1, 130, 13}},
    {"aten._upsample_nearest_exact2d.default",
     {1, 3, 5, 7},
     {{"output_size", {8, 4}}},
     {1, 3, 8, 4}},
    {"aten.upsample_nearest3d.default",
     {1, 16, 2, 3, 4},
     {{"output_size", {4, 3, 5}}},
     {1, 16, 4, 3, 5}},
};
const Moved kInterpolated[]{
    {"aten.upsample_bilinear2d.vec",
     {2, 19, 5, 7},
     {{"output_size", kNone}, {"align_corners", false}, {"scale_factors", {2.0, 2.0}}},
     {2, 19, 10, 14}},
    {"aten.upsample_bilinear2d.default",
     {1, 130, 9, 6},
     {{"output_size", {5, 11}}, {"align_corners", true}},
     {1, 130, 5, 11}},
    {"aten.upsample_linear1d.default",
     {1, 32, 9},
     {{"output_size", {17}}, {"align_corners", false}},
     {1, 32, 17}},
    {"aten.upsample_trilinear3d.default",
     {1, 16, 2, 3, 4},
     {{"output_size", {4, 6, 5}}, {"align_corners", false}},
     {1, 16, 4, 6, 5}},
    {"aten.upsample_bicubic2d.default",
     {1, 16, 6, 5},
     {{"output_size", {11, 9}}, {"align_corners", false}},
     {1, 16, 11, 9}},
};
const Moved kPadded[]{
    {"aten.constant_pad_nd.default", {2, 19, 5, 7}, {{"pad", {1, 2, 3, 0}}}, {2, 19, 8, 10}},
    {"aten.constant_pad_nd.default",
     {1, 5, 4, 4},
     {{"pad", {0, 0, 1, 1, 2, 1}}, {"value", 0.75}},
     {1, 8, 6, 4}},
    {"aten.pad.default",
     {3, 9},
     {{"pad", {-2, 4}}, {"mode", "constant"}, {"value", kNone}},
     {3, 11}},
    {"aten.constant_pad_nd.default", {1, 16, 9}, {{"pad", {-1, -2}}}, {1, 16, 6}},
    {"aten.constant_pad_nd.default",
     {1, 16, 3, 4, 5},
     {{"pad", {1, 1, 1, 1, 1, 1}}},
     {1, 16, 5, 6, 7}},
};
/// Other ops that only move elements.
const Moved kMoved[]{
    {"aten.slice.Tensor", {2, 19, 6, 8}, {{"dim", 1}, {"start", 3}, {"end", 17}}, {2, 14, 6, 8}},
    {"aten.slice.Tensor",
     {2, 19, 6, 8},
     {{"dim", 3}, {"start", 1}, {"end", 8}, {"step", 2}},
     {2, 19, 6, 4}},
    {"aten.narrow.default",
     {2, 19, 6, 8},
     {{"dim", 2}, {"start", 1}, {"length", 3}},
     {2, 19, 3, 8}},
    {"aten.select.int", {2, 19, 6, 8}, {{"dim", 1}, {"index", 4}}, {2, 6, 8}},
    {"aten.pixel_shuffle.default", {2, 12, 3, 4}, {{"upscale_factor", 2}}, {2, 3, 6, 8}},
    {"aten.pixel_unshuffle.default", {2, 3, 6, 8}, {{"downscale_factor", 2}}, {2, 12, 3, 4}},
    {"aten.channel_shuffle.default", {2, 12, 3, 4}, {{"groups", 3}}, {2, 12, 3, 4}},
    {"aten.flip.default", {2, 12, 3, 4}, {{"dims", {1, 3}}}, {2, 12, 3, 4}},
    {"aten.roll.default", {2, 12, 3, 4}, {{"shifts", {1, 2}}, {"dims", {2, 3}}}, {2, 12, 3, 4}},
    {"aten.repeat.default", {2, 3, 4}, {{"repeats", {2, 1, 3}}}, {4, 3, 12}},
    {"aten.expand.default", {2, 1, 4}, {{"size", {2, 5, 4}}}, {2, 5, 4}},
    {"aten.permute.default", {2, 12, 3, 4}, {{"dims", {0, 2, 3, 1}}}, {2, 3, 4, 12}},
    {"aten.transpose.int", {2, 12, 3, 4}, {{"dim0", 1}, {"dim1", 2}}, {2, 3, 12, 4}},
};

struct Transposed {
  std::string op;
  Shape source;
  Shape weight;  ///< [I, O / groups, ..]
  Json attrs;
  Shape result;
};

/// Overlapping, disjoint, cut, dilated, grouped, by channel.
const Transposed kTransposed[]{
    {"aten.conv_transpose2d.input",
     {2, 16, 7, 9},
     {16, 32, 3, 3},
     {{"stride", {2, 2}}, {"padding", {1, 1}}, {"output_padding", {1, 1}}},
     {2, 32, 14, 18}},
    {"aten.conv_transpose2d.input",
     {1, 32, 6, 5},
     {32, 16, 2, 2},
     {{"stride", {2, 2}}},
     {1, 16, 12, 10}},
    {"aten.conv_transpose2d.input", {1, 5, 6, 5}, {5, 7, 3, 2}, Json::object(), {1, 7, 8, 6}},
    {"aten.conv_transpose1d.default",
     {1, 16, 11},
     {16, 24, 4},
     {{"stride", {2}}, {"padding", {1}}},
     {1, 24, 22}},
    {"aten.conv_transpose3d.input",
     {1, 16, 3, 4, 5},
     {16, 16, 2, 2, 2},
     {{"stride", {2, 2, 2}}},
     {1, 16, 6, 8, 10}},
    {"aten.convolution.default",
     {1, 32, 5, 5},
     {32, 16, 3, 3},
     {{"stride", {1, 1}},
      {"padding", {1, 1}},
      {"dilation", {1, 1}},
      {"transposed", true},
      {"output_padding", {0, 0}},
      {"groups", 1}},
     {1, 16, 5, 5}},
    {"aten.conv_transpose2d.input",
     {1, 32, 6, 5},
     {32, 8, 3, 3},
     {{"stride", {2, 2}}, {"padding", {1, 1}}, {"groups", 2}},
     {1, 16, 11, 9}},
};

/// Behind it a bias, and a function if there is one.
QuantizedGraph transposed_graph(const Transposed& each, const Numbers& to,
                                const std::string& function) {
  QuantizedGraph graph;
  graph.numbers("x", each.source, kUint8Numbers).channel_weight("w", each.weight, 1);
  graph.weight("b", {each.result[1]});
  graph.node("y", each.op, {"x", "w", "p_b"}, each.result, each.attrs);
  if (!function.empty()) graph.node("f", function, {"y"}, each.result, Json::object());
  graph.quantize(function.empty() ? "y" : "f", each.result, to);
  return graph;
}

struct AttentionCase {
  Shape query;
  Shape key;
  Shape value;
  Json attrs;
};
const AttentionCase kAttention[]{
    {{2, 3, 17, 32}, {2, 3, 17, 32}, {2, 3, 17, 32}, Json::object()},
    {{1, 2, 5, 24}, {1, 2, 40, 24}, {1, 2, 40, 16}, {{"scale", 0.125}}},
    {{3, 33, 16}, {3, 33, 16}, {3, 33, 16}, {{"is_causal", true}}},
};

/// Once with the scale that the operand has, and once with another.
QuantizedGraph moved_graph(const Moved& each, const Numbers& from, const Numbers& to) {
  QuantizedGraph graph;
  graph.numbers("x", each.source, from);
  graph.node("y", each.op, {"x"}, each.result, each.attrs);
  graph.quantize("y", each.result, to);
  return graph;
}

bool has(const Kernels& kernels, const std::string& name) {
  return std::find(kernels.begin(), kernels.end(), name) != kernels.end();
}

}  // namespace

TEST_CASE("onednn: a resize of int8 numbers is one kernel", "[onednn][quantized]") {
  const Numbers from = GENERATE(kUint8Numbers, kInt8Numbers);
  SECTION("to nearest numbers") {
    const Moved& each = GENERATE(from_range(std::begin(kNearest), std::end(kNearest)));
    INFO(each.op);
    CHECK(check_numbers(moved_graph(each, from, from), 0) == Kernels{"quantized-resample"});
    const Numbers to = from.dtype == DType::kInt8 ? kUint8Numbers : kInt8Numbers;
    CHECK(check_numbers(moved_graph(each, from, to), 0.01) ==
          Kernels{"byte-table", "quantized-resample"});
  }
  SECTION("to numbers in between") {
    const Moved& each = GENERATE(from_range(std::begin(kInterpolated), std::end(kInterpolated)));
    INFO(each.op);
    // Sums with weights of a few bits are often ties, which rounding in float breaks at random.
    for (const Numbers& to : {kUint8Numbers, kInt8Numbers}) {
      CHECK(check_numbers(moved_graph(each, from, to), 0.12) == Kernels{"quantized-resample"});
    }
  }
}

TEST_CASE("onednn: bounds behind a resize of int8 numbers are a part of it",
          "[onednn][quantized]") {
  const Moved& each = GENERATE(from_range(std::begin(kInterpolated), std::end(kInterpolated)));
  QuantizedGraph graph;
  graph.numbers("x", each.source, kUint8Numbers);
  graph.node("y", each.op, {"x"}, each.result, each.attrs);
  graph.node("r", "aten.hardtanh.default", {"y"}, each.result,
             {{"min_val", -0.5}, {"max_val", 1.25}});
  graph.quantize("r", each.result, kInt8Numbers);
  CHECK(check_numbers(graph, 0.12) == Kernels{"quantized-resample"});
}

TEST_CASE("onednn: a pad of int8 numbers is one kernel", "[onednn][quantized]") {
  const Moved& each = GENERATE(from_range(std::begin(kPadded), std::end(kPadded)));
  INFO(each.op);
  const Numbers from = GENERATE(kUint8Numbers, kInt8Numbers);
  CHECK(check_numbers(moved_graph(each, from, from), 0) == Kernels{"padded-copy"});
  const Numbers to = from.dtype == DType::kInt8 ? kUint8Numbers : kInt8Numbers;
  CHECK(check_numbers(moved_graph(each, from, to), 0.01) == Kernels{"byte-table", "padded-copy"});
}

TEST_CASE("onednn: a pad by reflection of int8 numbers is right", "[onednn][quantized]") {
  const Moved reflected{"aten.pad.default",
                        {1, 16, 5, 7},
                        {{"pad", {1, 1, 1, 1}}, {"mode", "reflect"}},
                        {1, 16, 7, 9}};
  CHECK_FALSE(check_numbers(moved_graph(reflected, kUint8Numbers, kUint8Numbers), 0).empty());
}

TEST_CASE("onednn: a transposed convolution between conversions is one kernel",
          "[onednn][quantized]") {
  const Transposed& each = GENERATE(from_range(std::begin(kTransposed), std::end(kTransposed)));
  const std::string function = GENERATE("", "aten.relu.default", "aten.hardswish.default");
  INFO(each.op << " " << each.attrs.dump() << " " << function);
  for (const Numbers& to : {Numbers{DType::kUInt8, 0.0913, 31}, Numbers{DType::kInt8, 0.117, 5}}) {
    const Kernels kernels = check_numbers(transposed_graph(each, to, function), 0.002);
    if (multiplies_int8()) CHECK(kernels == Kernels{"deconvolution"});
  }
}

TEST_CASE("onednn: a transposed int8 convolution has its bias where no tap reaches",
          "[onednn][quantized]") {
  const std::int64_t stride = GENERATE(1, 2, 3);
  const std::int64_t taps = GENERATE(1, 2);
  const std::int64_t extent = 4 * stride + taps;
  QuantizedGraph graph;
  graph.numbers("x", {1, 16, 5, 5}, kUint8Numbers);
  graph.channel_weight("w", {16, 8, taps, taps}, 1);
  graph.weight("b", {8});
  graph.node("y", "aten.conv_transpose2d.input", {"x", "w", "p_b"}, Shape{1, 8, extent, extent},
             {{"stride", {stride, stride}}});
  graph.quantize("y", {1, 8, extent, extent}, {DType::kUInt8, 0.0913, 31});
  INFO(taps << " taps, stride " << stride);
  check_numbers(graph, 0.01);
}

TEST_CASE("onednn: a batch norm is part of a transposed int8 convolution", "[onednn][quantized]") {
  const Transposed& each = kTransposed[0];
  QuantizedGraph graph;
  graph.numbers("x", each.source, kInt8Numbers).channel_weight("w", each.weight, 1);
  for (const char* name : {"gamma", "beta", "mean", "var"}) graph.weight(name, {each.result[1]});
  graph.node("y", each.op, {"x", "w"}, each.result, each.attrs);
  graph.node("n", "aten.batch_norm.default", {"y", "p_gamma", "p_beta", "p_mean", "p_var"},
             each.result,
             {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  graph.quantize("n", each.result, {DType::kUInt8, 0.0051, 128});
  const Kernels kernels = check_numbers(graph, 0.002);
  if (multiplies_int8()) CHECK(kernels == Kernels{"deconvolution"});
}

// oneDNN has descriptors of some of them without code for it: what compiles is to run.
TEST_CASE("onednn: an int8 convolution in groups runs with any function behind it",
          "[onednn][quantized]") {
  const std::int64_t groups = GENERATE(1, 2, 4, 16);
  const std::int64_t channels = GENERATE(4, 5);  // of a group
  const std::int64_t taps = GENERATE(1, 3);
  const std::string function = GENERATE("", "relu", "sigmoid", "tanh", "silu", "hardswish", "gelu");
  QuantizedGraph graph;
  graph.numbers("x", {1, groups * channels, 9, 9}, kUint8Numbers);
  graph.channel_weight("w", {groups * 8, channels, taps, taps}, 0);
  const Shape shape{1, groups * 8, 9, 9};
  graph.node("y", "aten.conv2d.default", {"x", "w"}, shape,
             {{"groups", groups}, {"padding", {taps / 2, taps / 2}}});
  if (!function.empty()) graph.node("f", "aten." + function + ".default", {"y"}, shape);
  graph.quantize(function.empty() ? "y" : "f", shape, {DType::kUInt8, 0.02, 60});
  INFO(groups << " groups of " << channels << ", " << taps << " taps, " << function);
  check_numbers(graph, 0.01);
}

TEST_CASE("onednn: products of two activations of any sign are int8", "[onednn][quantized]") {
  const Numbers left = GENERATE(kUint8Numbers, kInt8Numbers);
  const Numbers right = GENERATE(kUint8Numbers, kInt8Numbers);
  const bool is_flat = GENERATE(false, true);
  QuantizedGraph graph;
  const Shape batch = is_flat ? Shape{} : Shape{2, 3};
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    Shape result = batch;
    result.insert(result.end(), {rows, columns});
    return result;
  };
  graph.numbers("a", shape(9, 40), left).numbers("b", shape(40, 21), right);
  graph.node("y", "aten.matmul.default", {"a", "b"}, shape(9, 21), Json::object());
  graph.quantize("y", shape(9, 21), {DType::kUInt8, 0.391, 128});
  const Kernels kernels = check_numbers(graph, 0.002);
  if (multiplies_int8()) CHECK(kernels == Kernels{"matmul"});
}

TEST_CASE("onednn: both products of an attention are int8", "[onednn][quantized]") {
  const AttentionCase& each = GENERATE(from_range(std::begin(kAttention), std::end(kAttention)));
  const Numbers from = GENERATE(kUint8Numbers, kInt8Numbers);
  const bool has_mask = GENERATE(false, true);
  if (has_mask && each.attrs.contains("is_causal")) return;
  QuantizedGraph graph;
  graph.numbers("a", each.query, from).numbers("b", each.key, kUint8Numbers);
  graph.numbers("c", each.value, from);
  std::vector<std::string> operands{"a", "b", "c"};
  if (has_mask) {
    Shape shape = each.key;
    shape[shape.size() - 1] = each.key[each.key.size() - 2];
    shape[shape.size() - 2] = 1;
    graph.numbers("mask", shape, {DType::kInt8, 0.25, 100});
    operands.emplace_back("mask");
  }
  Shape result = each.query;
  result.back() = each.value.back();
  graph.node("y", "aten.scaled_dot_product_attention.default", operands, result, each.attrs);
  graph.quantize("y", result, {DType::kUInt8, 0.0153, 120});
  // A mean of small differences is often close to a tie.
  const Kernels kernels = check_numbers(graph, 0.01);
  if (!multiplies_int8()) return;
  CHECK(std::count(kernels.begin(), kernels.end(), "matmul") == 2);
  CHECK(has(kernels, "split-rows"));
  CHECK(kernels.back() == "attention-sum");
}

// As models with QLinearConv and its like are imported.
TEST_CASE("onednn: ops between integers in float64 are int8 kernels", "[onednn][quantized]") {
  const Numbers& to = GENERATE_REF(kUint8Numbers, kInt8Numbers);
  QuantizedGraph graph(DType::kFloat64);
  const Shape shape{2, 16, 6, 6};
  graph.numbers("x", shape, kUint8Numbers);
  Kernels wanted;
  SECTION("a convolution with a bias") {
    graph.channel_weight("w", {24, 16, 3, 3}, 0).integer_bias("b", 24);
    graph.op("y", "aten.conv2d.default", {"x", "w", "b"}, {2, 24, 6, 6}, {{"padding", {1, 1}}});
    graph.quantize("y", {2, 24, 6, 6}, to);
    wanted = {"convolution"};
  }
  SECTION("a product of two tensors") {
    graph.numbers("r", {2, 16, 6, 8}, kInt8Numbers);
    graph.op("y", "aten.matmul.default", {"x", "r"}, {2, 16, 6, 8});
    graph.quantize("y", {2, 16, 6, 8}, to);
    wanted = {"matmul"};
  }
  SECTION("a sum") {
    graph.numbers("r", shape, kInt8Numbers);
    graph.op("y", "aten.add.Tensor", {"x", "r"}, shape);
    graph.quantize("y", shape, to);
    wanted = {"quantized-binary"};
  }
  SECTION("a function") {
    graph.op("y", "aten.sigmoid.default", {"x"}, shape);
    graph.quantize("y", shape, to);
    wanted = {"byte-table"};
  }
  SECTION("a mean of planes") {
    graph.op("y", "aten.mean.dim", {"x"}, {2, 16, 1, 1}, {{"dim", {2, 3}}, {"keepdim", true}});
    graph.quantize("y", {2, 16, 1, 1}, to);
    wanted = {"quantized-average"};
  }
  const Kernels found = check_numbers(graph, 0.02);
  const bool is_product = wanted == Kernels{"convolution"} || wanted == Kernels{"matmul"};
  if (is_product && !multiplies_int8()) return;
  CHECK(found == wanted);
}

TEST_CASE("onednn: scales that are weights are numbers", "[onednn][quantized]") {
  const bool are_all = GENERATE(false, true);
  const std::string overload = are_all ? ".tensor2" : ".tensor";
  // Weights are small floats, and zero points of 0; bounds that are tensors are int8 numbers.
  QuantizedGraph graph;
  graph.input("q_x", {2, 16, 5, 5}, "uint8").weight("s", {1}).weight("z", {1}, "int64");
  std::vector<std::string> arguments{"p_s", "p_z"};
  Json attrs{{"dtype", "torch.uint8"}};
  if (are_all) {
    graph.weight("least", {1}, "int64").weight("most", {1}, "uint8");
    arguments.insert(arguments.end(), {"p_least", "p_most"});
  } else {
    attrs["quant_min"] = 0;
    attrs["quant_max"] = 255;
  }
  const auto operands = [&](const std::string& first) {
    std::vector<std::string> all{first};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  };
  graph.node("x", kQuantizedOps + "dequantize_per_tensor" + overload, operands("q_x"),
             Shape{2, 16, 5, 5}, attrs);
  graph.node("y", "aten.hardswish.default", {"x"}, Shape{2, 16, 5, 5}, Json::object());
  graph.node("q", kQuantizedOps + "quantize_per_tensor" + overload, operands("y"),
             Shape{2, 16, 5, 5}, attrs, "uint8");
  graph.output("q");
  CHECK(check_numbers(graph, 0.02) == Kernels{"byte-table"});
}

TEST_CASE("onednn: ops that move int8 numbers need no floats", "[onednn][quantized]") {
  const Moved& each = GENERATE(from_range(std::begin(kMoved), std::end(kMoved)));
  INFO(each.op);
  for (const Numbers& to : {kUint8Numbers, kInt8Numbers}) {
    const Kernels kernels = check_numbers(moved_graph(each, kUint8Numbers, to), 0.01);
    CHECK_FALSE(has(kernels, "dequantize"));
    CHECK_FALSE(has(kernels, "quantize"));
  }
}

}  // namespace npu

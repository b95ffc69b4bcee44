// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cost/node_table.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "passes/quantize/precision_problem.hpp"
#include "passes/quantize/precision_solve.hpp"
#include "passes/quantize/quantize.hpp"
#include "quant/weight_operand.hpp"
#include "set_variable.hpp"

namespace npu::test {
namespace {

/// Ranges as if every tensor had held -1 and 1.55, and weights from -1.27 to 1.27.
TensorRanges ranges_of(const Graph& graph) {
  TensorRanges ranges;
  ranges.file = "ranges.json";
  ranges.model_digest = model_digest(graph);
  ranges.samples = 1;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kWeight) continue;
    TensorRange range;
    range.name = tensor.name;
    range.shape = tensor.shape;
    range.histogram.add(std::vector<float>{-1.0F, 1.55F});
    ranges.tensors.push_back(range);
  }
  for (const Node& node : graph.nodes()) {
    const auto weight = weight_operand(graph, node);
    if (!weight) continue;
    const TensorInfo& tensor = graph.tensor(weight->tensor);
    const auto channels =
        static_cast<std::size_t>(tensor.shape[static_cast<std::size_t>(weight->axis)]);
    ranges.weights.push_back({tensor.name,
                              {weight->axis, std::vector<float>(channels, -1.27F),
                               std::vector<float>(channels, 1.27F)}});
  }
  ranges.index();
  return ranges;
}

QuantizeResult quantize(Graph& graph, const QuantizeOptions& options = {}) {
  Diagnostics diagnostics;
  const TensorRanges ranges = ranges_of(graph);
  QuantizeResult result = quantize_model(graph, ranges, options, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  return result;
}

/// "name = op(operands)" of every node, without libraries.
std::vector<std::string> lines_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    std::string op = node.op_type.substr(node.op_type.find('.') + 1);
    std::string line = node.name + " = " + op.substr(0, op.find('.')) + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      line += (i > 0 ? ", " : "") + graph.tensor(node.inputs[i]).name;
    }
    lines.push_back(line + ")");
  }
  return lines;
}

Graph residual() {
  return graph_of(R"(
    input x [1,2,4,4]; weight w, v [2,2,1,1]; weight g [2]
    conv = conv2d(x, p_w)
    norm = batch_norm(conv, p_g, p_g, p_g, p_g) {"training": false, "momentum": 0.1, "eps": 1e-05,
        "cudnn_enabled": false}
    relu = relu(norm)
    conv1 = conv2d(relu, p_v)
    sum = aten.add.Tensor(conv1, relu)
    soft = aten.softmax.int(sum) {"dim": 1}; output soft)");
}

std::string refusal(Graph& graph, const TensorRanges& ranges, const QuantizeOptions& options = {}) {
  Diagnostics diagnostics;
  try {
    quantize_model(graph, ranges, options, diagnostics);
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

}  // namespace

TEST_CASE("quantize: pairs where int8 ops read", "[quantize]") {
  Graph graph = residual();
  const QuantizeResult result = quantize(graph);
  CHECK(lines_of(graph) ==
        std::vector<std::string>{
            "x_q = quantize_per_tensor(x)", "x_dq = dequantize_per_tensor(x_q)",
            "p_w_q = quantize_per_channel(p_w, p_w_scales, p_w_zero_points)",
            "p_w_dq = dequantize_per_channel(p_w_q, p_w_scales, p_w_zero_points)",
            "conv = conv2d(x_dq, p_w_dq)", "norm = batch_norm(conv, p_g, p_g, p_g, p_g)",
            "relu = relu(norm)", "relu_q = quantize_per_tensor(relu)",
            "relu_dq = dequantize_per_tensor(relu_q)",
            "p_v_q = quantize_per_channel(p_v, p_v_scales, p_v_zero_points)",
            "p_v_dq = dequantize_per_channel(p_v_q, p_v_scales, p_v_zero_points)",
            "conv1 = conv2d(relu_dq, p_v_dq)", "conv1_q = quantize_per_tensor(conv1)",
            "conv1_dq = dequantize_per_tensor(conv1_q)", "sum = add(conv1_dq, relu_dq)",
            "soft = softmax(sum)"});
  // 2.55 in 255 steps of 0.01, of which 100 are below 0; weights of 1.27 in 127 steps.
  const Node& pair = graph.node(graph.find_node("x_q"));
  CHECK(pair.attrs() == Json{{"scale", double{0.01F}},
                             {"zero_point", 100},
                             {"quant_min", 0},
                             {"quant_max", 255},
                             {"dtype", "torch.uint8"}});
  CHECK(graph.node(graph.find_node("p_w_q")).attrs() ==
        Json{{"axis", 0}, {"quant_min", -127}, {"quant_max", 127}, {"dtype", "torch.int8"}});
  CHECK(graph.document()["constants"]["p_w_scales"]["data"] ==
        Json{double{1.27F / 127}, double{1.27F / 127}});
  // x to int8, and the sum to float.
  CHECK(result.conversions.size() == 2);
  CHECK(result.cut == 2);
  CHECK(result.flow == 2);
  CHECK(result.int8_ops == 5);
  CHECK(result.float_ops == 1);
  CHECK(result.int8_macs == 1);
  CHECK(graph.node(graph.find_node("sum")).json["precision"] == "int8");
  CHECK(graph.node(graph.find_node("soft")).json["precision"] == "float");
}

TEST_CASE("quantize: what moves numbers shares the scale of its operands", "[quantize]") {
  Graph graph = graph_of(R"(
    input x, y [1,2]; weight w [3,4]; weight u [2,2]
    l = linear(x, p_u)
    c = cat(l, y) [1,4] {"dim": 1, "_tensor_list_sizes": [2]}
    z = linear(c, p_w) [1,3]; output z)");
  TensorRanges ranges = ranges_of(graph);
  for (TensorRange& range : ranges.tensors) {
    if (range.name == "y") range.histogram.add(std::vector<float>{4.1F});
  }
  Diagnostics diagnostics;
  quantize_model(graph, ranges, {}, diagnostics);
  for (const char* name : {"l_q", "y_q", "c_q"}) {
    INFO(name);
    const Json& attrs = graph.node(graph.find_node(name)).attrs();
    CHECK(attrs["scale"] == double{0.02F});  // -1 to 4.1 in 255 steps
    CHECK(attrs["zero_point"] == 50);
  }
  CHECK(graph.node(graph.find_node("x_q")).attrs()["scale"] == double{0.01F});
}

TEST_CASE("quantize: a view whose readers are float leaves the integers", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [1,2]; weight u [2,2]
    l = linear(x, p_u)
    f = reshape(l) [2] {"shape": [2]}
    s = aten.softmax.int(f) {"dim": 0}; output s)");
  const QuantizeResult result = quantize(graph);
  CHECK(result.conversions.size() == 2);
  CHECK_FALSE(graph.find_tensor("l_q").valid());
  CHECK(graph.node(graph.find_node("f")).json["precision"] == "float");
}

TEST_CASE("quantize: outputs keep their names, and their floats", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [1,2]; weight u, w [2,2]
    l = linear(x, p_u)
    m = linear(l, p_w); output l, m)");
  quantize(graph);
  REQUIRE(graph.graph_outputs().size() == 2);
  CHECK(graph.tensor(graph.graph_outputs()[0]).name == "l");
  CHECK(graph.tensor(graph.graph_outputs()[0]).dtype == DType::kFloat32);
  CHECK(graph.find_tensor("l_q").valid());
}

TEST_CASE("quantize: ops that cannot be int8, and --full", "[quantize]") {
  Graph graph = residual();
  TensorRanges ranges = ranges_of(graph);
  ranges.tensors.erase(ranges.tensors.begin());  // x
  ranges.index();
  Graph copy = graph;
  QuantizeOptions full;
  full.full = true;
  Diagnostics faults;
  CHECK_THROWS_AS(quantize_model(copy, ranges, full, faults), Error);
  CHECK(errors_of(faults) ==
        std::vector<std::string>{"/nodes/0: node 'conv' cannot be int8: 'x' has no range",
                                 "/nodes/1: node 'norm' cannot be int8: 'x' has no range",
                                 "/nodes/2: node 'relu' cannot be int8: 'x' has no range",
                                 "/nodes/5: node 'soft' cannot be int8: float only: softmax.int"});
  CHECK(copy.nodes().size() == graph.nodes().size());
  Diagnostics diagnostics;
  const QuantizeResult result = quantize_model(graph, ranges, {}, diagnostics);
  CHECK(result.int8_macs == 0.5);
}

namespace {

/// Queries, keys and values by linear layers, an attention, and a linear layer of its result; the
/// mask is a weight if it is not computed.
Graph attending(const Json& attrs = Json::object(), bool has_mask = false,
                bool computes_mask = false) {
  const Shape heads{1, 2, 4, 8};
  GraphBuilder builder;
  builder.input("x", heads).input("m", {4, 4});
  for (const char* name : {"wq", "wk", "wv", "wo"}) builder.weight(name, {8, 8});
  builder.weight("mask", {4, 4});
  for (const char* name : {"q", "k", "v"}) {
    builder.node(name, "aten.linear.default", {"x", std::string("p_w") + name}, heads);
  }
  std::vector<std::string> operands{"q", "k", "v"};
  if (has_mask) operands.emplace_back(computes_mask ? "m" : "p_mask");
  builder.node("attention", "aten.scaled_dot_product_attention.default", operands, heads, attrs);
  return builder.node("out", "aten.linear.default", {"attention", "p_wo"}, heads)
      .output("out")
      .build();
}

std::string reason_of(const QuantizeResult& result, const std::string& name) {
  for (const QuantizedNode& node : result.nodes) {
    if (node.name == name) return std::string(precision_name(node.precision)) + ": " + node.reason;
  }
  return "none";
}

}  // namespace

TEST_CASE("quantize: an attention between linear layers is int8", "[quantize]") {
  for (const bool has_mask : {false, true}) {
    Graph graph = attending(Json::object(), has_mask);
    const QuantizeResult result = quantize(graph);
    CHECK(reason_of(result, "attention") == "int8: fewest conversions");
    CHECK(result.int8_macs == 1.0);
    CHECK(result.conversions.size() == 2);  // of the input and of the output
    const Node& node = graph.node(graph.find_node("attention"));
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(graph.tensor(node.inputs[i]).name == std::string(1, "qkv"[i]) + "_dq");
    }
    CHECK_FALSE(verify_precisions(graph).empty());
  }
}

TEST_CASE("quantize: an attention that the kernels do not know stays float", "[quantize]") {
  Graph computed = attending(Json::object(), true, true);
  CHECK(reason_of(quantize(computed), "attention") == "float: 'm' is no constant");
  Graph shared = attending({{"enable_gqa", true}});
  CHECK(reason_of(quantize(shared), "attention") == "float: its heads share keys");
  Graph dropping = attending({{"dropout_p", 0.5}});
  CHECK(reason_of(quantize(dropping), "attention") == "float: it has a dropout");
}

TEST_CASE("quantize: products of two activations", "[quantize]") {
  const auto product = [](const Shape& left, const Shape& right, const Shape& result) {
    const auto square = [](const Shape& shape) { return Json{shape.back(), shape.back()}.dump(); };
    return graph_of("input x " + Json(left).dump() + "; input y " + Json(right).dump() +
                    "; weight u " + square(left) + "; weight v " + square(right) + "; weight w " +
                    square(result) + R"(
      a = linear(x, p_u); b = linear(y, p_v)
      p = matmul(a, b) )" +
                    Json(result).dump() + R"(
      s = sigmoid(p); l = linear(s, p_w); output l
    )");
  };
  Graph graph = product({2, 4, 8}, {2, 8, 6}, {2, 4, 6});
  const QuantizeResult result = quantize(graph);
  CHECK(reason_of(result, "p") == "int8: fewest conversions");
  CHECK(reason_of(result, "s") == "int8: one kernel with 'p'");
  CHECK(result.conversions.size() == 3);  // of both inputs and of the output
  CHECK(result.int8_macs == 1.0);
  CHECK_FALSE(verify_precisions(graph).empty());
  Graph repeated = product({2, 4, 8}, {1, 8, 6}, {2, 4, 6});
  CHECK(reason_of(quantize(repeated), "p") == "float: its factors have other batches");
  Graph shared = product({2, 4, 8}, {8, 6}, {2, 4, 6});
  CHECK(reason_of(quantize(shared), "p") == "int8: fewest conversions");
}

TEST_CASE("quantize: an activation function by itself is a table", "[quantize]") {
  // Two read the sum, so that it takes neither.
  Graph graph = graph_of(R"(
    input x [1,2,4,4]; weight w, v [2,2,1,1]
    conv = conv2d(x, p_w)
    gate = sigmoid(conv)
    swish = aten.mul.Tensor(conv, gate)
    out = conv2d(swish, p_v); output out)");
  const QuantizeResult result = quantize(graph);
  CHECK(reason_of(result, "gate") == "int8: fewest conversions");
  CHECK(result.conversions.size() == 2);
  CHECK(graph.find_tensor("gate_q").valid());
  CHECK_FALSE(verify_precisions(graph).empty());
}

TEST_CASE("quantize: a function whose result is read in float leaves the integers", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [1,2,4,4]; weight w [2,2,1,1]
    conv = conv2d(x, p_w)
    gate = sigmoid(conv)
    soft = aten.softmax.int(gate) {"dim": 1}
    more = aten.softmax.int(conv) {"dim": 1}; output soft, more)");
  CHECK(reason_of(quantize(graph), "gate") == "float: fewest conversions");
  // Of a graph input integers may as well be made behind it.
  Graph first = graph_of(R"(
    input x [2,4]; weight w [4,4]
    gate = sigmoid(x)
    linear = linear(gate, p_w); output linear)");
  const QuantizeResult result = quantize(first);
  CHECK(reason_of(result, "gate") == "float: int8 needs no fewer conversions");
  CHECK_FALSE(verify_precisions(first).empty());
}

TEST_CASE("quantize: operands that are broadcast", "[quantize]") {
  const auto gated = [](const Shape& x, const Shape& y, const Shape& result) {
    const auto mixing = [](const Shape& shape) { return Json{shape[1], shape[1], 1, 1}.dump(); };
    return graph_of("input x " + Json(x).dump() + "; input y " + Json(y).dump() + "; weight u " +
                    mixing(x) + "; weight v " + mixing(y) + R"(; weight w [3,3,1,1]
      a = conv2d(x, p_u); b = conv2d(y, p_v)
      m = aten.mul.Tensor(a, b) )" +
                    Json(result).dump() + R"(
      c = conv2d(m, p_w); output c
    )");
  };
  Graph gates = gated({2, 3, 4, 5}, {2, 3, 1, 1}, {2, 3, 4, 5});
  CHECK(reason_of(quantize(gates), "m") == "int8: fewest conversions");
  Graph both = gated({2, 3, 1, 1}, {1, 1, 4, 5}, {2, 3, 4, 5});
  CHECK(reason_of(quantize(both), "m") == "float: both operands are broadcast");
  Graph often = gated({2, 3, 4, 5}, {2, 1, 1, 5}, {2, 3, 4, 5});
  CHECK(reason_of(quantize(often), "m") ==
        "float: an operand is broadcast along too many runs of dimensions");
}

namespace {

/// A convolution with a bias, a second one of its result, and a pool; `ends_in_float`: a softmax of
/// the first one as well.
Graph biased(bool ends_in_float) {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,2,4,4]; weight w, v [2,2,1,1]; weight c [2]
    conv = conv2d(x, p_w, p_c)
    next = conv2d(conv, p_v))");
  if (ends_in_float) {
    builder.node("soft", "aten.softmax.int", {"conv"}, {{"dim", 1}}).output("soft");
  }
  return builder.output("next").build();
}

QuantizeResult quantize_for(Graph& graph, const std::string& target) {
  QuantizeOptions options;
  options.target = target;
  return quantize(graph, options);
}

}  // namespace

TEST_CASE("quantize: biases of 32 bits, and integers alone at the border", "[quantize]") {
  Graph graph = biased(false);
  const QuantizeResult result = quantize_for(graph, "edge-tpu-like");
  CHECK(result.float_ops == 0);
  CHECK(graph.tensor(graph.graph_outputs().front()).name == "next_dq");
  const Node& conv = graph.node(graph.find_node("conv"));
  REQUIRE(conv.inputs.size() == 3);
  CHECK(graph.tensor(conv.inputs[2]).name == "p_c_dq");
  const Node& bias = graph.node(graph.find_node("p_c_q"));
  CHECK(bias.attrs().at("dtype") == "torch.int32");
  // Activations have 2.55 / 255, weights 1.27 / 127.
  const Json& scales = graph.document().at("constants").at("p_c_scales").at("data");
  CHECK(scales.size() == 2);
  CHECK(scales[0].get<double>() == double{static_cast<float>(double{0.01F} * double{0.01F})});
  CHECK_FALSE(verify_precisions(graph).empty());
  // On the device are all but the conversions of the input and of the output.
  Diagnostics diagnostics;
  tag_ops(graph, load_target("edge-tpu-like"), {}, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  std::vector<std::string> elsewhere;
  for (const Node& node : graph.nodes()) {
    if (node.device != "edge") elsewhere.push_back(node.name);
  }
  CHECK(elsewhere == std::vector<std::string>{"x_q", "next_dq"});
}

TEST_CASE("quantize: what is read in float elsewhere has a conversion of its own", "[quantize]") {
  Graph graph = biased(true);
  Diagnostics diagnostics;
  tag_ops(graph, load_target("ethos-u-like"), {}, diagnostics);
  CHECK(graph.node(graph.find_node("soft")).device == "cpu");
  quantize(graph);
  CHECK(graph.node(graph.find_node("conv_dq")).device == "ethos");
  CHECK(graph.node(graph.find_node("conv_dq_1")).device == "cpu");
  const Node& soft = graph.node(graph.find_node("soft"));
  CHECK(graph.tensor(soft.inputs.front()).name == "conv_dq_1");
  CHECK_FALSE(verify_precisions(graph).empty());
}

TEST_CASE("quantize: a device without float names what keeps it from that", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [2,4]; weight w [4,4]
    linear = linear(x, p_w)
    soft = aten.softmax.int(linear) {"dim": 1}
    best = argmax(linear) [] int64; output soft, best)");
  const TensorRanges ranges = ranges_of(graph);
  QuantizeOptions options;
  options.target = "ethos-u-like";
  Diagnostics faults;
  CHECK_THROWS_AS(quantize_model(graph, ranges, options, faults), Error);
  CHECK(
      errors_of(faults) ==
      std::vector<std::string>{"/nodes/1: node 'soft' cannot be int8: float only: softmax.int",
                               "/nodes/2: node 'best' cannot be int8: reads 'linear' in float32"});
}

TEST_CASE("quantize: without VNNI a target of this machine has weights of 7 bits", "[quantize]") {
  const IsaLimit limit("generic");
  QuantizeOptions options;
  options.target = "host";
  Graph graph = attending();
  const QuantizeResult result = quantize(graph, options);
  Graph portable = attending();
  const QuantizeResult without = quantize(portable);
  CHECK(format_quantize_report(result).find("weights have 7 bits") != std::string::npos);
  const Node& pair = graph.node(graph.find_node("p_wq_q"));
  CHECK(pair.attrs().at("quant_max") == 63);
  CHECK(reason_of(result, "attention").find("more than 7 bits") != std::string::npos);
  CHECK(format_quantize_report(without).find("7 bits") == std::string::npos);
  CHECK(portable.node(portable.find_node("p_wq_q")).attrs().at("quant_max") == 127);
}

TEST_CASE("quantize: documents that are refused", "[quantize]") {
  Graph graph = residual();
  TensorRanges ranges = ranges_of(graph);
  Graph twice = graph;
  Diagnostics diagnostics;
  quantize_model(twice, ranges, {}, diagnostics);
  CHECK(refusal(twice, ranges).find("quantized already") != std::string::npos);
  Graph fused = graph;
  tag_ops(fused, load_target("host"), {}, diagnostics);
  fuse_ops(fused, {}, diagnostics);
  CHECK(refusal(fused, ranges).find("before npu-fuse and npu-partition") != std::string::npos);
  ranges.model_digest = "0";
  CHECK(refusal(graph, ranges).find("another model") != std::string::npos);
}

TEST_CASE("quantize: a mixed choice keeps to its error and is verified", "[quantize]") {
  Graph graph = residual();
  TensorRanges ranges = ranges_of(graph);
  ranges.errors = {{"conv", 1e-3}, {"conv1", 4e-3}, {"sum", 1e-4}};
  for (const double max_error : {0.0, 2e-3, 1e-2}) {
    INFO(max_error);
    Graph copy = graph;
    QuantizeOptions options;
    options.max_error = max_error;
    Diagnostics diagnostics;
    const QuantizeResult result = quantize_model(copy, ranges, options, diagnostics);
    CHECK(result.predicted_error <= max_error);
    CHECK(result.predicted_us <= result.float_us * 1.0001);
    CHECK(result.lower_bound_us == Approx(result.predicted_us));
    CHECK_FALSE(verify_precisions(copy).empty());
    if (max_error == 0) CHECK(result.int8_ops == 0);
    // Another choice, another price.
    for (const char* key : {"cost", "bound"}) {
      Graph changed = copy;
      Json section = *changed.npu_member("precision");
      section["certificate"][key] = section["certificate"][key].get<std::int64_t>() + 1;
      changed.set_npu_member("precision", section);
      CHECK_THROWS_AS(verify_precisions(changed), Error);
    }
  }
}

TEST_CASE("quantize: the mode of a certificate says what its costs are", "[quantize]") {
  Graph graph = residual();
  TensorRanges ranges = ranges_of(graph);
  for (const Node& node : graph.nodes()) ranges.errors.push_back({node.name, 0});
  QuantizeOptions options;
  options.max_error = 1;  // so large that the choice is a minimum cut, too
  Diagnostics diagnostics;
  quantize_model(graph, ranges, options, diagnostics);
  CHECK_FALSE(verify_precisions(graph).empty());
  for (const char* mode : {"int8", "int4"}) {
    Json section = *graph.npu_member("precision");
    section["mode"] = mode;
    graph.set_npu_member("precision", section);
    CHECK_THROWS_AS(verify_precisions(graph), Error);
  }
}

namespace {

/// A table of a model whose nodes take 100 in float and `int8_us` in int8, on npu.
NodeTable table_of(const Graph& graph, double int8_us) {
  NodeTable table;
  table.model_digest = model_digest(graph);
  table.target = "host";
  table.devices = {{"npu", "onednn", 0}, {"cpu", "aten", 0}};
  for (const Node& node : graph.nodes()) {
    table.nodes.push_back(
        {.node = node.name, .device = "npu", .time = {100, 100, 0, 9}, .kernel = {}});
    table.int8.push_back(
        {.node = node.name, .device = "npu", .time = {int8_us, int8_us, 0, 9}, .kernel = {}});
  }
  table.conversions = {{"npu", true, 5, 0, 4}, {"npu", false, 7, 0, 4}};
  return table;
}

QuantizeResult quantize_by(const NodeTable& table, Graph& graph) {
  TensorRanges ranges = ranges_of(graph);
  for (const Node& node : graph.nodes()) ranges.errors.push_back({node.name, 1e-4});
  QuantizeOptions options;
  options.max_error = 1;
  options.profile = table;
  Diagnostics diagnostics;
  return quantize_model(graph, ranges, options, diagnostics);
}

}  // namespace

TEST_CASE("quantize: a mixed choice by measured times", "[quantize]") {
  Graph graph = residual();
  const double int8_us = GENERATE(10.0, 1000.0);
  const QuantizeResult result = quantize_by(table_of(graph, int8_us), graph);
  CHECK((result.int8_ops > 2) == (int8_us < 100));
  CHECK((result.int8_ops == 0) == (int8_us > 100));
  double predicted = 0;
  double most = 0;
  for (const QuantizedNode& node : result.nodes) {
    predicted += node.precision == Precision::kInt8 ? int8_us : 100;
  }
  for (const PrecisionConversion& conversion : result.conversions) {
    // A product writes floats by itself.
    (conversion.to_int8 ? predicted : most) += conversion.to_int8 ? 5 : 7;
  }
  CHECK(result.predicted_us >= Approx(predicted));
  CHECK(result.predicted_us <= Approx(predicted + most));
}

TEST_CASE("quantize: conversions that were measured where they stand", "[quantize]") {
  Graph first = residual();
  NodeTable table = table_of(first, 10);
  Graph graph = first;
  const QuantizeResult before = quantize_by(table, first);
  REQUIRE_FALSE(before.conversions.empty());
  for (const PrecisionConversion& each : before.conversions) {
    table.tensor_conversions.push_back({each.tensor, "npu", each.to_int8, 25});
  }
  Graph again = graph;
  const QuantizeResult after = quantize_by(table, again);
  double predicted = 25.0 * static_cast<double>(after.conversions.size());
  for (const QuantizedNode& node : after.nodes) {
    predicted += node.precision == Precision::kInt8 ? 10 : 100;
  }
  CHECK(after.conversions.size() == before.conversions.size());
  CHECK(after.predicted_us == Approx(predicted).epsilon(1e-3));
  // One that takes five times as long as by itself, between the same ops: the others do, too.
  std::vector<TensorConversion>& measured = table.tensor_conversions;
  std::erase_if(measured, [](const TensorConversion& each) { return !each.to_int8; });
  REQUIRE(measured.size() >= 1);
  measured.resize(1);
  Graph scaled = graph;
  const QuantizeResult guessed = quantize_by(table, scaled);
  double floats = 0;
  for (const PrecisionConversion& each : guessed.conversions) floats += each.to_int8 ? 25 : 0;
  for (const QuantizedNode& node : guessed.nodes) {
    floats += node.precision == Precision::kInt8 ? 10 : 100;
  }
  CHECK(guessed.predicted_us >= Approx(floats).epsilon(1e-3));
  CHECK(guessed.predicted_us <=
        Approx(floats + 7.0 * static_cast<double>(guessed.conversions.size())).epsilon(1e-3));
}

TEST_CASE("quantize: a transposed convolution and an interpolation are int8", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [1,2,4,4]; weight w [2,3,2,2]
    up = aten.conv_transpose2d.input(x, p_w) [1,3,8,8] {"stride": [2, 2]}
    grown = aten.upsample_bilinear2d.vec(up) [1,3,16,16] {"output_size": [16, 16],
        "align_corners": false, "scale_factors": null}
    weight v [2,3,1,1]
    conv = conv2d(grown, p_v) [1,2,16,16]; output conv)");
  const QuantizeResult result = quantize(graph);
  CHECK(result.int8_ops == 3);
  CHECK(verify_precisions(graph) == "conversions: 2, the fewest\n");
  const Node& weight = graph.node(graph.find_node("p_w_dq"));
  CHECK(weight.op_type == "quantized_decomposed.dequantize_per_channel.default");
  CHECK(*find_member(weight.attrs(), "axis") == 1);
  CHECK(graph.tensor(weight.inputs[1]).shape == Shape{3});
}

TEST_CASE("quantize: the certificate of the fewest conversions", "[quantize]") {
  Graph graph = residual();
  CHECK_THROWS_AS(verify_precisions(graph), Error);
  quantize(graph);
  CHECK(verify_precisions(graph) == "conversions: 2, the fewest\n");
  const auto fault_with = [&](const char* pointer, const Json& value) {
    Graph changed = graph;
    Json section = *changed.npu_member("precision");
    section[Json::json_pointer(pointer)] = value;
    changed.set_npu_member("precision", section);
    try {
      verify_precisions(changed);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(fault_with("/certificate/cost", 3) == "the precisions cost 2, not 3");
  CHECK(fault_with("/certificate/units/0/nodes/0", "x") ==
        "expected names of nodes of the document");
  CHECK(fault_with("/certificate/units/0/allowed", "float") ==
        "the op is not what it is allowed to be");
  CHECK(fault_with("/certificate/units/0/int8", INT64_MAX).find("in 0..") != std::string::npos);
  CHECK(fault_with("/certificate/values/0/readers", {0, 9}) ==
        "expected numbers of units in ascending order");
  CHECK(fault_with("/certificate/values/0/readers", Json::array()) ==
        "other ops read 'x' than the certificate says");
  CHECK(fault_with("/certificate/values/1/tensor", "x") ==
        "expected a tensor of the document that is listed once");
}

namespace {

/// A random model of ops of every kind that int8 has or has not, on tensors of [1, 4, 4, 4].
Graph random_model(std::mt19937& random, int ops) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const Shape shape{1, 4, 4, 4};
  GraphBuilder builder;
  builder.input("x0", shape).input("x1", shape);
  std::vector<std::string> names{"x0", "x1"};
  std::vector<std::string> gates;
  for (int i = 0; i < ops; ++i) {
    const std::string name = "n" + std::to_string(i);
    const std::string a = names[below(names.size())];
    const std::string b = names[below(names.size())];
    switch (below(10)) {
      case 0:
      case 1:
        builder.weight("w" + name, {4, 4, 1, 1});
        builder.node(name, "aten.conv2d.default", {a, "p_w" + name}, shape);
        break;
      case 2:
        builder.node(name, "aten.relu.default", {a});
        break;
      case 3:
        builder.node(name, "aten.sigmoid.default", {a});
        break;
      case 4:
        builder.node(name, "aten.add.Tensor", {a, b});
        break;
      case 5:
        builder.node(name, "aten.matmul.default", {a, b}, shape);
        break;
      case 6:
        builder.node(name, "aten.max_pool2d.default", {a},
                     {{"kernel_size", {3, 3}}, {"stride", {1, 1}}, {"padding", {1, 1}}});
        break;
      case 7:
        builder.node(name, "aten.softmax.int", {a}, {{"dim", 1}});
        break;
      case 8:
        builder.node("g" + name, "aten.mean.dim", {a}, Shape{1, 4, 1, 1},
                     {{"dim", {2, 3}}, {"keepdim", true}});
        builder.node(name, "aten.mul.Tensor", {b, "g" + name}, shape);
        break;
      default:
        builder.node("c" + name, "aten.cat.default", {a, b}, Shape{1, 8, 4, 4}, {{"dim", 1}});
        builder.node(name, "aten.slice.Tensor", {"c" + name}, shape,
                     {{"dim", 1}, {"start", 2}, {"end", 6}, {"step", 1}});
    }
    names.push_back(name);
    if (i + 1 < ops && below(5) == 0) builder.output(name);
  }
  return builder.output(names.back()).build();
}

std::int64_t fewest_conversions(const quantize::PrecisionProblem& problem) {
  const quantize::PrecisionCosts costs = conversion_counts(problem);
  std::vector<std::size_t> free;
  std::vector<char> int8(problem.units.size());
  for (std::size_t u = 0; u < int8.size(); ++u) {
    int8[u] = problem.units[u].allowed == quantize::Allowed::kInt8 ? 1 : 0;
    if (problem.units[u].allowed == quantize::Allowed::kBoth) free.push_back(u);
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (unsigned mask = 0; mask < 1U << free.size(); ++mask) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      int8[free[i]] = static_cast<char>(mask >> i & 1U);
    }
    least = std::min(least, cost_of(problem, costs, int8));
  }
  return least;
}

}  // namespace

TEST_CASE("quantize: the fewest conversions of random models", "[quantize]") {
  std::mt19937 random(71);
  std::map<std::string, int> int8;
  for (int round = 0; round < 300; ++round) {
    Graph graph = random_model(random, 1 + round % 7);
    INFO("round " << round);
    const TensorRanges ranges = ranges_of(graph);
    const std::int64_t least = fewest_conversions(quantize::build_precision_problem(graph, ranges));
    const QuantizeResult result = quantize(graph);
    REQUIRE(result.cut == least);
    REQUIRE(result.conversions.size() == static_cast<std::size_t>(least));
    REQUIRE_FALSE(verify_precisions(graph).empty());
    for (const QuantizedNode& node : result.nodes) {
      int8[node.op_type] += node.precision == Precision::kInt8 ? 1 : 0;
    }
  }
  for (const char* op : {"aten.conv2d.default", "aten.sigmoid.default", "aten.matmul.default",
                         "aten.mul.Tensor", "aten.cat.default", "aten.max_pool2d.default"}) {
    INFO(op);
    CHECK(int8[op] > 2);
  }
}

TEST_CASE("quantize: an error of less than a float's least step", "[quantize]") {
  Graph graph = residual();
  TensorRanges ranges = ranges_of(graph);
  const double least = std::numeric_limits<double>::denorm_min();  // in 2^20 steps: 0 each
  ranges.errors = {{"conv", least}};
  QuantizeOptions options;
  options.max_error = least;
  Diagnostics diagnostics;
  quantize_model(graph, ranges, options, diagnostics);
  const Json& certificate = (*graph.npu_member("precision"))["certificate"];
  CHECK(certificate["units"][0]["error"] == certificate["budget"]);
  CHECK_FALSE(verify_precisions(graph).empty());
}

TEST_CASE("quantize: certificates that leave something out", "[quantize]") {
  Graph graph = residual();
  quantize(graph);
  const auto fault_of = [&](const std::function<void(Graph&, Json&)>& tamper) {
    Graph changed = graph;
    Json section = *changed.npu_member("precision");
    tamper(changed, section["certificate"]);
    changed.set_npu_member("precision", section);
    try {
      return verify_precisions(changed);
    } catch (const Error& error) {
      return error.message();
    }
  };
  CHECK(fault_of([](Graph&, Json&) {}) == "conversions: 2, the fewest\n");
  // Without x nothing is converted to int8: one conversion, and the fewest.
  CHECK(fault_of([](Graph&, Json& certificate) {
          certificate["values"].erase(0);
          certificate["cost"] = 1;
        }) == "node 'conv' reads 'x', which is not listed");
  CHECK(fault_of([](Graph&, Json& certificate) {
          certificate["units"].erase(3);
          certificate["values"].erase(4);  // soft
          certificate["values"][3]["readers"] = Json::array();
          certificate["cost"] = 1;
        }) == "node 'soft' has a precision but is in no unit");
  CHECK(fault_of([](Graph& changed, Json& certificate) {
          changed.node(changed.find_node("soft")).json.erase("precision");
          certificate["units"].erase(3);
          certificate["values"].erase(4);
          certificate["values"][3]["readers"] = Json::array();
          certificate["cost"] = 1;
        }) == "node 'soft' is in no unit");
  // An int8 op that reads floats.
  CHECK(fault_of([](Graph& changed, Json& certificate) {
          changed.node(changed.find_node("soft")).json["precision"] = "int8";
          certificate["units"][3]["allowed"] = "both";
          certificate["values"].erase(4);
          certificate["values"].erase(3);
          certificate["cost"] = 1;
        }) == "node 'soft' reads 'sum', which is not listed");
  CHECK(fault_of([](Graph& changed, Json&) {
          changed.node(changed.find_node("relu")).json["precision"] = "float";
        }) == "node 'relu' is not int8 as 'conv' is");
}

TEST_CASE("quantize: a tagged document stays tagged", "[quantize]") {
  Graph graph = residual();
  Diagnostics diagnostics;
  tag_ops(graph, load_target("host"), {}, diagnostics);
  const std::optional<std::string> device = graph.node(graph.find_node("soft")).device;
  quantize(graph);
  CHECK(graph.node(graph.find_node("soft")).device == device);
  for (const Node& node : graph.nodes()) CHECK(node.device.has_value());
  // Integers of weights follow from constants alone: the device computes them when it compiles.
  const NodeId weight = graph.find_node("p_w_q");
  REQUIRE(weight.valid());
  CHECK(graph.node(weight).device == "npu");
  CHECK(graph.folded().empty());
}

}  // namespace npu::test

// SPDX-License-Identifier: Apache-2.0
// Channels that are divided by factors, and biases that are corrected, as nodes of the document.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cost/node_table.hpp"
#include "graph_builder.hpp"
#include "npu/passes/tag.hpp"
#include "passes/quantize/quantize.hpp"
#include "quant/weight_operand.hpp"

namespace npu::test {
namespace {

const std::vector<float> kFactors{1, 4};

/// Ranges as if channel c of every tensor with two channels had held -1 to 1 times its factor, with
/// factors for `tensors`; weights hold -1.27 to 1.27 before and -2.54 to 2.54 after.
TensorRanges factored_ranges(const Graph& graph, const std::vector<std::string>& tensors,
                             double gain = 20) {
  TensorRanges ranges;
  ranges.model_digest = model_digest(graph);
  ranges.samples = 1;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kWeight) continue;
    TensorRange range;
    range.name = tensor.name;
    range.shape = tensor.shape;
    range.histogram.add(std::vector<float>{-4.0F, 4.0F});
    range.channels = {1, {-1, -4}, {1, 4}};
    if (std::find(tensors.begin(), tensors.end(), tensor.name) != tensors.end()) {
      range.factors = kFactors;
      range.gain = gain;
    }
    ranges.tensors.push_back(range);
  }
  for (const Node& node : graph.nodes()) {
    const auto weight = weight_operand(graph, node);
    if (!weight) continue;
    const TensorInfo& tensor = graph.tensor(weight->tensor);
    ranges.weights.push_back({tensor.name, {weight->axis, {-1.27F, -1.27F}, {1.27F, 1.27F}}});
    ranges.products.push_back({node.name, {0.5F, 1}, {0.25F, 2}, {-2.54F, -2.54F}, {2.54F, 2.54F}});
  }
  ranges.index();
  return ranges;
}

QuantizeResult quantized_by(Graph& graph, const TensorRanges& ranges,
                            const QuantizeOptions& options = {}) {
  Diagnostics diagnostics;
  QuantizeResult result = quantize_model(graph, ranges, options, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(verify_precisions(graph).find("fewest") != std::string::npos);
  return result;
}

/// "name = op(operands)" of the nodes that multiply and add constants, and of those of the model.
std::vector<std::string> plain_lines(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    std::string op = node.op_type.substr(node.op_type.find('.') + 1);
    op = op.substr(0, op.find('.'));
    if (op.find("quantize_per") != std::string::npos) continue;
    std::string line = node.name + " = " + op + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      line += (i > 0 ? ", " : "") + graph.tensor(node.inputs[i]).name;
    }
    lines.push_back(line + ")");
  }
  return lines;
}

Json constant(const Graph& graph, const char* name) {
  return graph.document()["constants"][name]["data"];
}

/// convolution, norm, relu, depthwise convolution, convolution
GraphBuilder depthwise_stack() {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,2,4,4]; weight w [2,2,1,1]; weight d [2,1,3,3]; weight v [2,2,1,1]
    weight g, b, m, s [2]
    conv = conv2d(x, p_w)
    norm = batch_norm(conv, p_g, p_b, p_m, p_s) {"training": false, "momentum": 0.1, "eps": 1e-05,
        "cudnn_enabled": false}
    relu = relu(norm)
    deep = conv2d(relu, p_d) {"groups": 2, "padding": [1, 1]}
    last = conv2d(deep, p_v))");
  return builder;
}

}  // namespace

TEST_CASE("smoothing: a batch norm takes the division in, through a relu", "[quantize]") {
  Graph graph = depthwise_stack().output("last").build();
  const QuantizeResult result = quantized_by(graph, factored_ranges(graph, {"relu"}));
  CHECK(plain_lines(graph) ==
        std::vector<std::string>{"conv = conv2d(x_dq, p_w_dq, conv_correction)",
                                 "p_g_scaled = mul(p_g, p_g_factors)",
                                 "p_b_scaled = mul(p_b, p_b_factors)",
                                 "norm = batch_norm(conv, p_g_scaled, p_b_scaled, p_m, p_s)",
                                 "relu = relu(norm)", "p_d_scaled = mul(p_d, p_d_factors)",
                                 "deep = conv2d(relu_dq, p_d_scaled_dq, deep_correction)",
                                 "last = conv2d(deep_dq, p_v_dq, last_correction)"});
  CHECK(constant(graph, "p_g_factors") == Json{1.0, 0.25});
  CHECK(constant(graph, "p_d_factors") == Json{1.0, 4.0});
  CHECK(graph.tensor(graph.find_tensor("p_d_factors")).shape == Shape{2, 1, 1, 1});
  CHECK(constant(graph, "conv_correction") == Json{0.5, 1.0});
  CHECK(constant(graph, "deep_correction") == Json{0.25, 2.0});
  // The channels are even: -1 to 1 rather than -4 to 4.
  CHECK(graph.node(graph.find_node("relu_q")).attrs()["scale"] == double{2.0F / 255});
  CHECK(constant(graph, "p_d_scales")[0] == double{2.54F / 127});
  REQUIRE(result.smoothed.size() == 1);
  CHECK(result.smoothed[0].into == "norm");
  CHECK(result.corrected == std::vector<std::string>{"conv", "deep", "last"});
  CHECK(format_quantize_explanation(result).find("13.0 dB") != std::string::npos);
  CHECK((*graph.npu_member("precision"))["smoothed"] ==
        Json{{{"tensor", "relu"}, {"gain", 20.0}, {"into", "norm"}}});
  // On a device that takes the norm into the convolution, its constants are known in time.
  Diagnostics diagnostics;
  tag_ops(graph, load_target("host"), {}, diagnostics);
  CHECK(graph.folded().size() == 2);
}

TEST_CASE("smoothing: a product takes it in, in weight and bias", "[quantize]") {
  Graph graph = depthwise_stack().output("last").build();
  quantized_by(graph, factored_ranges(graph, {"deep"}));
  const std::vector<std::string> lines = plain_lines(graph);
  REQUIRE(lines.size() == 7);
  CHECK(lines[3] == "p_d_scaled = mul(p_d, p_d_factors)");
  CHECK(lines[4] == "deep = conv2d(relu_dq, p_d_scaled_dq, deep_correction)");
  CHECK(lines[5] == "p_v_scaled = mul(p_v, p_v_factors)");
  CHECK(constant(graph, "p_d_factors") == Json{1.0, 0.25});
  CHECK(constant(graph, "deep_correction") == Json{0.5, 0.25});
  CHECK(constant(graph, "p_d_scales") == Json{double{1.27F / 127}, double{1.27F / 4 / 127}});
  CHECK(graph.tensor(graph.find_tensor("p_v_factors")).shape == Shape{2, 1, 1});
  CHECK(constant(graph, "p_v_factors") == Json{1.0, 4.0});
}

TEST_CASE("smoothing: a layer norm in front of a linear layer with a bias", "[quantize]") {
  Graph graph = graph_of(R"(
    input x [3,2]; weight g, b [2]; weight w [2,2]; weight c [2]
    norm = layer_norm(x, p_g, p_b) {"normalized_shape": [2]}
    l = linear(norm, p_w, p_c); output l)");
  quantized_by(graph, factored_ranges(graph, {"norm"}, 2));
  CHECK(plain_lines(graph) ==
        std::vector<std::string>{
            "p_g_scaled = mul(p_g, p_g_factors)", "p_b_scaled = mul(p_b, p_b_factors)",
            "norm = layer_norm(x, p_g_scaled, p_b_scaled)", "p_w_scaled = mul(p_w, p_w_factors)",
            "p_c_corrected = add(p_c, l_correction)",
            "l = linear(norm_dq, p_w_scaled_dq, p_c_corrected)"});
  CHECK(constant(graph, "p_w_factors") == Json{1.0, 4.0});
}

TEST_CASE("smoothing: a multiplication of its own, if it gains enough", "[quantize]") {
  const auto build = [] {
    return graph_of(R"(
      input x [3,2]; weight w [2,2]
      g = gelu(x)
      l = linear(g, p_w)
      s = aten.add.Tensor(g, l); output s)");
  };
  Graph graph = build();
  const QuantizeResult result = quantized_by(graph, factored_ranges(graph, {"g"}));
  CHECK(plain_lines(graph) ==
        std::vector<std::string>{
            "g = gelu(x)", "g_scaled = mul(g, g_factors)", "p_w_scaled = mul(p_w, p_w_factors)",
            "l = linear(g_scaled_dq, p_w_scaled_dq, l_correction)", "s = add(g_dq, l_dq)"});
  CHECK(constant(graph, "g_factors") == Json{1.0, 0.25});
  CHECK(graph.node(graph.find_node("g_scaled_q")).attrs()["scale"] == double{2.0F / 255});
  REQUIRE(result.smoothed.size() == 1);
  CHECK(result.smoothed[0].into.empty());
  Graph little = build();
  CHECK(quantized_by(little, factored_ranges(little, {"g"}, 9)).smoothed.empty());
  CHECK_FALSE(little.find_node("g_scaled").valid());
}

TEST_CASE("smoothing: what an op in front cannot divide is multiplied", "[quantize]") {
  // Nobody else reads the GELU's result, but a factor does not pass through it.
  Graph graph = graph_of(R"(
    input x [3,2]; weight w [2,2]
    g = gelu(x)
    l = linear(g, p_w); output l)");
  const TensorRanges ranges = factored_ranges(graph, {"g"});
  Graph divided = graph;
  const QuantizeResult result = quantized_by(divided, ranges);
  REQUIRE(result.smoothed.size() == 1);
  CHECK(result.smoothed[0].into.empty());
  CHECK(plain_lines(divided) ==
        std::vector<std::string>{"g = gelu(x)", "g_scaled = mul(g, g_factors)",
                                 "p_w_scaled = mul(p_w, p_w_factors)",
                                 "l = linear(g_scaled_dq, p_w_scaled_dq, l_correction)"});
  // Factors along another axis than the one that the product adds up.
  TensorRanges turned = ranges;
  for (TensorRange& range : turned.tensors) {
    if (range.name != "g") continue;
    range.channels = {0, {-1, -1, -1}, {1, 1, 1}};
    range.factors = {1, 2, 4};
  }
  turned.index();
  CHECK(quantized_by(graph, turned).smoothed.empty());
}

TEST_CASE("smoothing: what others read, or outputs, are not divided", "[quantize]") {
  Graph read = depthwise_stack()
                   .node("soft", "aten.softmax.int", {"relu"}, {{"dim", 1}})
                   .output("last")
                   .output("soft")
                   .build();
  CHECK(quantized_by(read, factored_ranges(read, {"relu"}, 9)).smoothed.empty());
  Graph output = depthwise_stack().output("last").output("deep").build();
  CHECK(quantized_by(output, factored_ranges(output, {"deep"}, 9)).smoothed.empty());
  // With more to gain, a multiplication serves the product alone.
  Graph gained = depthwise_stack().output("last").output("deep").build();
  const QuantizeResult result = quantized_by(gained, factored_ranges(gained, {"deep"}, 11));
  REQUIRE(result.smoothed.size() == 1);
  CHECK(result.smoothed[0].into.empty());
  CHECK(gained.tensor(gained.graph_outputs()[1]).name == "deep");
}

TEST_CASE("smoothing and bias correction are left out if asked, and without what they need",
          "[quantize]") {
  Graph graph = depthwise_stack().output("last").build();
  const TensorRanges ranges = factored_ranges(graph, {"relu", "deep"});
  QuantizeOptions options;
  options.smooth = false;
  options.correct_biases = false;
  Graph plain = graph;
  const QuantizeResult result = quantized_by(plain, ranges, options);
  CHECK(result.smoothed.empty());
  CHECK(result.corrected.empty());
  CHECK(plain_lines(plain).size() == 5);
  // Ranges of earlier versions have no products.
  TensorRanges old = ranges;
  old.products.clear();
  old.index();
  Graph same = graph;
  quantized_by(same, old);
  CHECK(plain_lines(same) == plain_lines(plain));
}

}  // namespace npu::test

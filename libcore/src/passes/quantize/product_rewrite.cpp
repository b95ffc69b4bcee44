// SPDX-License-Identifier: Apache-2.0
// Writes what int8 and smoothing do to the constants of products and norms, as nodes on constants,
// which are computed once, when the document is compiled: the weights themselves stay as they are
// in their file. O(channels) a product; with groups, O(channels of a group) for each output.
#include "passes/quantize/product_rewrite.hpp"

#include <utility>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "quant/product_errors.hpp"
#include "quant/weight_operand.hpp"

namespace npu::quantize {
namespace {

constexpr std::string_view kLibrary = "quantized_decomposed.";

// The ends are the largest integers of 32 bits that float32 has, too, so that none is rounded up.
constexpr QuantForm kIntegerBias{DType::kInt32, -2147483520, 2147483520, true};

double number_or(const Node& node, const char* key, double absent) {
  const Json* value = find_member(node.attrs(), key);
  return value == nullptr ? absent : json_number(*value).value_or(0);
}

/// Whether a bias of the product is added to its result as it is.
bool adds_bias(const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  if (name == "addmm") return number_or(node, "alpha", 1) == 1 && number_or(node, "beta", 1) == 1;
  return name != "mm" && name != "matmul";
}

}  // namespace

std::vector<float> inverse_of(const std::vector<float>& factors) {
  std::vector<float> inverse;
  for (const float factor : factors) inverse.push_back(1.0F / factor);
  return inverse;
}

namespace {

Json attrs_of(Json attrs, const QuantForm& integers) {
  attrs["quant_min"] = integers.low;
  attrs["quant_max"] = integers.high;
  attrs["dtype"] = "torch." + std::string(dtype_name(integers.dtype));
  return attrs;
}

std::string node_type(const std::string& name, const std::string& form) {
  return std::string(kLibrary) + name + "_" + form + ".default";
}

}  // namespace

IntegerPair add_integer_pair(ConstantWriter& writer, NodeId place, const Mention& tensor,
                             const std::vector<Mention>& more, const std::string& form,
                             const Json& attrs, const QuantForm& integers) {
  std::vector<Mention> operands{tensor};
  operands.insert(operands.end(), more.begin(), more.end());
  Mention like = tensor;
  like.dtype = integers.dtype;
  operands.front() = writer.add_node(place, tensor.name + "_q", node_type("quantize", form),
                                     operands, like, attrs_of(attrs, integers));
  return {operands.front(), add_floats(writer, place, tensor, operands, form, attrs, integers)};
}

Mention add_floats(ConstantWriter& writer, NodeId place, const Mention& tensor,
                   const std::vector<Mention>& operands, const std::string& form, Json attrs,
                   const QuantForm& integers) {
  return writer.add_node(place, tensor.name + "_dq", node_type("dequantize", form), operands,
                         tensor, attrs_of(std::move(attrs), integers));
}

ProductRewriter::Factors ProductRewriter::factors_of(NodeId node) const {
  const Smoothing& smoothing = choice_.smoothing;
  Factors factors;
  const auto in = smoothing.of_product.find(node);
  if (in != smoothing.of_product.end()) factors.in = &smoothing.values[in->second];
  const auto out = smoothing.of_source.find(node);
  if (out != smoothing.of_source.end()) factors.out = &smoothing.values[out->second];
  return factors;
}

void ProductRewriter::add(const Unit& unit, bool is_int8, double operand_scale) {
  const NodeId node = unit.members.front();
  const Factors factors = factors_of(node);
  std::vector<double> sum_scales;
  if (is_int8 || factors.in != nullptr || factors.out != nullptr) {
    const WeightPair* pair = is_int8 ? &weight_pair(node, factors) : nullptr;
    const Mention weight = pair != nullptr ? pair->mention : scaled_weight(node, factors);
    editor_.set_operand(node, weight_operand(graph_, graph_.node(node))->operand, weight.name,
                        weight.source);
    if (pair != nullptr && rules_.integer_biases) {
      for (const double scale : pair->scales) {
        sum_scales.push_back(double{static_cast<float>(operand_scale * scale)});
      }
    }
  }
  rewrite_bias(unit, is_int8, factors, sum_scales);
}

Mention ProductRewriter::scaled_weight(NodeId node, const Factors& factors) {
  const WeightOperand weight = *weight_operand(graph_, graph_.node(node));
  Mention result = writer_.mention(weight.tensor);
  if (factors.in == nullptr && factors.out == nullptr) return result;
  const auto [known, is_new] =
      scaled_.try_emplace({weight.tensor, weight.axis, factors.in, factors.out});
  if (!is_new) return known->second;
  if (factors.in != nullptr) {
    const std::vector<float>& by = factors.in->range->factors;
    const bool is_convolution = fusion_role(graph_.node(node).op_type) == FusionRole::kConv;
    const std::int32_t axis = is_convolution ? 1 : 1 - weight.axis;
    if (result.shape[index_of(axis)] == static_cast<std::int64_t>(by.size())) {
      result = writer_.multiplied(node, result, by, axis);
    } else {
      result = writer_.multiplied_in_groups(node, result, by);
    }
  }
  if (factors.out != nullptr) {
    result = writer_.multiplied(node, result, inverse_of(factors.out->range->factors), weight.axis);
  }
  return known->second = result;
}

const ProductRewriter::WeightPair& ProductRewriter::weight_pair(NodeId node,
                                                                const Factors& factors) {
  const Node& product = graph_.node(node);
  const WeightOperand weight = *weight_operand(graph_, product);
  const auto [known, is_new] =
      pairs_.try_emplace({weight.tensor, weight.axis, factors.in, factors.out});
  if (!is_new) return known->second;
  const std::string& name = graph_.tensor(weight.tensor).name;
  const ChannelExtremes& plain = ranges_.find_weight(name, weight.axis)->channels;
  const bool is_factored = factors.in != nullptr;
  const ProductRange* factored = is_factored ? ranges_.find_product(product.name) : nullptr;
  const std::vector<float>& low = is_factored ? factored->factored_low : plain.low;
  const std::vector<float>& high = is_factored ? factored->factored_high : plain.high;
  std::vector<double>& scales = known->second.scales;
  for (std::size_t c = 0; c < low.size(); ++c) {
    const double by = factors.out == nullptr ? 1.0 : double{factors.out->range->factors[c]};
    const NumberRange range{double{low[c]} / by, double{high[c]} / by};
    scales.push_back(quant_params(range, rules_.weights).scale);
  }
  const Json zeros(std::vector<std::int64_t>(scales.size(), 0));
  const Shape shape{static_cast<std::int64_t>(scales.size())};
  const Mention tensor = scaled_weight(node, factors);
  const std::vector<Mention> more{
      writer_.add_constant(name + "_scales", shape, DType::kFloat32, scales),
      writer_.add_constant(name + "_zero_points", shape, DType::kInt64, zeros)};
  known->second.mention = add_integer_pair(writer_, node, tensor, more, "per_channel",
                                           {{"axis", weight.axis}}, rules_.weights)
                              .floats;
  return known->second;
}

Mention ProductRewriter::integer_bias(NodeId node, const Mention& bias,
                                      const std::vector<double>& sum_scales) {
  const std::vector<std::int64_t> zeros(sum_scales.size(), 0);
  const std::vector<Mention> more{
      writer_.add_constant(bias.name + "_scales", bias.shape, DType::kFloat32, sum_scales),
      writer_.add_constant(bias.name + "_zero_points", bias.shape, DType::kInt64, zeros)};
  return add_integer_pair(writer_, node, bias, more, "per_channel", {{"axis", 0}}, kIntegerBias)
      .floats;
}

std::vector<float> ProductRewriter::correction_of(const Unit& unit, const Factors& factors) const {
  const Node& node = graph_.node(unit.members.front());
  const ProductRange* range = ranges_.find_product(node.name);
  if (!choice_.corrects_biases || range == nullptr || !adds_bias(node) ||
      rules_.weights.high != kCorrectedWeights.high ||
      rules_.weights.low != kCorrectedWeights.low) {
    return {};
  }
  const WeightOperand weight = *weight_operand(graph_, node);
  std::vector<float> correction =
      factors.in != nullptr ? range->factored_correction : range->correction;
  const std::int64_t channels = graph_.tensor(weight.tensor).shape[index_of(weight.axis)];
  if (static_cast<std::int64_t>(correction.size()) != channels) return {};
  for (std::size_t c = 0; factors.out != nullptr && c < correction.size(); ++c) {
    correction[c] /= factors.out->range->factors[c];
  }
  return correction;
}

void ProductRewriter::rewrite_bias(const Unit& unit, bool is_int8, const Factors& factors,
                                   const std::vector<double>& sum_scales) {
  const NodeId id = unit.members.front();
  const Node& node = graph_.node(id);
  const std::vector<float> correction =
      is_int8 ? correction_of(unit, factors) : std::vector<float>{};
  const auto place = bias_operand(graph_, node);
  const auto channels = static_cast<std::int64_t>(correction.size());
  // A norm's kernel has to know the bias in front of it.
  const bool has_norm = unit.members.size() > 1 &&
                        functional_name(graph_.node(unit.members[1]).op_type) == "batch_norm";
  const auto has_sum_scale = [&](const Mention& bias) {
    return !has_norm && !sum_scales.empty() &&
           bias.shape == Shape{static_cast<std::int64_t>(sum_scales.size())};
  };
  if (!place) {
    // None may have been said in attrs, which a tensor cannot follow.
    const bool is_free = find_member(node.attrs(), "bias") == nullptr &&
                         find_member(node.attrs(), "_none_args") == nullptr;
    if (correction.empty() || !is_free) return;
    Mention bias =
        writer_.add_constant(node.name + "_correction", {channels}, DType::kFloat32, correction);
    if (has_sum_scale(bias)) bias = integer_bias(id, bias, sum_scales);
    editor_.json(id)["inputs"].push_back(bias.json());
    corrected_.push_back(node.name);
    return;
  }
  Mention bias = writer_.mention(node.inputs[*place]);
  const std::string name = bias.name;
  if (factors.out != nullptr) {
    bias = writer_.multiplied(id, bias, inverse_of(factors.out->range->factors), 0);
  }
  if (!correction.empty() && bias.shape == Shape{channels} && !has_norm) {
    const Mention by =
        writer_.add_constant(node.name + "_correction", {channels}, DType::kFloat32, correction);
    bias = writer_.add_node(id, name + "_corrected", "aten.add.Tensor", {bias, by}, bias);
    corrected_.push_back(node.name);
  }
  if (has_sum_scale(bias)) bias = integer_bias(id, bias, sum_scales);
  if (bias.name != name) editor_.set_operand(id, *place, bias.name, bias.source);
}

void ProductRewriter::divide_norms() {
  for (const SmoothedValue& smoothed : choice_.smoothing.values) {
    if (!smoothed.into.valid()) continue;
    const Node& node = graph_.node(smoothed.into);
    if (weight_operand(graph_, node)) continue;
    const std::vector<float> by = inverse_of(smoothed.range->factors);
    for (const auto& [operand, axis] :
         proportional_operands(graph_, node, static_cast<std::int64_t>(by.size()))) {
      const Mention divided =
          writer_.multiplied(smoothed.into, writer_.mention(node.inputs[operand]), by, axis);
      editor_.set_operand(smoothed.into, operand, divided.name, divided.source);
    }
  }
}

}  // namespace npu::quantize

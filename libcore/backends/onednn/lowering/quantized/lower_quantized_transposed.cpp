// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of int8 as oneDNN's deconvolution, with all that a convolution has
// (lower_quantized_product.cpp). A scale of the weights is that of a channel of the result, or of
// one within each group.
#include "lowering/convolution/convolution.hpp"
#include "lowering/quantized/quantized_product.hpp"
#include "program/implementations.hpp"

namespace npu::onednn {

namespace {

struct Deconvolution {
  TransposedCall call;
  Value source;
  Value weights;
  bool has_bias = false;
  DType type = DType::kFloat32;  ///< of the result
};

dnnl::deconvolution_forward::primitive_desc describe(Lowering& lowering, const Deconvolution& from,
                                                     bool channels_last,
                                                     const dnnl::primitive_attr& attributes) {
  using Forward = dnnl::deconvolution_forward;
  const TransposedCall& call = from.call;
  const auto layout = [&](const Shape& shape, DType of) {
    return channels_last ? channels_last_layout(shape, of) : any_layout(shape, of);
  };
  dnnl::memory::dims gaps = dims(call.dilation);
  for (auto& value : gaps) value -= 1;  // oneDNN counts the gaps
  const auto describe_with = [&](const auto&... bias) {
    return Forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
                         layout(dimensions(from.source.layout), from.source.type),
                         any_layout(dimensions(from.weights.layout), DType::kInt8), bias...,
                         layout(call.output, from.type), dims(call.stride), gaps,
                         dims(call.padding), dims(call.pad_end));
  };
  if (!from.has_bias)
    return first_right(Forward::primitive_desc(describe_with(), attributes, lowering.engine()));
  return first_right(
      Forward::primitive_desc(describe_with(plain_layout({call.channels}, DType::kFloat32)),
                              attributes, lowering.engine()));
}

Lowered<dnnl::deconvolution_forward::primitive_desc> choose(
    Lowering& lowering, const Deconvolution& from, const dnnl::primitive_attr& attributes) {
  return fast_primitive(
      [&](bool channels_last) { return describe(lowering, from, channels_last, attributes); });
}

/// One scale for all, or one for each channel of the result.
Lowered<std::vector<float>> result_scales(const QuantizedWeight& weight, std::int64_t groups) {
  if (weight.zero_point != 0 || (weight.scales.size() > 1 && weight.axis != 1)) {
    return NotFused{"the weights have other scales than one a channel, or a zero point"};
  }
  if (weight.scales.size() == 1) return weight.scales;
  std::vector<float> scales;
  for (std::int64_t g = 0; g < groups; ++g) {
    scales.insert(scales.end(), weight.scales.begin(), weight.scales.end());
  }
  return scales;
}

}  // namespace

Lowered<Value> add_quantized_transposed(Lowering& lowering, const QuantizedOp& op) {
  const BoundNode node = bound(lowering.graph(), *op.node);
  Deconvolution from{read_transposed_call(lowering, node), {}, {}, false, DType::kFloat32};
  TransposedCall& call = from.call;
  const auto source = quantized_source(lowering, call.input);
  if (!source) return source.refusal();
  if (!has_exact_products(lowering, source->value.type, call.weight)) return kNoExactInt8;
  const auto weight = quantized_weight(lowering, call.weight);
  if (!weight) return weight.refusal();
  const auto scales = result_scales(*weight, call.groups);
  if (!scales) return scales.refusal();
  const auto terms = channel_terms(lowering, op, *scales, call.channels);
  if (!terms) return terms.refusal();
  const auto finish = finish_of(lowering, op, source->scale, terms->scales);
  if (!finish) return finish.refusal();
  const auto bias = channel_bias(lowering, call.bias, *terms, *finish, call.channels);
  if (!bias) return bias.refusal();
  from.source = source->value;
  from.weights = turned_weight(lowering, with_room(lowering, call, weight->value), call.groups);
  from.has_bias = bias->has_value();
  if (op.target) from.type = op.target->type;
  const auto primitive = choose(lowering, from, attributes_of(*finish, 1 << 1, *source, op));
  if (!primitive) return primitive.refusal();
  const Value input = lowering.in_layout(from.source, primitive->src_desc());
  std::vector<PrimitiveOperand> reads{
      {DNNL_ARG_SRC, input},
      {DNNL_ARG_WEIGHTS, lowering.in_layout(from.weights, primitive->weights_desc())}};
  if (*bias) reads.push_back({DNNL_ARG_BIAS, **bias});
  const Value target = quantized_result(lowering, op, *finish, primitive->dst_desc(), input);
  lowering.add_primitive(*primitive, reads, target);
  return target;
}

}  // namespace npu::onednn

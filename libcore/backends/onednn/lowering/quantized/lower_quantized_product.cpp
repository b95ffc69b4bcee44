// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of int8 as one primitive of oneDNN: zero points are the
// primitive's own, the scale of source and weights is an output scale for each channel, the bias is
// divided by it, and what stands behind the op becomes post-ops in front of the target's zero
// point. Where these are ReLUs, bounds, linear functions and sums, the division by the target's
// scale is a part of the output scale; else it is the last post-op. A ReLU whose zero is the least
// number of the target is no work at all. A batch norm behind a convolution is a factor of the
// output scale and a part of the bias.
//
// Activations have channels last, which oneDNN's int8 kernels want. Weights are packed when they
// are compiled, with the sums that make up for the source's sign and zero point behind them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lowering/convolution/convolution.hpp"
#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/promotion.hpp"
#include "lowering/quantized/quantized_product.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "program/implementations.hpp"

namespace npu::onednn {

namespace {

const NotFused kUnusualNumbers{"the scale or the zero point of an operand is unusual"};

/// A scale above 0 that float32 holds, and a zero point of the type's numbers.
bool has_usual_numbers(const Dequantization& from) {
  const auto scale = static_cast<float>(from.scale);
  const auto [least, most] = range_of(from.type);
  return std::isnormal(scale) && scale > 0.0F && from.zero_point >= least &&
         from.zero_point <= most;
}

}  // namespace

Lowered<QuantizedWeight> quantized_weight(Lowering& lowering, TensorId tensor) {
  const Dequantization* from = lowering.dequantization(tensor);
  if (from == nullptr) return NotFused{"the weights are not dequantized"};
  if (from->type != DType::kInt8) return NotFused{"the weights are not int8"};
  QuantizedWeight weight;
  weight.axis = from->axis;
  if (!from->scales) {
    if (!has_usual_numbers(*from)) return kUnusualNumbers;
    weight.scales = {static_cast<float>(from->scale)};
    weight.zero_point = from->zero_point;
  } else {
    const auto scales = lowering.known_numbers(*from->scales);
    if (!scales) return NotFused{"the scales of the weights are computed"};
    weight.scales.assign(scales->begin(), scales->end());
    const auto zeros =
        from->zero_points ? lowering.known_numbers(*from->zero_points) : std::vector<double>{};
    if (!zeros || std::any_of(zeros->begin(), zeros->end(), [](double z) { return z != 0.0; })) {
      return NotFused{"the weights have zero points of their own"};
    }
  }
  weight.value = lowering.plain(lowering.stored(from->source));
  return weight;
}

namespace {

constexpr double kLeastFactor = 1e-20;

Lowered<NormTerms> norm_terms(const Lowering& lowering, const Node& norm, std::int64_t channels) {
  const BoundNode arguments = bound(lowering.graph(), norm);
  const auto count = static_cast<std::size_t>(channels);
  const auto numbers = [&](std::string_view name, double absent) -> std::vector<double> {
    const auto tensor = arguments.tensor(name);
    if (!tensor) return std::vector<double>(count, absent);
    return lowering.known_numbers(*tensor).value_or(std::vector<double>{});
  };
  const std::vector<double> mean = numbers("running_mean", 0);
  const std::vector<double> variance = numbers("running_var", 1);
  const std::vector<double> scale = numbers("weight", 1);
  const std::vector<double> shift = numbers("bias", 0);
  for (const auto* each : {&mean, &variance, &scale, &shift}) {
    if (each->size() != count) return NotFused{"the batch norm is not known for each channel"};
  }
  if (!arguments.tensor("running_mean") || !arguments.tensor("running_var")) {
    return NotFused{"the batch norm has no running statistics"};
  }
  NormTerms terms;
  const double epsilon = arguments.number("eps");
  for (std::size_t c = 0; c < count; ++c) {
    double factor = scale[c] / std::sqrt(variance[c] + epsilon);
    if (!std::isfinite(factor)) return NotFused{"a factor of the batch norm is not finite"};
    // The bias is divided by it. No sum of int8 products is large enough to be seen behind this.
    if (std::abs(factor) < kLeastFactor) factor = kLeastFactor;
    terms.factors.push_back(factor);
    terms.shifts.push_back(shift[c] - mean[c] * factor);
  }
  return terms;
}

/// True for a function of which u * f(x / u) is one, too: the unit of what it reads and gives may
/// be any.
bool is_piecewise_linear(const Eltwise& function) {
  return function.function == dnnl::algorithm::eltwise_relu ||
         function.function == dnnl::algorithm::eltwise_clip ||
         function.function == dnnl::algorithm::eltwise_linear;
}

/// Such a function of numbers that are divided by `unit`; others if that is 1.
PostOpRecord post_op_in(const Eltwise& function, float unit) {
  PostOpRecord record = post_op_of(function);
  if (function.function == dnnl::algorithm::eltwise_clip) record.alpha /= unit;
  if (function.function != dnnl::algorithm::eltwise_relu) record.beta /= unit;
  return record;
}

/// True for bounds that the target's range has anyway.
bool is_in_range(const Eltwise& function, const QuantizedTarget& target) {
  const auto zero = static_cast<float>(target.zero_point);
  const auto least = static_cast<float>(target.least);
  const auto most = static_cast<float>(target.most);
  if (function.function == dnnl::algorithm::eltwise_relu) {
    return function.alpha == 0.0F && zero <= least;
  }
  if (function.function != dnnl::algorithm::eltwise_clip) return false;
  return function.alpha / target.scale + zero <= least &&
         function.beta / target.scale + zero >= most;
}

/// The target's scale, unless the sums have it, and its range.
bool append_quantization(Finish& finish, const QuantizedTarget& target, bool at_once) {
  using Algorithm = dnnl::algorithm;
  const Eltwise scale{Algorithm::eltwise_linear, 1.0F / target.scale};
  if (!at_once && !append_post_op(finish.operations, post_op_of(scale))) return false;
  if (target.is_whole()) return true;
  const Eltwise range{Algorithm::eltwise_clip, static_cast<float>(target.least - target.zero_point),
                      static_cast<float>(target.most - target.zero_point)};
  return append_post_op(finish.operations, post_op_of(range));
}

}  // namespace

Lowered<Finish> finish_of(const Lowering& lowering, const QuantizedOp& op, float source_scale,
                          const std::vector<float>& weight_scales) {
  const bool at_once =
      op.target && std::all_of(op.steps.begin(), op.steps.end(), [](const auto& s) {
        return !s.function || is_piecewise_linear(*s.function);
      });
  const float unit = at_once ? op.target->scale : 1.0F;
  Finish finish;
  for (const float scale : weight_scales) {
    const float product = source_scale * scale;
    finish.scales.push_back(product / unit);
    finish.bias_factors.push_back(1.0F / product);
    if (!std::isnormal(finish.scales.back()) || !std::isfinite(finish.bias_factors.back())) {
      return NotFused{"a scale is zero, or too small or large"};
    }
  }
  for (const QuantizedStep& step : op.steps) {
    if (step.function) {
      const bool is_last = &step == &op.steps.back();
      if (at_once && is_last && is_in_range(*step.function, *op.target)) continue;
      if (step.function->function == dnnl::algorithm::undef) {
        return NotFused{
            "oneDNN has no such function as node '" + lowering.graph().node(step.node).name + "'",
            step.node};
      }
      if (!append_post_op(finish.operations, post_op_in(*step.function, unit))) {
        return second_function(lowering, step.node);
      }
      continue;
    }
    if (finish.sum || !op.target) {
      return NotFused{"a primitive adds one tensor of int8 only", step.node};
    }
    finish.sum = step.addend;
    const PostOpRecord sum{.kind = PostOpRecord::Kind::kSum,
                           .alpha = static_cast<float>(step.addend->scale) / unit,
                           .zero_point = step.addend->zero_point,
                           .type = step.addend->type};
    if (!append_post_op(finish.operations, sum)) return NotFused{};
  }
  if (op.target && !append_quantization(finish, *op.target, at_once)) {
    return second_function(lowering, op.target->id);
  }
  return finish;
}

dnnl::primitive_attr attributes_of(const Finish& finish, int channel_mask,
                                   const QuantizedSource& source, const QuantizedOp& op) {
  dnnl::primitive_attr attributes = Lowering::attributes();
  const bool is_common = finish.scales.size() == 1;
  if (!is_common || finish.scales.front() != 1.0F) {
    attributes.set_output_scales(is_common ? 0 : channel_mask, finish.scales);
  }
  const auto set_zero = [&](int argument, std::int64_t zero_point) {
    if (zero_point == 0) return;
    attributes.set_zero_points(argument, 0, {static_cast<std::int32_t>(zero_point)});
  };
  set_zero(DNNL_ARG_SRC, source.zero_point);
  if (op.target) set_zero(DNNL_ARG_DST, op.target->zero_point);
  if (!finish.operations.empty()) attributes.set_post_ops(make_post_ops(finish.operations, {}));
  return attributes;
}

namespace {

/// The bias of a convolution with a batch norm behind it, in units of the sums.
Lowered<Value> bias_with_norm(Lowering& lowering, const std::optional<TensorId>& bias,
                              const NormTerms& norm, const std::vector<float>& factors) {
  std::vector<double> own(norm.factors.size(), 0.0);
  if (bias) own = lowering.known_numbers(*bias).value_or(std::vector<double>{});
  if (own.size() != norm.factors.size()) return NotFused{"the bias is not known"};
  std::vector<float> all;
  for (std::size_t c = 0; c < own.size(); ++c) {
    const double sum = own[c] * norm.factors[c] + norm.shifts[c];
    all.push_back(static_cast<float>(sum * static_cast<double>(factors[c])));
  }
  return known_values(lowering, {static_cast<std::int64_t>(all.size())}, DType::kFloat32, all);
}

/// The bias in units of the sums.
Value scaled_bias(Lowering& lowering, TensorId bias, const std::vector<float>& factors,
                  std::int64_t channels) {
  const Value floats =
      lowering.reshaped(lowering.plain(lowering.operand(bias, DType::kFloat32)), {channels});
  std::vector<float> all = factors;
  all.resize(static_cast<std::size_t>(channels), factors.front());
  const Value vector = known_values(lowering, {channels}, DType::kFloat32, all);
  return add_binary(lowering, BinaryOp::kMultiply, floats, vector, 1.0F);
}

}  // namespace

Value quantized_result(Lowering& lowering, const QuantizedOp& op, const Finish& finish,
                       const Layout& layout, const Value& source) {
  const DType type = op.target ? op.target->type : DType::kFloat32;
  if (!finish.sum) return lowering.temporary(type, layout);
  const Layout as_added = with_type(layout, finish.sum->type);
  const Value stored = lowering.stored(finish.sum->source);
  const Value added = lowering.in_layout(stored, as_added);
  Value target = added;
  if (added.buffer != source.buffer && lowering.can_overwrite(added)) {
    lowering.note_overwritten(added);
  } else {
    target = lowering.temporary(added.type, added.layout);
    lowering.copy_into(added, target, KernelKind::kReorder);
  }
  target.type = type;
  target.layout = layout;
  return target;
}

Lowered<ChannelTerms> channel_terms(const Lowering& lowering, const QuantizedOp& op,
                                    std::vector<float> scales, std::int64_t channels) {
  ChannelTerms terms{std::move(scales), std::nullopt};
  if (op.norm == nullptr) return terms;
  auto norm = norm_terms(lowering, *op.norm, channels);
  if (!norm) return norm.refusal();
  terms.norm = *std::move(norm);
  terms.scales.resize(terms.norm->factors.size(), terms.scales.front());
  for (std::size_t c = 0; c < terms.scales.size(); ++c) {
    terms.scales[c] =
        static_cast<float>(static_cast<double>(terms.scales[c]) * terms.norm->factors[c]);
  }
  return terms;
}

Lowered<std::optional<Value>> channel_bias(Lowering& lowering, const std::optional<TensorId>& bias,
                                           const ChannelTerms& terms, const Finish& finish,
                                           std::int64_t channels) {
  if (!terms.norm) {
    if (!bias) return std::optional<Value>{};
    return std::optional{scaled_bias(lowering, *bias, finish.bias_factors, channels)};
  }
  const auto made = bias_with_norm(lowering, bias, *terms.norm, finish.bias_factors);
  if (!made) return made.refusal();
  return std::optional{*made};
}

namespace {

struct Convolution {
  ConvolutionCall call;
  QuantizedSource source;
  Shape weight;  ///< with a dimension for groups, if there are any
};

dnnl::convolution_forward::primitive_desc describe(Lowering& lowering, const Convolution& from,
                                                   DType type, bool channels_last, bool has_bias,
                                                   const dnnl::primitive_attr& attributes) {
  using Forward = dnnl::convolution_forward;
  const ConvolutionCall& call = from.call;
  const Shape input = dimensions(from.source.value.layout);
  const DType source_type = from.source.value.type;
  const auto layout = [&](const Shape& shape, DType of) {
    return channels_last ? channels_last_layout(shape, of) : any_layout(shape, of);
  };
  dnnl::memory::dims dilation = dims(call.spatial.dilation);
  for (auto& value : dilation) value -= 1;  // oneDNN counts the gaps
  const Layout weights = any_layout(from.weight, DType::kInt8);
  const auto describe_with = [&](const auto&... bias) {
    return Forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                         layout(input, source_type), weights, bias..., layout(call.output, type),
                         dims(call.spatial.stride), dilation, dims(call.spatial.pad_begin),
                         dims(call.spatial.pad_end));
  };
  if (!has_bias)
    return first_right(Forward::primitive_desc(describe_with(), attributes, lowering.engine()));
  return first_right(
      Forward::primitive_desc(describe_with(plain_layout({call.output[1]}, DType::kFloat32)),
                              attributes, lowering.engine()));
}

Lowered<dnnl::convolution_forward::primitive_desc> choose(Lowering& lowering,
                                                          const Convolution& convolution,
                                                          DType type, bool has_bias,
                                                          const dnnl::primitive_attr& attributes) {
  return fast_primitive([&](bool channels_last) {
    return describe(lowering, convolution, type, channels_last, has_bias, attributes);
  });
}

}  // namespace

Lowered<QuantizedSource> quantized_source(Lowering& lowering, TensorId tensor) {
  const Dequantization* from = lowering.dequantization(tensor);
  if (from == nullptr || !from->is_activation()) {
    return NotFused{"an operand is not dequantized from uint8 or int8 with one scale"};
  }
  if (!has_usual_numbers(*from)) return kUnusualNumbers;
  return QuantizedSource{lowering.stored(from->source), static_cast<float>(from->scale),
                         from->zero_point};
}

bool has_exact_products(const Lowering& lowering, DType source, TensorId weight) {
  if (lowering.machine().exact_int8) return true;
  constexpr std::int64_t kMost = 64;
  const Dequantization* from = lowering.dequantization(weight);
  if (from == nullptr || from->type != DType::kInt8 || source != DType::kUInt8) return false;
  const TensorInfo& integers = lowering.graph().tensor(from->source);
  if (!integers.producer.valid()) {
    const auto numbers = lowering.known_bytes(from->source);
    return numbers && std::all_of(numbers->begin(), numbers->end(), [](std::int8_t number) {
             return number >= -kMost && number <= kMost;
           });
  }
  const Node& node = lowering.graph().node(integers.producer);
  if (!is_quantization(node.op_type) || node.op_type.ends_with(".tensor2")) return false;
  const BoundNode quantize = bound(lowering.graph(), node);
  return quantize.integer("quant_min") >= -kMost && quantize.integer("quant_max") <= kMost;
}

QuantizedSource signed_source(Lowering& lowering, const QuantizedSource& source) {
  if (source.value.type == DType::kInt8) return source;
  std::vector<std::byte> numbers(256);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::byte>(i ^ 128U);
  const Value table = lowering.constant(DType::kInt8, {256}, std::move(numbers));
  const Value from = without_gaps(lowering, source.value);
  QuantizedSource result = source;
  result.value = lowering.temporary(DType::kInt8, with_type(from.layout, DType::kInt8));
  result.zero_point -= 128;
  ByteTable call;
  call.count = span_elements(from.layout);
  lowering.add_kernel({from, table}, result.value, call, KernelKind::kReorder);
  return result;
}

Lowered<Value> add_integer_product(Lowering& lowering, const QuantizedSource& left,
                                   const QuantizedSource& right, float scale) {
  Shape shape = dimensions(left.value.layout);
  shape.back() = dimensions(right.value.layout).back();
  const Layout layout = plain_layout(shape, DType::kFloat32);
  dnnl::primitive_attr attributes = Lowering::attributes();
  if (!std::isnormal(scale)) return NotFused{"a scale is zero, or too small or large"};
  if (scale != 1.0F) attributes.set_output_scales(0, {scale});
  for (const auto& [argument, source] :
       {std::pair{DNNL_ARG_SRC, &left}, std::pair{DNNL_ARG_WEIGHTS, &right}}) {
    if (source->zero_point == 0) continue;
    attributes.set_zero_points(argument, 0, {static_cast<std::int32_t>(source->zero_point)});
  }
  const dnnl::matmul::primitive_desc primitive(
      dnnl::matmul::desc(left.value.layout, right.value.layout, layout), attributes,
      lowering.engine());
  if (is_slow(primitive)) return kNoFastKernel;
  const Value target = lowering.temporary(DType::kFloat32, layout);
  lowering.add_primitive(primitive, {{DNNL_ARG_SRC, left.value}, {DNNL_ARG_WEIGHTS, right.value}},
                         target);
  return target;
}

Lowered<Value> add_quantized_convolution(Lowering& lowering, const QuantizedOp& op) {
  const BoundNode node = bound(lowering.graph(), *op.node);
  if (is_transposed_convolution(node)) return add_quantized_transposed(lowering, op);
  Convolution convolution{read_convolution_geometry(lowering, node), {}, {}};
  const auto source = quantized_source(lowering, tensor_argument(lowering, node, "input"));
  if (!source) return source.refusal();
  convolution.source = *source;
  const TensorId weight_tensor = tensor_argument(lowering, node, "weight");
  const auto weight = quantized_weight(lowering, weight_tensor);
  if (!weight) return weight.refusal();
  if (!has_exact_products(lowering, source->value.type, weight_tensor)) return kNoExactInt8;
  if (weight->axis != 0 || weight->zero_point != 0) {
    return NotFused{"the weights have other scales than one a channel, or a zero point"};
  }
  const ConvolutionCall& call = convolution.call;
  const auto terms = channel_terms(lowering, op, weight->scales, call.output[1]);
  if (!terms) return terms.refusal();
  const auto finish = finish_of(lowering, op, source->scale, terms->scales);
  if (!finish) return finish.refusal();
  convolution.weight = dimensions(weight->value.layout);
  if (call.groups > 1) {
    convolution.weight[0] /= call.groups;
    convolution.weight.insert(convolution.weight.begin(), call.groups);
  }
  const auto bias = channel_bias(lowering, node.tensor("bias"), *terms, *finish, call.output[1]);
  if (!bias) return bias.refusal();
  const DType type = op.target ? op.target->type : DType::kFloat32;
  const auto primitive = choose(lowering, convolution, type, bias->has_value(),
                                attributes_of(*finish, 1 << 1, *source, op));
  if (!primitive) return primitive.refusal();
  const Value input = lowering.in_layout(source->value, primitive->src_desc());
  const Value weights = lowering.in_layout(lowering.reshaped(weight->value, convolution.weight),
                                           primitive->weights_desc());
  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, weights}};
  if (*bias) reads.push_back({DNNL_ARG_BIAS, **bias});
  const Value target = quantized_result(lowering, op, *finish, primitive->dst_desc(), input);
  lowering.add_primitive(*primitive, reads, target);
  return target;
}

namespace {

/// The factors and the bias of linear, addmm, mm, bmm and matmul.
struct ProductFactors {
  TensorId left;
  TensorId right;
  bool right_is_turned = false;  ///< linear's weight is [columns, inner]
  std::optional<TensorId> bias;
};

Lowered<ProductFactors> factors_of(const Lowering& lowering, const BoundNode& node) {
  const std::string& op = node.node().op_type;
  ProductFactors factors;
  if (op.starts_with("aten.linear")) {
    factors = {tensor_argument(lowering, node, "input"), tensor_argument(lowering, node, "weight"),
               true, node.tensor("bias")};
  } else if (op.starts_with("aten.addmm")) {
    factors = {tensor_argument(lowering, node, "mat1"), tensor_argument(lowering, node, "mat2"),
               false, tensor_argument(lowering, node, "self")};
    if (node.number("alpha") != 1.0 || node.number("beta") != 1.0 ||
        lowering.shape(*factors.bias) != Shape{lowering.shape(factors.right).back()}) {
      return NotFused{"what is added to the product is no bias"};
    }
  } else {
    factors.left = tensor_argument(lowering, node, "self");
    factors.right =
        tensor_argument(lowering, node, op.starts_with("aten.matmul") ? "other" : "mat2");
  }
  return factors;
}

/// An activation on the right.
Lowered<QuantizedWeight> right_activation(Lowering& lowering, TensorId tensor) {
  const auto source = quantized_source(lowering, tensor);
  if (!source) return source.refusal();
  const QuantizedSource numbers = signed_source(lowering, *source);
  return QuantizedWeight{lowering.plain(numbers.value), {numbers.scale}, 0, numbers.zero_point};
}

/// The right factor, a weight or an activation. Through a transposition of a weight it is read as
/// that says.
Lowered<QuantizedWeight> right_factor(Lowering& lowering, const ProductFactors& factors,
                                      DType source) {
  TensorId tensor = factors.right;
  bool is_turned = factors.right_is_turned;
  const NodeId producer = lowering.graph().tensor(tensor).producer;
  if (lowering.dequantization(tensor) == nullptr && producer.valid()) {
    const Node& node = lowering.graph().node(producer);
    if (node.op_type == "aten.t.default") {
      tensor = node.inputs.front();
      is_turned = !is_turned;
    }
  }
  if (!has_exact_products(lowering, source, tensor)) return kNoExactInt8;
  const Dequantization* from = lowering.dequantization(tensor);
  auto weight = from != nullptr && from->type == DType::kUInt8 && from->is_activation()
                    ? right_activation(lowering, tensor)
                    : quantized_weight(lowering, tensor);
  if (!weight) return weight.refusal();
  QuantizedWeight result = *std::move(weight);
  const auto rank = static_cast<std::int64_t>(dimensions(result.value.layout).size());
  if (rank < 2) return NotFused{"the right factor is a vector"};
  if (is_turned) result.value = swapped(result.value);
  const std::int64_t columns = is_turned ? rank - 2 : rank - 1;
  if (result.scales.size() > 1 && result.axis != columns) {
    return NotFused{"the weights have other scales than one a column"};
  }
  return result;
}

}  // namespace

Lowered<Value> add_quantized_product(Lowering& lowering, const QuantizedOp& op) {
  const BoundNode node = bound(lowering.graph(), *op.node);
  const auto factors = factors_of(lowering, node);
  if (!factors) return factors.refusal();
  const auto source = quantized_source(lowering, factors->left);
  if (!source) return source.refusal();
  const auto right = right_factor(lowering, *factors, source->value.type);
  if (!right) return right.refusal();
  const auto finish = finish_of(lowering, op, source->scale, right->scales);
  if (!finish) return finish.refusal();
  const Shape& result_shape = lowering.shape(op.node->outputs.front());
  const Shape right_shape = dimensions(right->value.layout);
  Shape left_shape = lowering.shape(factors->left);
  const std::int64_t inner = right_shape[right_shape.size() - 2];
  const std::int64_t columns = right_shape.back();
  if (left_shape.empty() || left_shape.back() != inner || result_shape.empty() ||
      result_shape.back() != columns) {
    return NotFused{"the factors do not fit each other or the result"};
  }
  Shape target_shape = result_shape;
  if (right_shape.size() == 2) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < left_shape.size(); ++i) rows *= left_shape[i];
    left_shape = {rows, inner};
    target_shape = {rows, columns};
  } else if (left_shape.size() != right_shape.size() ||
             !std::equal(left_shape.begin(), left_shape.end() - 2, right_shape.begin())) {
    return NotFused{"the factors have other batches"};
  }
  const Value left = lowering.plain(lowering.reshaped(source->value, left_shape));
  const DType type = op.target ? op.target->type : DType::kFloat32;
  const Layout target_layout = plain_layout(target_shape, type);
  const bool packs = lowering.is_constant(right->value);
  const Layout right_layout = packs ? any_layout(right_shape, DType::kInt8) : right->value.layout;
  const int mask = 1 << (target_shape.size() - 1);
  dnnl::primitive_attr attributes = attributes_of(*finish, mask, *source, op);
  if (right->zero_point != 0) {
    attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {static_cast<std::int32_t>(right->zero_point)});
  }
  Shape bias_shape(target_shape.size(), 1);
  bias_shape.back() = columns;
  const Layout bias_layout = plain_layout(bias_shape, DType::kFloat32);
  const dnnl::matmul::desc descriptor =
      factors->bias ? dnnl::matmul::desc(left.layout, right_layout, bias_layout, target_layout)
                    : dnnl::matmul::desc(left.layout, right_layout, target_layout);
  const auto primitive =
      first_right(dnnl::matmul::primitive_desc(descriptor, attributes, lowering.engine()));
  if (is_slow(primitive)) return kNoFastKernel;
  const Value weights = lowering.in_layout(right->value, primitive.weights_desc());
  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, weights}};
  if (factors->bias) {
    const Value bias = scaled_bias(lowering, *factors->bias, finish->bias_factors, columns);
    reads.push_back({DNNL_ARG_BIAS, lowering.reshaped(bias, bias_shape)});
  }
  const Value target = quantized_result(lowering, op, *finish, target_layout, left);
  lowering.add_primitive(primitive, reads, target);
  return lowering.reshaped(target, result_shape);
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Convolutions in one to three dimensions.
//
// With AVX2 source and result have channels in blocks of 8, with AVX-512 of 16, wherever oneDNN has
// a fast kernel for that: as fast as what it would choose itself, and all convolutions then agree,
// so that no reorder stands between them and a concatenation of channels is one of memory. In
// bfloat16 on a CPU with AMX channels lie last instead, which its kernels want. Where
// one of our kernels takes less time (choose_convolution.cpp), it is taken; else oneDNN chooses,
// but for signals of one channel that it has no fast kernel for: lower_windows.cpp. Weights are
// laid out once, when they are compiled.
#include <algorithm>
#include <string_view>

#include "lowering/convolution/convolution.hpp"
#include "lowering/norm/norm.hpp"
#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "program/implementations.hpp"

namespace npu::onednn {

namespace {

/// padding='same' or 'valid': 'same' puts the odd element behind.
void pad_by_name(const Lowering& lowering, const std::string& padding, const Shape& kernel,
                 Spatial& spatial) {
  spatial.pad_begin.assign(kernel.size(), 0);
  spatial.pad_end.assign(kernel.size(), 0);
  if (padding == "valid") return;
  if (padding != "same") {
    lowering.invalid("argument 'padding': expected 'same' or 'valid', found '" + padding + "'");
  }
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (spatial.stride[i] != 1) lowering.invalid("argument 'padding': 'same' needs stride 1");
    const std::int64_t total = spatial.dilation[i] * (kernel[i] - 1);
    spatial.pad_begin[i] = total / 2;
    spatial.pad_end[i] = total - total / 2;
  }
}

Shape result_shape(const Lowering& lowering, const Shape& input, const Shape& weight,
                   const Spatial& spatial) {
  Shape result{input[0], weight[0]};
  for (std::size_t i = 0; i < spatial.stride.size(); ++i) {
    const std::int64_t extent = spatial.dilation[i] * (weight[i + 2] - 1) + 1;
    const std::int64_t padded = input[i + 2] + spatial.pad_begin[i] + spatial.pad_end[i];
    if (padded < extent) {
      lowering.invalid("the kernel spans " + number_text(extent) +
                       " elements, but the padded input has " + number_text(padded));
    }
    result.push_back((padded - extent) / spatial.stride[i] + 1);
  }
  return result;
}

/// How source and result lie.
struct Choice {
  bool blocked = false;
  bool channels_last = false;
  bool plain_source = false;  ///< a handful of channels is read as it comes
  bool row_major = false;     ///< as npu-align pins a node
};

Shape grouped_weight(const ConvolutionCall& call) {
  Shape shape = dimensions(call.weight.layout);
  if (call.groups > 1) {
    shape[0] /= call.groups;
    shape.insert(shape.begin(), call.groups);
  }
  return shape;
}

dnnl::convolution_forward::primitive_desc describe(Lowering& lowering, const ConvolutionCall& call,
                                                   const Choice& choice,
                                                   const dnnl::primitive_attr& attributes) {
  using Forward = dnnl::convolution_forward;
  const Shape input = dimensions(call.source.layout);
  dnnl::memory::dims dilation = dims(call.spatial.dilation);
  for (auto& value : dilation) value -= 1;  // oneDNN counts the gaps
  const auto kind = dnnl::prop_kind::forward_inference;
  Layout source = any_layout(input, call.type);
  Layout target = any_layout(call.output, call.type);
  if (choice.blocked) {
    source =
        choice.plain_source ? plain_layout(input, call.type) : lowering.blocked(input, call.type);
    target = lowering.blocked(call.output, call.type);
  }
  if (choice.channels_last) {
    source = channels_last_layout(input, call.type);
    target = channels_last_layout(call.output, call.type);
  }
  if (choice.row_major) {
    source = plain_layout(input, call.type);
    target = plain_layout(call.output, call.type);
  }
  const Layout weights = any_layout(grouped_weight(call), call.type);
  const auto describe_with = [&](const auto&... bias) {
    return Forward::desc(kind, dnnl::algorithm::convolution_direct, source, weights, bias...,
                         target, dims(call.spatial.stride), dilation, dims(call.spatial.pad_begin),
                         dims(call.spatial.pad_end));
  };
  if (!call.bias)
    return first_right(Forward::primitive_desc(describe_with(), attributes, lowering.engine()));
  return first_right(
      Forward::primitive_desc(describe_with(plain_layout({call.output[1]}, DType::kFloat32)),
                              attributes, lowering.engine()));
}

bool suits_blocks(const Lowering& lowering, const ConvolutionCall& call) {
  if (!lowering.machine().has_avx2()) return false;
  const Shape weight = dimensions(call.weight.layout);
  const std::int64_t inputs = weight[1];
  const std::int64_t outputs = weight[0] / call.groups;
  if (call.groups == 1) return true;
  if (inputs == 1 && outputs == 1) return true;
  const std::int64_t lanes = lowering.machine().lanes();
  return inputs % lanes == 0 && outputs % lanes == 0;
}

/// Whether a convolution goes to the CPU's products of tiles, or lies behind one that does and has
/// no use for them.
bool suits_tiles(const Lowering& lowering, const ConvolutionCall& call) {
  if (!lowering.machine().multiplies_tiles || call.type != DType::kBFloat16) return false;
  return call.groups == 1 ||
         call.source.layout ==
             channels_last_layout(dimensions(call.source.layout), call.source.type);
}

bool is_fast(const dnnl::convolution_forward::primitive_desc& primitive) {
  const std::string_view name = primitive.impl_info_str();
  return !name.starts_with("ref") && name.find("gemm") == std::string_view::npos;
}

/// True for the kernels that add each product, or those of a few channels, to what already stands
/// in the target. Behind a large addend each of them would be rounded to the addend's last place.
bool sums_in_target(const dnnl::convolution_forward::primitive_desc& primitive) {
  constexpr std::string_view kDirect[] = {"jit:sse41", "jit:avx2", "jit:avx512_common",
                                          "jit:avx512_core"};
  const std::string_view name = primitive.impl_info_str();
  return std::find(std::begin(kDirect), std::end(kDirect), name) != std::end(kDirect) ||
         name.starts_with("jit_dw:") || name.find("gemm") != std::string_view::npos;
}

/// The first choice that oneDNN has a fast kernel for.
std::pair<Choice, dnnl::convolution_forward::primitive_desc> choose(Lowering& lowering,
                                                                    const ConvolutionCall& call) {
  std::vector<Choice> choices;
  // npu-align may have pinned this node.
  if (is_pinned(lowering.node())) {
    Choice choice;
    choice.row_major = true;
    try {
      return {choice, describe(lowering, call, choice, Lowering::attributes())};
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  if (suits_tiles(lowering, call)) choices.push_back({.channels_last = true});
  if (suits_blocks(lowering, call)) {
    if (dimensions(call.source.layout)[1] < 8 && call.type == DType::kFloat32 &&
        is_plain(call.source.layout)) {
      choices.push_back({.blocked = true, .plain_source = true});
    }
    choices.push_back({.blocked = true});
  }
  for (const Choice& choice : choices) {
    try {
      const auto primitive = describe(lowering, call, choice, Lowering::attributes());
      if (is_fast(primitive)) return {choice, primitive};
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  return {Choice{}, describe(lowering, call, Choice{}, Lowering::attributes())};
}

ConvolutionShape shape_of(const Lowering& lowering, const ConvolutionCall& call) {
  return {call.type,
          dimensions(call.source.layout),
          dimensions(call.weight.layout),
          call.output,
          call.spatial,
          call.groups,
          lowering.is_constant(call.weight),
          is_pinned(lowering.node()),
          lowering.convolution_depth(),
          lowering.sub_ir_flops()};
}

/// Adds a kernel that convolves channels in blocks, with weights in an order of its own, the first
/// of the candidates, with the group's epilogue.
template <typename Own>
Lowered<Value> add_ordered(Lowering& lowering, const GroupContext& context,
                           const ConvolutionCall& call, const std::vector<Candidate>& candidates,
                           Own kernel) {
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  const Layout layout = lowering.blocked(call.output, call.type);
  const auto epilogue = own_epilogue(lowering, context, source, layout);
  if (!epilogue) return epilogue.refusal();
  const auto weights = static_cast<std::size_t>(span_elements(call.weight.layout));
  std::vector<Value> reads{source,
                           ordered_weights(lowering, call.weight, weights, kernel.weight_order())};
  if (call.bias) reads.push_back(*call.bias);
  for (const Value& operand : epilogue->bound.reads()) reads.push_back(operand);
  kernel.epilogue = epilogue->steps;
  kernel.has_bias = call.bias.has_value();
  const Value target = target_of(lowering, epilogue->bound.accumulated, call.type, layout);
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute,
                      choice_of(candidates));
  return target;
}

/// Adds the first of the candidates, one of our kernels.
Lowered<Value> add_first(Lowering& lowering, const GroupContext& context,
                         const ConvolutionCall& call, const std::vector<Candidate>& candidates) {
  return std::visit(
      [&](const auto& own) -> Lowered<Value> {
        if constexpr (std::is_same_v<decltype(own), const Winograd&>) {
          return add_winograd(lowering, context, call, candidates);
        } else if constexpr (requires { own.weight_order(); }) {
          return add_ordered(lowering, context, call, candidates, own);
        } else {
          return add_pointwise(lowering, context, call, candidates);
        }
      },
      *candidates.front().kernel);
}

/// Adds the cheapest of our kernels that takes less time than oneDNN's and does the current
/// group's epilogue; nothing if there is none.
std::optional<Value> add_own(Lowering& lowering, const GroupContext& context,
                             const ConvolutionCall& call, std::vector<Candidate>& candidates) {
  while (candidates.front().is_own()) {
    auto result = add_first(lowering, context, call, candidates);
    if (result) return *std::move(result);
    refuse_first(candidates, result.refusal().reason);
  }
  return std::nullopt;
}

using ConvolutionPrimitive = dnnl::convolution_forward::primitive_desc;

/// The primitive with post-ops; it has to lie as the bare one does, and to be as fast.
Lowered<ConvolutionPrimitive> with_post_ops(Lowering& lowering, const ConvolutionCall& call,
                                            const Choice& choice, const ConvolutionPrimitive& bare,
                                            const PostOps& post) {
  dnnl::primitive_attr attributes = Lowering::attributes();
  attributes.set_post_ops(post.operations);
  try {
    ConvolutionPrimitive fused = describe(lowering, call, choice, attributes);
    if (fused.dst_desc() == bare.dst_desc() && fused.src_desc() == bare.src_desc() &&
        (!is_reference(fused) || is_reference(bare))) {
      return fused;
    }
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return NotFused{"oneDNN has no convolution that does all that stands behind it"};
  }
  return NotFused{"with what stands behind it the convolution would be a slower one"};
}

}  // namespace

Lowered<Value> add_convolution(Lowering& lowering, const GroupContext& context,
                               const ConvolutionCall& call) {
  std::vector<Candidate> candidates =
      choose_convolution(shape_of(lowering, call), context.epilogue, lowering.machine());
  if (const auto result = add_own(lowering, context, call, candidates)) return *result;
  auto [choice, primitive] = choose(lowering, call);
  if (!is_fast(primitive) && suits_windows(lowering, context, call))
    return add_windows(lowering, context, call);
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source = lowering.in_layout(call.source, primitive.src_desc());
  // Post-ops want the layout of the result, which only the bare primitive tells.
  const Layout layout = primitive.dst_desc();
  const auto epilogue =
      bind_epilogue(lowering, context, layout, {source}, !sums_in_target(primitive));
  if (!epilogue) return epilogue.refusal();
  const auto post = post_ops_of(lowering, *epilogue);
  if (!post) return post.refusal();
  if (post->operations.len() != 0) {
    auto fused = with_post_ops(lowering, call, choice, primitive, *post);
    if (!fused) return fused.refusal();
    primitive = *std::move(fused);
  }
  const Value weights = lowering.in_layout(lowering.reshaped(call.weight, grouped_weight(call)),
                                           primitive.weights_desc());
  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}};
  if (call.bias) reads.push_back({DNNL_ARG_BIAS, *call.bias});
  reads.insert(reads.end(), post->reads.begin(), post->reads.end());
  const Value target = target_of(lowering, epilogue->accumulated, call.type, layout);
  lowering.add_primitive(primitive, reads, target, choice_of(candidates));
  return target;
}

namespace {

/// Refuses operands of wrong ranks and dtypes.
void check_operands(const Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  const TensorId weight = tensor_argument(lowering, node, "weight");
  const Shape& input_shape = lowering.shape(input);
  const std::size_t rank = lowering.shape(weight).size();
  const std::string& op = node.node().op_type;
  for (const auto& [name, tensor] : {std::pair{"input", input}, std::pair{"weight", weight}}) {
    if (lowering.dtype(tensor) != DType::kInt32) lowering.require_float(name, tensor);
    if (lowering.dtype(tensor) != lowering.dtype(input)) {
      lowering.refuse(name, "its dtype differs from the input's");
    }
  }
  const bool fixed_rank = op.starts_with("aten.conv1d") || op.starts_with("aten.conv2d") ||
                          op.starts_with("aten.conv3d");
  const std::size_t expected_rank = fixed_rank ? static_cast<std::size_t>(op[9] - '0') + 2 : 0;
  if ((fixed_rank && rank != expected_rank) || rank < 3 || rank > 5) {
    lowering.refuse("weight", "rank " + std::to_string(rank) + " is not supported");
  }
  if (input_shape.size() != rank) {
    lowering.refuse("input", "rank " + std::to_string(input_shape.size()) +
                                 " is not supported; a batch dimension is needed");
  }
}

/// How the filter walks over its source.
Spatial read_spatial(const Lowering& lowering, const BoundNode& node, const Shape& weight) {
  const std::size_t rank = weight.size() - 2;
  Spatial spatial;
  spatial.stride = spatial_argument(lowering, node, "stride", rank, 1);
  spatial.dilation = spatial_argument(lowering, node, "dilation", rank, 1);
  if (node.node().op_type.ends_with(".padding")) {
    const Shape kernel(weight.begin() + 2, weight.end());
    pad_by_name(lowering, node.string("padding"), kernel, spatial);
  } else {
    spatial.pad_begin = spatial_argument(lowering, node, "padding", rank, 0);
    spatial.pad_end = spatial.pad_begin;
  }
  return spatial;
}

/// What the kernel of the node reads instead of its first operand, if it also does the work of the
/// node in front.
const Value* front_source(const GroupContext& context) {
  if (const auto* norm = std::get_if<Norm>(&context.front)) return &norm->source;
  if (const auto* resized = std::get_if<Resized>(&context.front)) {
    return &resized->source;
  }
  const auto* expansion = std::get_if<Expansion>(&context.front);
  return expansion == nullptr ? nullptr : &expansion->source;
}

Lowered<Value> add_with_front(Lowering& lowering, const GroupContext& context,
                              const ConvolutionCall& call) {
  if (const auto* expansion = std::get_if<Expansion>(&context.front)) {
    return add_expand_depthwise(lowering, context, call, *expansion);
  }
  if (const auto* norm = std::get_if<Norm>(&context.front)) {
    return add_norm_pointwise(lowering, context, call, *norm);
  }
  if (const auto* resized = std::get_if<Resized>(&context.front)) {
    return add_resized_pointwise(lowering, context, call, *resized);
  }
  return add_convolution(lowering, context, call);
}

}  // namespace

ConvolutionCall read_convolution_geometry(Lowering& lowering, const BoundNode& node) {
  check_operands(lowering, node);
  const TensorId input = tensor_argument(lowering, node, "input");
  const auto bias = node.tensor("bias");
  const Shape& input_shape = lowering.shape(input);
  const Shape& weight_shape = lowering.shape(tensor_argument(lowering, node, "weight"));
  ConvolutionCall call;
  call.spatial = read_spatial(lowering, node, weight_shape);
  call.groups = node.integer("groups");
  if (call.groups < 1 || weight_shape[0] % call.groups != 0 ||
      input_shape[1] != weight_shape[1] * call.groups) {
    lowering.invalid("argument 'groups': " + number_text(call.groups) +
                     " groups do not fit an input of " + shape_text(input_shape) +
                     " and a weight of " + shape_text(weight_shape));
  }
  if (bias && lowering.shape(*bias) != Shape{weight_shape[0]}) {
    lowering.invalid("argument 'bias': expected shape [" + number_text(weight_shape[0]) +
                     "], found " + shape_text(lowering.shape(*bias)));
  }
  call.output = result_shape(lowering, input_shape, weight_shape, call.spatial);
  lowering.check_result(node.node().outputs.front(), call.output, lowering.dtype(input));
  if (bias) lowering.require_float("bias", *bias);
  return call;
}

Lowered<ConvolutionCall> read_convolution(Lowering& lowering, const GroupContext& context,
                                          const BoundNode& node) {
  ConvolutionCall call = read_convolution_geometry(lowering, node);
  const TensorId input = tensor_argument(lowering, node, "input");
  const TensorId weight = tensor_argument(lowering, node, "weight");
  const auto bias = node.tensor("bias");
  const DType type = context.compute_type;
  call.type = type;
  const Value* front = front_source(context);
  call.source = front != nullptr ? *front : lowering.operand(input, context.compute_type);
  std::optional<Value> bias_value;
  if (bias) bias_value = lowering.plain(lowering.operand(*bias, DType::kFloat32));
  // Folding wants the weights in float32 even where bfloat16 computes.
  const DType weight_type = context.has_epilogue() ? DType::kFloat32 : type;
  const auto folded =
      fold_norms(lowering, context, lowering.plain(lowering.operand(weight, weight_type)),
                 bias_value, 1, false);
  if (!folded) return folded.refusal();
  call.weight = lowering.in_type(folded->weight, type);
  call.bias = folded->bias;
  trim_taps(lowering, call);
  return call;
}

Lowered<Done> lower_with_front(Lowering& lowering, const KernelGroup& part, Front front) {
  auto context = lowering.enter(part);
  if (!context) return context.refusal();
  context->front = std::move(front);
  return lowering.lower_node(*std::move(context), lowering.graph().node(part.nodes.front()));
}

Lowered<Done> lower_convolution(Lowering& lowering, const GroupContext& context,
                                const BoundNode& node) {
  if (node.node().op_type == "aten.convolution.default" && node.boolean("transposed")) {
    return lower_transposed_convolution(lowering, context, node);
  }
  if (lowering.dtype(tensor_argument(lowering, node, "input")) == DType::kInt32) {
    return lower_integer_convolution(lowering, context, node);
  }
  const auto call = read_convolution(lowering, context, node);
  if (!call) return call.refusal();
  const auto result = add_with_front(lowering, context, *call);
  if (!result) return result.refusal();
  lowering.define_computed(context, node.node().outputs.front(), call->output,
                           lowering.dtype(tensor_argument(lowering, node, "input")), *result);
  return Done{};
}

}  // namespace npu::onednn

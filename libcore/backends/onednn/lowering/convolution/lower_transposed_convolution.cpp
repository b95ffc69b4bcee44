// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions in one to three dimensions. oneDNN calls them deconvolutions and wants
// weights as [groups, O, I, ..], which is a view of PyTorch's [I, O / groups, ..] until they are
// laid out.
//
// Where the taps of neighbouring positions do not overlap (an extent of the kernel is its stride,
// nothing is cut off: the way up in a U-Net), every tap is a pointwise convolution of its own. One
// with as many channels as there are taps and channels computes all of them, and a copy puts every
// tap into its place: 3 to 4 times as fast as oneDNN's deconvolution.
#include "lowering/convolution/convolution.hpp"
#include "lowering/movement/movement.hpp"
#include "lowering/norm/norm.hpp"
#include "ops/op_name.hpp"
#include "program/implementations.hpp"

namespace npu::onednn {

Value turned_weight(Lowering& lowering, const Value& weight, std::int64_t groups) {
  Shape shape = dimensions(weight.layout);
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  Value result = lowering.reshaped(weight, shape);
  std::vector<int> permutation;
  for (std::size_t i = 0; i < shape.size(); ++i) permutation.push_back(static_cast<int>(i));
  std::swap(permutation[1], permutation[2]);
  result.layout = result.layout.permute_axes(permutation);
  if (groups > 1) return result;
  const Shape full = dimensions(result.layout);
  const auto strides = strides_of(result.layout);
  result.layout = strided_layout(Shape(full.begin() + 1, full.end()),
                                 {strides.begin() + 1, strides.end()}, result.type);
  return result;
}

namespace {

/// One more tap, of zeros, behind the others in the dimensions that are marked.
Value widened_kernel(Lowering& lowering, const Value& kernel, const std::vector<bool>& widens) {
  const Value source = lowering.plain(kernel);
  const Shape from = dimensions(source.layout);
  Shape to = from;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (widens[i]) ++to[i];
    count *= to[i];
  }
  const Value target = lowering.temporary(source.type, plain_layout(to, source.type));
  StridedCopy copy{dtype_size(source.type), from, strides_of(source.layout),
                   strides_of(target.layout)};
  copy.simplify();
  lowering.add_kernel({source}, target, PaddedCopy{source.type, 0.0F, count, 0, std::move(copy)});
  return target;
}

}  // namespace

bool is_transposed_convolution(const BoundNode& node) {
  if (functional_name(node.node().op_type).starts_with("conv_transpose")) return true;
  return node.find("transposed") != nullptr && node.boolean("transposed");
}

TransposedCall read_transposed_call(Lowering& lowering, const BoundNode& node) {
  TransposedCall call;
  call.input = tensor_argument(lowering, node, "input");
  call.weight = tensor_argument(lowering, node, "weight");
  call.bias = node.tensor("bias");
  const Shape& input_shape = lowering.shape(call.input);
  const Shape& weight_shape = lowering.shape(call.weight);
  for (const auto& [name, tensor] :
       {std::pair{"input", call.input}, std::pair{"weight", call.weight}}) {
    lowering.require_float(name, tensor);
    if (lowering.dtype(tensor) != lowering.dtype(call.input)) {
      lowering.refuse(name, "its dtype differs from the input's");
    }
  }
  const std::size_t rank = weight_shape.size();
  const int fixed_rank = spatial_rank(node.node().op_type);
  const std::size_t expected_rank =
      fixed_rank > 0 ? static_cast<std::size_t>(fixed_rank) + 2 : rank;
  if (rank != expected_rank || rank < 3 || rank > 5) {
    lowering.refuse("weight", "rank " + std::to_string(rank) + " is not supported");
  }
  if (input_shape.size() != rank) {
    lowering.refuse("input", "rank " + std::to_string(input_shape.size()) +
                                 " is not supported; a batch dimension is needed");
  }
  call.stride = spatial_argument(lowering, node, "stride", rank - 2, 1);
  call.padding = spatial_argument(lowering, node, "padding", rank - 2, 0);
  const auto behind = spatial_argument(lowering, node, "output_padding", rank - 2, 0);
  call.dilation = spatial_argument(lowering, node, "dilation", rank - 2, 1);
  call.groups = node.integer("groups");
  if (call.groups < 1 || weight_shape[0] % call.groups != 0 || input_shape[1] != weight_shape[0]) {
    lowering.invalid("argument 'groups': " + number_text(call.groups) +
                     " groups do not fit an input of " + shape_text(input_shape) +
                     " and a weight of " + shape_text(weight_shape));
  }
  call.channels = weight_shape[1] * call.groups;
  if (call.bias && lowering.shape(*call.bias) != Shape{call.channels}) {
    lowering.invalid("argument 'bias': expected shape [" + number_text(call.channels) +
                     "], found " + shape_text(lowering.shape(*call.bias)));
  }
  call.output = {input_shape[0], call.channels};
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (behind[i] >= call.stride[i] && behind[i] >= call.dilation[i]) {
      lowering.invalid("argument 'output_padding': " + number_text(behind[i]) +
                       " is below neither stride nor dilation");
    }
    const std::int64_t extent = (input_shape[i + 2] - 1) * call.stride[i] - 2 * call.padding[i] +
                                call.dilation[i] * (weight_shape[i + 2] - 1) + behind[i] + 1;
    if (extent < 1) lowering.invalid("the result would be empty");
    call.output.push_back(extent);
    call.pad_end.push_back(call.padding[i] - behind[i]);
  }
  lowering.check_result(node.node().outputs.front(), call.output, lowering.dtype(call.input));
  return call;
}

Value with_room(Lowering& lowering, TransposedCall& call, const Value& kernel) {
  // oneDNN wants less than a stride cut off behind; a tap of zeros makes room for more.
  std::vector<bool> widens(call.output.size(), false);
  bool widens_any = false;
  for (std::size_t i = 0; i < call.stride.size(); ++i) {
    if (call.pad_end[i] + call.stride[i] > 0) continue;
    widens[i + 2] = true;
    widens_any = true;
    call.pad_end[i] += call.dilation[i];
  }
  return widens_any ? widened_kernel(lowering, kernel, widens) : kernel;
}

namespace {

/// True if no two positions of the source reach one result, and all results are reached.
bool is_disjoint(const TransposedCall& call, const Shape& weight) {
  if (call.groups != 1 || !all_are(call.padding, 0) || !all_are(call.pad_end, 0)) return false;
  if (!all_are(call.dilation, 1)) return false;
  return std::equal(call.stride.begin(), call.stride.end(), weight.begin() + 2, weight.end());
}

/// True if every step of the epilogue is the same for all elements: taps lie side by side as
/// channels when it is done.
bool is_uniform(const Epilogue& epilogue) {
  return std::all_of(epilogue.ops.begin(), epilogue.ops.end(), [](const EpilogueOp& op) {
    return op.operand == EpilogueOp::Operand::kNone || op.operand == EpilogueOp::Operand::kNumber;
  });
}

/// A plain copy of elements that `strides` place in the source.
Value gathered(Lowering& lowering, const Value& source, const Shape& extents,
               std::vector<std::int64_t> strides, const Shape& shape) {
  const Value target = lowering.temporary(source.type, plain_layout(shape, source.type));
  StridedCopy copy{dtype_size(source.type), extents, std::move(strides),
                   row_major_strides(extents)};
  copy.simplify();
  lowering.add_kernel({source}, target, std::move(copy), KernelKind::kReorder);
  return target;
}

/// The pointwise convolution that computes all taps: channel t * O + o is tap t of channel o.
ConvolutionCall taps_as_channels(Lowering& lowering, const GroupContext& context,
                                 const TransposedCall& call, const FoldedWeights& folded,
                                 DType type) {
  const Shape shape = dimensions(folded.weight.layout);
  const std::int64_t inputs = shape[0];
  const std::int64_t outputs = shape[1];
  const std::int64_t taps = element_count(shape) / (inputs * outputs);
  const Value kernel = lowering.plain(lowering.in_type(folded.weight, type));
  Shape pointwise{taps * outputs, inputs};
  pointwise.resize(shape.size(), 1);
  ConvolutionCall result;
  result.type = type;
  result.source = lowering.operand(call.input, context.compute_type);
  result.weight =
      gathered(lowering, kernel, {taps, outputs, inputs}, {1, taps, outputs * taps}, pointwise);
  if (folded.bias) {
    result.bias = gathered(lowering, *folded.bias, {taps, outputs}, {0, 1}, {taps * outputs});
  }
  const std::size_t spatial = shape.size() - 2;
  result.spatial = {std::vector<std::int64_t>(spatial, 1), std::vector<std::int64_t>(spatial, 0),
                    std::vector<std::int64_t>(spatial, 0), std::vector<std::int64_t>(spatial, 1)};
  result.output = lowering.shape(call.input);
  result.output[1] = taps * outputs;
  return result;
}

/// Puts tap after tap of [N, taps * O, ..] into the places of [N, O, ..]. Both lie in blocks of
/// `lanes` channels.
Value taps_in_place(Lowering& lowering, const TransposedCall& call, const Value& all,
                    std::int64_t lanes) {
  const Shape from = dimensions(all.layout);
  const Value target = lowering.temporary(all.type, lowering.blocked(call.output, all.type));
  const std::size_t spatial = call.stride.size();
  // Elements between neighbours in each spatial dimension, of the source and of the result, and
  // between neighbouring taps.
  std::vector<std::int64_t> source(spatial);
  std::vector<std::int64_t> result(spatial);
  std::vector<std::int64_t> tap(spatial);
  std::int64_t source_plane = lanes;
  std::int64_t result_plane = lanes;
  std::int64_t taps = 1;
  for (std::size_t i = spatial; i > 0; --i) {
    source[i - 1] = std::exchange(source_plane, source_plane * from[i + 1]);
    result[i - 1] = std::exchange(result_plane, result_plane * call.output[i + 1]);
    tap[i - 1] = std::exchange(taps, taps * call.stride[i - 1]);
  }
  const std::int64_t blocks = call.channels / lanes;
  StridedCopy copy{dtype_size(all.type),
                   {from[0], blocks},
                   {from[1] / lanes * source_plane, source_plane},
                   {blocks * result_plane, result_plane}};
  const auto add = [&](std::int64_t extent, std::int64_t in_source, std::int64_t in_result) {
    copy.extents.push_back(extent);
    copy.source_strides.push_back(in_source);
    copy.target_strides.push_back(in_result);
  };
  for (std::size_t i = 0; i < spatial; ++i) {
    add(from[i + 2], source[i], call.stride[i] * result[i]);
    add(call.stride[i], tap[i] * blocks * source_plane, result[i]);
  }
  add(lanes, 1, 1);
  copy.simplify();
  lowering.add_kernel({all}, target, std::move(copy), KernelKind::kReorder);
  return target;
}

/// True if a pointwise convolution and a copy make the result.
bool suits_pointwise(const Lowering& lowering, const GroupContext& context,
                     const TransposedCall& call, const Shape& weight) {
  return lowering.machine().has_avx2() && call.channels % lowering.machine().lanes() == 0 &&
         is_disjoint(call, weight) && is_uniform(context.epilogue);
}

Lowered<Value> add_disjoint(Lowering& lowering, const GroupContext& context,
                            const TransposedCall& call, const FoldedWeights& folded, DType type) {
  const ConvolutionCall pointwise = taps_as_channels(lowering, context, call, folded, type);
  const Lowered<Value> all = add_convolution(lowering, context, pointwise);
  if (!all) return all.refusal();
  const Value blocked = lowering.in_layout(*all, lowering.blocked(pointwise.output, type));
  return taps_in_place(lowering, call, blocked, lowering.machine().lanes());
}

}  // namespace

Lowered<Done> lower_transposed_convolution(Lowering& lowering, const GroupContext& context,
                                           const BoundNode& node) {
  TransposedCall call = read_transposed_call(lowering, node);
  const Shape& input_shape = lowering.shape(call.input);
  const DType type = context.compute_type;
  std::optional<Value> bias_value;
  if (call.bias) {
    lowering.require_float("bias", *call.bias);
    bias_value = lowering.plain(lowering.operand(*call.bias, DType::kFloat32));
  }
  const DType weight_type = context.has_epilogue() ? DType::kFloat32 : type;
  const auto folded =
      fold_norms(lowering, context, lowering.plain(lowering.operand(call.weight, weight_type)),
                 bias_value, call.groups, true);
  if (!folded) return folded.refusal();
  if (suits_pointwise(lowering, context, call, dimensions(folded->weight.layout))) {
    const Lowered<Value> result = add_disjoint(lowering, context, call, *folded, type);
    if (!result) return result.refusal();
    lowering.define_computed(context, node.node().outputs.front(), call.output,
                             lowering.dtype(call.input), *result);
    return Done{};
  }
  const Value kernel = with_room(lowering, call, lowering.in_type(folded->weight, type));
  const Value weights = turned_weight(lowering, kernel, call.groups);
  dnnl::memory::dims gaps = dims(call.dilation);
  for (auto& value : gaps) value -= 1;  // oneDNN counts the gaps
  const auto describe = [&](const dnnl::primitive_attr& attributes) {
    const auto describe_with = [&](const auto&... bias_layout) {
      return dnnl::deconvolution_forward::desc(
          dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
          any_layout(input_shape, type), any_layout(dimensions(weights.layout), type),
          bias_layout..., any_layout(call.output, type), dims(call.stride), gaps,
          dims(call.padding), dims(call.pad_end));
    };
    using Descriptor = dnnl::deconvolution_forward::primitive_desc;
    if (!folded->bias)
      return first_right(Descriptor(describe_with(), attributes, lowering.engine()));
    return first_right(Descriptor(describe_with(plain_layout({call.channels}, DType::kFloat32)),
                                  attributes, lowering.engine()));
  };
  auto primitive = describe(Lowering::attributes());
  const Layout target_layout = primitive.dst_desc();
  const Value source =
      lowering.in_layout(lowering.operand(call.input, context.compute_type), primitive.src_desc());
  const auto epilogue = bind_epilogue(lowering, context, target_layout, {source});
  if (!epilogue) return epilogue.refusal();
  const auto post = post_ops_of(lowering, *epilogue);
  if (!post) return post.refusal();
  if (post->operations.len() != 0) {
    dnnl::primitive_attr attributes = Lowering::attributes();
    attributes.set_post_ops(post->operations);
    primitive = describe(attributes);
    if (primitive.dst_desc() != target_layout || primitive.src_desc() != source.layout) {
      return NotFused{"with what stands behind it the convolution would be another one"};
    }
  }
  std::vector<PrimitiveOperand> reads{
      {DNNL_ARG_SRC, source},
      {DNNL_ARG_WEIGHTS, lowering.in_layout(weights, primitive.weights_desc())}};
  if (folded->bias) reads.push_back({DNNL_ARG_BIAS, *folded->bias});
  reads.insert(reads.end(), post->reads.begin(), post->reads.end());
  const Value target = target_of(lowering, epilogue->accumulated, type, target_layout);
  lowering.add_primitive(primitive, reads, target);
  lowering.define_computed(context, node.node().outputs.front(), call.output,
                           lowering.dtype(call.input), target);
  return Done{};
}

}  // namespace npu::onednn

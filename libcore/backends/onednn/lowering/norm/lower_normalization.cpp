// SPDX-License-Identifier: Apache-2.0
// Batch norm with its running statistics, layer and group norm. Statistics, scale and shift are
// float32 whatever the tensors are, as in PyTorch.
#include "lowering/engine/channel_layout.hpp"
#include "lowering/norm/norm.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

Value vector_operand(Lowering& lowering, std::string_view argument, TensorId tensor,
                     std::int64_t count) {
  lowering.require_float(argument, tensor);
  const auto elements = [&] {
    std::int64_t product = 1;
    for (const std::int64_t extent : lowering.shape(tensor)) product *= extent;
    return product;
  };
  if (elements() != count) {
    lowering.invalid("argument '" + std::string(argument) + "': expected " + number_text(count) +
                     " elements, found shape " + shape_text(lowering.shape(tensor)));
  }
  return lowering.reshaped(lowering.operand(tensor, DType::kFloat32), {count});
}

NormalizedRows normalized_rows(Lowering& lowering, const BoundNode& node, const Shape& shape) {
  const Shape normalized = node.integers("normalized_shape");
  if (normalized.empty() || normalized.size() > shape.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), shape.rbegin())) {
    lowering.invalid("argument 'normalized_shape': " + shape_text(normalized) +
                     " is not the end of the input's shape " + shape_text(shape));
  }
  NormalizedRows result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (i < shape.size() - normalized.size() ? result.rows : result.width) *= shape[i];
  }
  return result;
}

namespace {

using dnnl::normalization_flags;

/// Norms of groups of channels, in blocks if the operand has them and groups fit in.
void lower_groups(Lowering& lowering, const GroupContext& context, const BoundNode& node,
                  TensorId input, std::int64_t group_size) {
  const Shape& shape = lowering.shape(input);
  const auto weight = node.tensor("weight");
  const auto bias = node.tensor("bias");
  Value source = lowering.operand(input, context.compute_type);
  const auto space = channel_layout(source.layout);
  GroupNorm call;
  call.lanes = space && !is_strided(source.layout) ? space->lanes : 1;
  if (call.lanes != GroupNorm::kMaxLanes || !GroupNorm::supports(call.lanes, group_size)) {
    call.lanes = 1;
    source = lowering.plain(source);
  }
  call.type = source.type;
  call.outer = shape[0];
  call.channels = ceil_div(shape[1], call.lanes) * call.lanes;
  for (std::size_t i = 2; i < shape.size(); ++i) call.spatial *= shape[i];
  call.group_size = group_size;
  call.vector = shape[1];
  call.epsilon = static_cast<float>(node.number("eps"));
  call.has_weight = weight.has_value();
  call.has_bias = bias.has_value();
  std::vector<Value> reads{source};
  if (weight) reads.push_back(vector_operand(lowering, "weight", *weight, shape[1]));
  if (bias) reads.push_back(vector_operand(lowering, "bias", *bias, shape[1]));
  const Value target = lowering.temporary(call.type, source.layout);
  lowering.add_kernel(reads, target, call);
  lowering.define_computed(context, lowering.result(), shape, lowering.dtype(input), target);
}

}  // namespace

Lowered<Norm> read_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  lowering.require_float("input", input);
  if (node.find("training") != nullptr && node.boolean("training")) {
    lowering.refuse("training", "only inference with running statistics is supported");
  }
  const Shape& shape = lowering.shape(input);
  if (shape.size() < 2 || shape.size() > 5) {
    lowering.refuse("input", "rank " + std::to_string(shape.size()) + " is not in 2..5");
  }
  const auto weight = node.tensor("weight");
  const auto bias = node.tensor("bias");
  const auto mean = node.tensor("running_mean");
  const auto variance = node.tensor("running_var");
  if (!mean || !variance) {
    lowering.refuse(mean ? "running_var" : "running_mean", "inference needs running statistics");
  }

  // One factor and one term per channel, known before the program runs unless the statistics are
  // computed; a ReLU behind it comes for free.
  const std::int64_t channels = shape[1];
  Norm norm;
  norm.source = lowering.dense(lowering.operand(input, context.compute_type));
  auto space = channel_layout(norm.source.layout);
  if (!space) {  // behind a permutation that takes the channels between other dimensions
    norm.source = lowering.in_layout(norm.source, plain_layout(shape, norm.source.type));
    space = channel_layout(norm.source.layout);
  }
  for (const EpilogueOp& op : context.epilogue.ops) {
    if (!op.step || !op.step->is_plain_relu()) {
      return NotFused{"the kernel of a batch norm does not compute '" + std::string(op.op) +
                      "' behind it"};
    }
    norm.relu = true;
  }
  NormVectors fold;
  fold.epsilon = static_cast<float>(node.number("eps"));
  fold.channels = channels;
  fold.has_scale = weight.has_value();
  fold.has_shift = bias.has_value();
  std::vector<Value> reads{vector_operand(lowering, "running_var", *variance, channels),
                           vector_operand(lowering, "running_mean", *mean, channels)};
  if (weight) reads.push_back(vector_operand(lowering, "weight", *weight, channels));
  if (bias) reads.push_back(vector_operand(lowering, "bias", *bias, channels));
  // The vectors cover padded channels, too, with zeros.
  const Layout vectors = plain_layout({2, space->channels()}, DType::kFloat32);
  norm.vectors = lowering.temporary(DType::kFloat32, vectors);
  fold.padded_channels = space->channels();
  lowering.add_kernel(reads, norm.vectors, fold);
  return norm;
}

Lowered<Done> lower_batch_norm(Lowering& lowering, const GroupContext& context,
                               const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  const auto norm = read_norm(lowering, context, node);
  if (!norm) return norm.refusal();
  const Value& source = norm->source;
  ScaleShift space = *channel_layout(source.layout);
  space.type = source.type;
  space.has_shift = true;
  space.relu = norm->relu;
  const bool in_place = lowering.can_overwrite(source);
  if (in_place) lowering.note_overwritten(source);
  const Value target = in_place ? source : lowering.temporary(source.type, source.layout);
  lowering.add_kernel({source, norm->vectors}, target, space);
  lowering.define_computed(context, node.node().outputs.front(), lowering.shape(input),
                           lowering.dtype(input), target);
  return Done{};
}

void lower_layer_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  lowering.require_float("input", input);
  const Shape& shape = lowering.shape(input);
  const auto [rows, width] = normalized_rows(lowering, node, shape);
  const auto weight = node.tensor("weight");
  const auto bias = node.tensor("bias");
  auto flags = normalization_flags::none;
  if (weight) flags |= normalization_flags::use_scale;
  if (bias) flags |= normalization_flags::use_shift;
  // oneDNN takes rows to follow each other, whatever stride they have, and has a plain loop only
  // for elements that lie apart, such as those of a transposed picture.
  const Value source = lowering.plain(
      lowering.reshaped(lowering.operand(input, context.compute_type), {rows, width}));
  const dnnl::layer_normalization_forward::desc descriptor(
      dnnl::prop_kind::forward_inference, source.layout, static_cast<float>(node.number("eps")),
      flags);
  const dnnl::layer_normalization_forward::primitive_desc primitive(
      descriptor, lowering.attributes(), lowering.engine());
  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, source}};
  if (weight) reads.push_back({DNNL_ARG_SCALE, vector_operand(lowering, "weight", *weight, width)});
  if (bias) reads.push_back({DNNL_ARG_SHIFT, vector_operand(lowering, "bias", *bias, width)});
  const Value target = lowering.temporary(source.type, source.layout);
  lowering.add_primitive(primitive, reads, target);
  lowering.define_computed(context, lowering.result(), shape, lowering.dtype(input),
                           lowering.reshaped(target, shape));
}

void lower_group_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  lowering.require_float("input", input);
  const Shape& shape = lowering.shape(input);
  const std::int64_t groups = node.integer("num_groups");
  if (shape.size() < 2) lowering.refuse("input", "rank 2 or more is needed");
  if (groups < 1 || shape[1] % groups != 0) {
    lowering.invalid("argument 'num_groups': " + number_text(groups) + " does not divide " +
                     number_text(shape[1]) + " channels");
  }
  lower_groups(lowering, context, node, input, shape[1] / groups);
}

Lowered<Done> lower_instance_norm(Lowering& lowering, const GroupContext& context,
                                  const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  if (!node.boolean("use_input_stats")) return lower_batch_norm(lowering, context, node);
  lowering.require_float("input", input);
  if (lowering.shape(input).size() < 2) lowering.refuse("input", "rank 2 or more is needed");
  if (node.tensor("running_mean") || node.tensor("running_var")) {
    lowering.refuse("running_mean", "statistics that are updated are not supported");
  }
  lower_groups(lowering, context, node, input, 1);
  return Done{};
}

}  // namespace npu::onednn

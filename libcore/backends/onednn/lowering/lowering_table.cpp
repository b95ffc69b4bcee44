// SPDX-License-Identifier: Apache-2.0
// The ops that this backend runs, by name, and the kinds of groups. A row without an overload
// stands for all those that no other row names, in place or not: values are functional here.
#include <algorithm>
#include <array>

#include "lowering/attention/attention.hpp"
#include "lowering/convolution/convolution.hpp"
#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/op_table.hpp"
#include "lowering/movement/movement.hpp"
#include "lowering/norm/norm.hpp"
#include "lowering/product/product.hpp"
#include "lowering/quantized/quantized.hpp"
#include "lowering/recurrence/recurrence.hpp"
#include "lowering/reduction/reduction.hpp"
#include "lowering/sampling/sampling.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

constexpr auto kRows = std::to_array<LoweringRow>({
    {kGetitem, lower_getitem},
    {"aten.__and__", lower_typed_binary},
    {"aten.__or__", lower_typed_binary},
    {"aten.__xor__", lower_typed_binary},
    {"aten._adaptive_avg_pool2d", lower_adaptive_average_pool},
    {"aten._grouped_mm", lower_grouped_product},
    {"aten._log_softmax", lower_softmax},
    {"aten._softmax", lower_softmax},
    {"aten._to_copy", lower_to},
    {"aten._unsafe_view", lower_reshape},
    {"aten._upsample_nearest_exact1d", lower_resample},
    {"aten._upsample_nearest_exact2d", lower_resample},
    {"aten._upsample_nearest_exact3d", lower_resample},
    {"aten.abs", lower_unary},
    {"aten.adaptive_avg_pool1d", lower_adaptive_average_pool},
    {"aten.adaptive_avg_pool2d", lower_adaptive_average_pool},
    {"aten.adaptive_avg_pool3d", lower_adaptive_average_pool},
    {"aten.add", lower_binary},
    {"aten.addmm", lower_addmm},
    {"aten.alias", lower_alias},
    {"aten.all", lower_integer_reduction},
    {"aten.amax", lower_reduction},
    {"aten.amin", lower_reduction},
    {"aten.any", lower_integer_reduction},
    {"aten.arange", lower_arange},
    {"aten.argmax", lower_arg_reduction},
    {"aten.argmin", lower_arg_reduction},
    {"aten.argsort", lower_sort},
    {"aten.avg_pool1d", lower_average_pool},
    {"aten.avg_pool2d", lower_average_pool},
    {"aten.avg_pool3d", lower_average_pool},
    {"aten.baddbmm", lower_addmm},
    {"aten.batch_norm", lower_batch_norm},
    {"aten.bitwise_and", lower_typed_binary},
    {"aten.bitwise_not", lower_opposite},
    {"aten.bitwise_or", lower_typed_binary},
    {"aten.bitwise_xor", lower_typed_binary},
    {"aten.bmm", lower_matmul},
    {"aten.broadcast_to", lower_expand},
    {"aten.cat", lower_cat},
    {"aten.ceil", lower_unary},
    {"aten.celu", lower_unary},
    {"aten.channel_shuffle", lower_shuffle},
    {"aten.chunk", lower_split},
    {"aten.clamp", lower_unary},
    {"aten.clamp.Tensor", lower_typed_clamp},
    {"aten.clamp_max", lower_unary},
    {"aten.clamp_max.Tensor", lower_typed_clamp},
    {"aten.clamp_min", lower_unary},
    {"aten.clamp_min.Tensor", lower_typed_clamp},
    {"aten.clone", lower_alias},
    {"aten.concat", lower_cat},
    {"aten.constant_pad_nd", lower_pad},
    {"aten.contiguous", lower_alias},
    {"aten.conv1d", lower_convolution},
    {"aten.conv2d", lower_convolution},
    {"aten.conv3d", lower_convolution},
    {"aten.conv_transpose1d", lower_transposed_convolution},
    {"aten.conv_transpose2d", lower_transposed_convolution},
    {"aten.conv_transpose3d", lower_transposed_convolution},
    {"aten.convolution", lower_convolution},
    {"aten.copy", lower_copy},
    {"aten.cos", lower_unary},
    {"aten.cumsum", lower_running_sum},
    {"aten.detach", lower_alias},
    {"aten.div", lower_binary},
    {"aten.div.Scalar_mode", lower_typed_binary},
    {"aten.div.Tensor_mode", lower_typed_binary},
    {"aten.dropout", lower_dropout},
    {"aten.einsum", lower_einsum},
    {"aten.elu", lower_unary},
    {"aten.embedding", lower_embedding},
    {"aten.eq", lower_typed_binary},
    {"aten.erf", lower_unary},
    {"aten.exp", lower_unary},
    {"aten.expand", lower_expand},
    {"aten.expand_as", lower_expand},
    {"aten.feature_dropout", lower_dropout},
    {"aten.fill", lower_fill},
    {"aten.fill.Tensor", lower_copy},
    {"aten.fill_.Tensor", lower_copy},
    {"aten.flatten", lower_flatten},
    {"aten.flip", lower_flip},
    {"aten.floor", lower_unary},
    {"aten.floor_divide", lower_typed_binary},
    {"aten.fmod", lower_typed_binary},
    {"aten.full", lower_fill},
    {"aten.full_like", lower_fill},
    {"aten.gather", lower_gather},
    {"aten.ge", lower_typed_binary},
    {"aten.gelu", lower_unary},
    {"aten.grid_sampler", lower_grid_sample},
    {"aten.grid_sampler_2d", lower_grid_sample},
    {"aten.group_norm", lower_group_norm},
    {"aten.gru", lower_recurrence},
    {"aten.gt", lower_typed_binary},
    {"aten.hardsigmoid", lower_unary},
    {"aten.hardswish", lower_unary},
    {"aten.hardtanh", lower_unary},
    {"aten.index", lower_index},
    {"aten.index_copy", lower_index_copy},
    {"aten.index_put", lower_index_put},
    {"aten.index_select", lower_index_select},
    {"aten.instance_norm", lower_instance_norm},
    {"aten.isnan", lower_typed_unary},
    {"aten.layer_norm", lower_layer_norm},
    {"aten.le", lower_typed_binary},
    {"aten.leaky_relu", lower_unary},
    {"aten.linalg_vector_norm", lower_vector_norm},
    {"aten.linear", lower_linear},
    {"aten.linspace", lower_linspace},
    {"aten.log", lower_unary},
    {"aten.log_sigmoid", lower_unary},
    {"aten.log_softmax", lower_softmax},
    {"aten.logical_and", lower_typed_binary},
    {"aten.logical_not", lower_opposite},
    {"aten.logical_or", lower_typed_binary},
    {"aten.logical_xor", lower_typed_binary},
    {"aten.lstm", lower_recurrence},
    {"aten.lt", lower_typed_binary},
    {"aten.masked_fill", lower_masked_fill},
    {"aten.matmul", lower_matmul},
    {"aten.max.default", lower_reduction},
    {"aten.max.dim", lower_arg_reduction},
    {"aten.max_pool1d", lower_max_pool},
    {"aten.max_pool2d", lower_max_pool},
    {"aten.max_pool3d", lower_max_pool},
    {"aten.maximum", lower_binary},
    {"aten.mean", lower_reduction},
    {"aten.meshgrid", lower_meshgrid},
    {"aten.min.default", lower_reduction},
    {"aten.min.dim", lower_arg_reduction},
    {"aten.minimum", lower_binary},
    {"aten.mish", lower_unary},
    {"aten.mm", lower_matmul},
    {"aten.movedim", lower_move_dimension},
    {"aten.mul", lower_binary},
    {"aten.narrow", lower_narrow},
    {"aten.native_channel_shuffle", lower_shuffle},
    {"aten.ne", lower_typed_binary},
    {"aten.neg", lower_unary},
    {"aten.new_full", lower_fill},
    {"aten.new_ones", lower_fill},
    {"aten.new_zeros", lower_fill},
    {"aten.norm", lower_vector_norm},
    {"aten.numpy_T", lower_transpose},
    {"aten.ones", lower_fill},
    {"aten.ones_like", lower_fill},
    {"aten.pad", lower_pad},
    {"aten.permute", lower_permute},
    {"aten.pixel_shuffle", lower_shuffle},
    {"aten.pixel_unshuffle", lower_shuffle},
    {"aten.pow", lower_power},
    {"aten.prod", lower_reduction},
    {"aten.reciprocal", lower_unary},
    {"aten.relu", lower_unary},
    {"aten.relu6", lower_unary},
    {"aten.remainder", lower_typed_binary},
    {"aten.repeat", lower_repeat},
    {"aten.repeat_interleave.self_int", lower_repeat_interleave},
    {"aten.reshape", lower_reshape},
    {"aten.reshape_as", lower_reshape_as},
    {"aten.rms_norm", lower_rms_norm},
    {"aten.rnn_relu", lower_recurrence},
    {"aten.rnn_tanh", lower_recurrence},
    {"aten.roll", lower_roll},
    {"aten.round", lower_unary},
    {"aten.rsqrt", lower_unary},
    {"aten.rsub", lower_binary},
    {"aten.scalar_tensor", lower_fill},
    {"aten.scaled_dot_product_attention", lower_attention},
    {"aten.scatter", lower_scatter},
    {"aten.scatter_add", lower_scatter},
    {"aten.scatter_reduce", lower_scatter},
    {"aten.select", lower_select},
    {"aten.select_scatter", lower_select_scatter},
    {"aten.selu", lower_unary},
    {"aten.sigmoid", lower_unary},
    {"aten.sign", lower_unary},
    {"aten.silu", lower_unary},
    {"aten.sin", lower_unary},
    {"aten.slice", lower_slice},
    {"aten.slice_scatter", lower_slice_scatter},
    {"aten.softmax", lower_softmax},
    {"aten.softplus", lower_unary},
    {"aten.sort", lower_sort},
    {"aten.split", lower_split},
    {"aten.split_with_sizes", lower_split},
    {"aten.sqrt", lower_unary},
    {"aten.square", lower_unary},
    {"aten.squeeze", lower_squeeze},
    {"aten.stack", lower_stack},
    {"aten.sub", lower_binary},
    {"aten.sum", lower_reduction},
    {"aten.swapaxes", lower_transpose},
    {"aten.t", lower_transpose},
    {"aten.tanh", lower_unary},
    {"aten.tensor_split", lower_split},
    {"aten.tile", lower_repeat},
    {"aten.to.dtype", lower_to},
    {"aten.to.dtype_layout", lower_to},
    {"aten.topk", lower_sort},
    {"aten.transpose", lower_transpose},
    {"aten.tril", lower_triangle},
    {"aten.triu", lower_triangle},
    {"aten.trunc", lower_unary},
    {"aten.type_as", lower_to},
    {"aten.unbind", lower_unbind},
    {"aten.unflatten", lower_unflatten},
    {"aten.unfold", lower_unfold},
    {"aten.unsqueeze", lower_unsqueeze},
    {"aten.upsample_bicubic2d", lower_resample},
    {"aten.upsample_bilinear2d", lower_resample},
    {"aten.upsample_linear1d", lower_resample},
    {"aten.upsample_nearest1d", lower_resample},
    {"aten.upsample_nearest2d", lower_resample},
    {"aten.upsample_nearest3d", lower_resample},
    {"aten.upsample_trilinear3d", lower_resample},
    {"aten.view", lower_reshape},
    {"aten.view_as", lower_reshape_as},
    {"aten.where", lower_where},
    {"aten.zero", lower_fill},
    {"aten.zeros", lower_fill},
    {"aten.zeros_like", lower_fill},
    {"npu.channel_norm", lower_channel_norm},
    {"npu.length_mask", lower_length_mask},
    {"npu.tail", lower_tail},
    {"quantized_decomposed.dequantize_per_channel", lower_dequantize},
    {"quantized_decomposed.dequantize_per_tensor", lower_dequantize},
    {"quantized_decomposed.quantize_per_channel", lower_quantize},
    {"quantized_decomposed.quantize_per_tensor", lower_quantize},
});

static_assert(std::ranges::is_sorted(kRows, {}, &LoweringRow::op_type));

}  // namespace

const LoweringRow* find_lowering(std::string_view op_type) { return find_op_row(kRows, op_type); }

void lower_bound(const LoweringRow& row, Lowering& lowering, const GroupContext& context,
                 const BoundNode& node) {
  if (const auto* compute = std::get_if<ComputeFunction>(&row.lower)) {
    (*compute)(lowering, context, node);
  } else {
    std::get<MoveFunction>(row.lower)(lowering, node);
  }
}

GroupFunction find_group_lowering(KernelGroup::Kind kind) {
  using Kind = KernelGroup::Kind;
  switch (kind) {
    case Kind::kEpilogue:
      return nullptr;
    case Kind::kAttention:
      return lower_attention_group;
    case Kind::kCachedAttention:
      return lower_cached_attention_group;
    case Kind::kSharedInput:
      return lower_shared_input;
    case Kind::kWrittenGelu:
      return lower_written_gelu_group;
    case Kind::kWrittenRmsNorm:
      return lower_written_rms_norm_group;
    case Kind::kSqueezeExcite:
      return lower_squeeze_excite_group;
    case Kind::kNormPointwise:
      return lower_norm_pointwise_group;
    case Kind::kExpandDepthwise:
      return lower_expand_depthwise_group;
    case Kind::kResizedPointwise:
      return lower_resized_pointwise_group;
    case Kind::kQuantized:
      return lower_quantized_group;
    case Kind::kInteger:
      return lower_integer_group;
  }
  return nullptr;
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/node_export.hpp"

namespace npu::onnx_export {

// One function for each kind of op; each writes the node that it is given.

void export_quantize(NodeExport& node);
void export_dequantize(NodeExport& node);

void export_conv(NodeExport& node);
void export_conv_transpose(NodeExport& node);
void export_linear(NodeExport& node);
void export_matmul(NodeExport& node);
void export_addmm(NodeExport& node);
void export_einsum(NodeExport& node);
void export_attention(NodeExport& node);

void export_unary(NodeExport& node);
void export_binary(NodeExport& node);
void export_comparison(NodeExport& node);
void export_clip(NodeExport& node);
void export_leaky(NodeExport& node);
void export_silu(NodeExport& node);
void export_hard_sigmoid(NodeExport& node);
void export_gelu(NodeExport& node);
void export_power(NodeExport& node);
void export_cast(NodeExport& node);
void export_identity(NodeExport& node);
void export_where(NodeExport& node);
void export_masked_fill(NodeExport& node);

void export_logic(NodeExport& node);
void export_quotient(NodeExport& node);
void export_remainder(NodeExport& node);
void export_composed(NodeExport& node);
void export_softplus(NodeExport& node);
void export_shrink(NodeExport& node);
void export_prelu(NodeExport& node);
void export_clamp_side(NodeExport& node);
void export_nan_to_num(NodeExport& node);
void export_finite(NodeExport& node);
void export_fill(NodeExport& node);
void export_copy(NodeExport& node);
void export_baddbmm(NodeExport& node);
void export_add_product(NodeExport& node);
void export_glu(NodeExport& node);

void export_reshape(NodeExport& node);
void export_permute(NodeExport& node);
void export_transpose(NodeExport& node);
void export_expand(NodeExport& node);
void export_repeat(NodeExport& node);
void export_cat(NodeExport& node);
void export_stack(NodeExport& node);
void export_select(NodeExport& node);
void export_slice(NodeExport& node);
void export_split(NodeExport& node);
void export_getitem(NodeExport& node);
void export_roll(NodeExport& node);
void export_pad(NodeExport& node);
void export_index(NodeExport& node);
void export_embedding(NodeExport& node);
void export_unbind(NodeExport& node);
void export_flip(NodeExport& node);
void export_pixel_shuffle(NodeExport& node);

void export_gather(NodeExport& node);
void export_index_select(NodeExport& node);
void export_scatter(NodeExport& node);
void export_index_several(NodeExport& node);
void export_index_put(NodeExport& node);
void export_select_scatter(NodeExport& node);
void export_slice_scatter(NodeExport& node);
void export_top_k(NodeExport& node);

void export_recurrent(NodeExport& node);

void export_batch_norm(NodeExport& node);
void export_layer_norm(NodeExport& node);
void export_instance_norm(NodeExport& node);
void export_group_norm(NodeExport& node);
void export_softmax(NodeExport& node);
void export_reduce(NodeExport& node);
void export_variance(NodeExport& node);
void export_any_all(NodeExport& node);
void export_extreme(NodeExport& node);
void export_arg_extreme(NodeExport& node);
void export_log_sum_exp(NodeExport& node);
void export_cumulative_sum(NodeExport& node);
void export_triangle(NodeExport& node);
void export_max_pool(NodeExport& node);
void export_average_pool(NodeExport& node);
void export_adaptive_pool(NodeExport& node);
void export_resize(NodeExport& node);
void export_grid_sample(NodeExport& node);

}  // namespace npu::onnx_export

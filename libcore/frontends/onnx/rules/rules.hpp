// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op.hpp"

namespace npu::onnx {

// One function for each op, or for several that differ in a name only; op_table.cpp says which.

// elementwise.cpp
void import_unary(Op& op);
void import_arithmetic(Op& op);
void import_logical(Op& op);
void import_comparison(Op& op);
void import_variadic(Op& op);
void import_pow(Op& op);
void import_mod(Op& op);
void import_bit_shift(Op& op);
void import_where(Op& op);
void import_clip(Op& op);
void import_prelu(Op& op);
void import_shrink(Op& op);
void import_is_inf(Op& op);
void import_cast(Op& op);
void import_bit_cast(Op& op);
void import_identity(Op& op);
void import_dropout(Op& op);

// activation.cpp
void import_activation(Op& op);

// movement.cpp
void import_constant(Op& op);
void import_constant_of_shape(Op& op);
void import_shape(Op& op);
void import_size(Op& op);
void import_reshape(Op& op);
void import_flatten(Op& op);
void import_squeeze(Op& op);
void import_unsqueeze(Op& op);
void import_transpose(Op& op);
void import_concat(Op& op);
void import_split(Op& op);
void import_slice(Op& op);
void import_expand(Op& op);
void import_tile(Op& op);
void import_pad(Op& op);
void import_depth_to_space(Op& op);
void import_space_to_depth(Op& op);

// indexing.cpp
void import_gather(Op& op);
void import_gather_elements(Op& op);
void import_gather_nd(Op& op);
void import_scatter_elements(Op& op);
void import_scatter_nd(Op& op);
void import_one_hot(Op& op);
void import_trilu(Op& op);
void import_cumulative(Op& op);
void import_top_k(Op& op);
void import_range(Op& op);
void import_eye_like(Op& op);
void import_reverse_sequence(Op& op);

// data_dependent.cpp
void import_compress(Op& op);
void import_non_zero(Op& op);
void import_unique(Op& op);
void import_non_max_suppression(Op& op);

// control.cpp
void import_if(Op& op);
void import_loop(Op& op);
void import_scan(Op& op);
void import_sequence_map(Op& op);

// sampling.cpp
void import_grid_sample(Op& op);
void import_affine_grid(Op& op);
void import_roi_align(Op& op);
void import_deform_conv(Op& op);
void import_col2im(Op& op);
void import_center_crop_pad(Op& op);
void import_max_unpool(Op& op);

// attention.cpp
void import_attention(Op& op);
void import_rotary(Op& op);
void import_tensor_scatter(Op& op);

// microsoft.cpp
void import_skip_norm(Op& op);
void import_simplified_norm(Op& op);
void import_biased_gelu(Op& op);
void import_fused_conv(Op& op);
void import_fused_mat_mul(Op& op);
void import_group_query_attention(Op& op);
void import_mat_mul_n_bits(Op& op);

// multi_head.cpp
void import_multi_head_attention(Op& op);
void import_projected_attention(Op& op);

// matrix.cpp
void import_mat_mul(Op& op);
void import_gemm(Op& op);
void import_einsum(Op& op);
void import_det(Op& op);

// convolution.cpp
void import_conv(Op& op);
void import_conv_transpose(Op& op);
void import_causal_conv(Op& op);

// pooling.cpp
void import_max_pool(Op& op);
void import_average_pool(Op& op);
void import_lp_pool(Op& op);
void import_global_pool(Op& op);

// normalization.cpp
void import_batch_norm(Op& op);
void import_instance_norm(Op& op);
void import_layer_norm(Op& op);
void import_rms_norm(Op& op);
void import_group_norm(Op& op);
void import_mean_variance_norm(Op& op);
void import_lp_norm(Op& op);
void import_lrn(Op& op);
void import_softmax(Op& op);
void import_hardmax(Op& op);

// reduction.cpp
void import_reduce(Op& op);
void import_arg_extremum(Op& op);

// loss.cpp
void import_nll_loss(Op& op);
void import_cross_entropy(Op& op);

// recurrent.cpp
void import_recurrent(Op& op);

// quantized.cpp
void import_quantize(Op& op);
void import_dequantize(Op& op);
void import_dynamic_quantize(Op& op);
void import_mat_mul_integer(Op& op);
void import_qlinear_mat_mul(Op& op);
void import_conv_integer(Op& op);
void import_qlinear_conv(Op& op);
void import_qlinear_arithmetic(Op& op);
void import_qlinear_activation(Op& op);
void import_qlinear_pool(Op& op);
void import_qlinear_concat(Op& op);
void import_qgemm(Op& op);
void import_mat_mul_to_float(Op& op);

// sequence.cpp
void import_sequence_construct(Op& op);
void import_sequence_change(Op& op);
void import_sequence_at(Op& op);
void import_sequence_length(Op& op);
void import_split_to_sequence(Op& op);
void import_concat_from_sequence(Op& op);
void import_optional(Op& op);

// signal.cpp
void import_window(Op& op);
void import_dft(Op& op);
void import_stft(Op& op);
void import_mel_weights(Op& op);

// resize.cpp
void import_resize(Op& op);

/// A convolution of two operands with the attributes of Conv; `bias` may be null.
Value* convolve(Op& op, Value* x, Value* w, Value* bias);

/// An activation by ONNX's name.
struct ActivationRow {
  struct Number {
    std::string_view name;         ///< ATen's
    std::optional<double> absent;  ///< nothing: the function has no such number
  };
  std::string_view name;
  std::string_view aten;
  Number alpha;
  Number beta;
};
/// Null if there is no such activation.
const ActivationRow* find_activation(std::string_view name);
/// The activation of `x`, with ONNX's numbers where none are given; refuses unknown names.
Value* activated(Op& op, std::string_view name, Value* x, std::optional<double> alpha = {},
                 std::optional<double> beta = {});

/// An average pool of an operand with the attributes of AveragePool.
Value* average_pool(Op& op, Value* x);

/// Operands one after another along an axis.
Value* concatenated(Op& op, const std::vector<Value*>& parts, std::int64_t axis);

/// The one number of an operand that has to be constant; refuses if it is not.
std::int64_t integer_operand(Op& op, std::size_t index, std::string_view what);

/// The shape of a product of matrices, with batches that broadcast; refuses if there is none.
Shape matrix_product_shape(const Shape& a, const Shape& b);
/// a b; of a constant matrix a linear op.
Value* matrix_product(Op& op, Value* a, Value* b);

/// What SAME pads add, for convolutions and pools alike: {begin, end} of each spatial axis.
struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints begin;
  Ints end;
};
/// Reads strides, dilations, pads and auto_pad for windows of `kernel` on the last axes of `shape`.
Window read_window(Op& op, const Shape& shape, const Ints& kernel);
/// Refuses a stated kernel_shape that is not the weights'.
void check_kernel_shape(Op& op, const Ints& kernel);

}  // namespace npu::onnx

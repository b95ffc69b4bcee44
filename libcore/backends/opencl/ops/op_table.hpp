// SPDX-License-Identifier: Apache-2.0
// The ops that this backend runs, and how a kernel computes each.
#pragma once

#include <string>
#include <string_view>

#include "emit/emitter.hpp"
#include "emit/promotion.hpp"

namespace npu::opencl {

/// Null for an op that is not run.
const OpRow* find_row(std::string_view op_type);
/// The class of a node, which depends on its arguments, too: a small convolution is kElement.
OpClass class_of(const Model& model, NodeId id);
/// The place of an element of a view's operand in the result, where the view keeps all elements;
/// nothing for other views.
std::optional<Index> view_forward(const Model& model, NodeId id, const Index& index);
/// The tensor that a view has in the same row-major order; invalid if it has another order.
TensorId same_order_operand(const Model& model, NodeId id);

// ---- Arguments ----

/// An argument that is a tensor or a number, at an index of the result, as `to`.
std::string operand(Emitter& emitter, const BoundNode& node, std::string_view argument,
                    const Index& index, DType to);
/// A required tensor argument.
TensorId tensor_of(const Emitter& emitter, const BoundNode& node, std::string_view argument);
/// A dimension between 0 and rank.
std::int64_t dimension_of(const Emitter& emitter, const BoundNode& node, std::int64_t dimension,
                          std::size_t rank);

// ---- Casts, concatenations and pads that move nothing ----

/// One operand, whose elements are the result's.
bool repeats_operand(const Model& model, NodeId id);
bool pads_nothing(const Model& model, NodeId id);

// ---- What overwrites a part of its first operand ----

/// Of slice_scatter and select_scatter: which places of a dimension, and the shape that `src` has.
struct ScatteredPart {
  std::size_t dimension = 0;
  bool selects = false;  ///< `src` does not have the dimension
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
  Shape shape;
};
/// Refuses a node whose part does not fit.
ScatteredPart scattered_part(const Emitter& emitter, const BoundNode& node);

/// Of npu.tail.
struct TailRows {
  std::size_t dimension = 0;
  std::string count;          ///< a name: how many rows stay
  bool repeats_last = false;  ///< the others are the last of these,
  std::string fill;           ///< or this
};
TailRows tail_rows(Emitter& emitter, const BoundNode& node);

// ---- Element rules, by file ----

using R = std::string;
#define NPU_OPENCL_RULE(name) \
  R name(Emitter& emitter, const BoundNode& node, int result, const Index& index)
// unary_rules.cpp
NPU_OPENCL_RULE(unary_element);
NPU_OPENCL_RULE(clamp_element);
NPU_OPENCL_RULE(identity_element);
NPU_OPENCL_RULE(cast_element);
NPU_OPENCL_RULE(batch_norm_element);
// binary_rules.cpp
NPU_OPENCL_RULE(binary_element);
NPU_OPENCL_RULE(compare_element);
NPU_OPENCL_RULE(where_element);
NPU_OPENCL_RULE(masked_fill_element);
// views_rules.cpp
NPU_OPENCL_RULE(reshape_element);
NPU_OPENCL_RULE(permute_element);
NPU_OPENCL_RULE(expand_element);
NPU_OPENCL_RULE(part_element);
// moving_rules.cpp
NPU_OPENCL_RULE(cat_element);
NPU_OPENCL_RULE(stack_element);
NPU_OPENCL_RULE(pad_element);
NPU_OPENCL_RULE(flip_element);
NPU_OPENCL_RULE(roll_element);
NPU_OPENCL_RULE(repeat_element);
NPU_OPENCL_RULE(repeat_interleave_element);
NPU_OPENCL_RULE(shuffle_element);
NPU_OPENCL_RULE(triangle_element);
NPU_OPENCL_RULE(slice_scatter_element);
NPU_OPENCL_RULE(meshgrid_element);
// gather_rules.cpp
NPU_OPENCL_RULE(embedding_element);
NPU_OPENCL_RULE(grouped_product_element);
NPU_OPENCL_RULE(gather_element);
NPU_OPENCL_RULE(index_select_element);
NPU_OPENCL_RULE(tail_element);
NPU_OPENCL_RULE(length_mask_element);
NPU_OPENCL_RULE(index_element);
// creation_rules.cpp
NPU_OPENCL_RULE(fill_element);
NPU_OPENCL_RULE(arange_element);
NPU_OPENCL_RULE(linspace_element);
NPU_OPENCL_RULE(copy_element);
// windows_rules.cpp
NPU_OPENCL_RULE(max_pool_element);
NPU_OPENCL_RULE(average_pool_element);
NPU_OPENCL_RULE(adaptive_pool_element);
NPU_OPENCL_RULE(upsample_element);
NPU_OPENCL_RULE(grid_sample_element);
// search_rules.cpp
NPU_OPENCL_RULE(arg_element);
NPU_OPENCL_RULE(cumsum_element);
// quantized_rules.cpp
NPU_OPENCL_RULE(quantize_element);
NPU_OPENCL_RULE(dequantize_element);
// convolution_rules.cpp
NPU_OPENCL_RULE(convolution_element);
#undef NPU_OPENCL_RULE

}  // namespace npu::opencl

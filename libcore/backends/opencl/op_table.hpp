// SPDX-License-Identifier: Apache-2.0
// The ops that this backend runs, and how a kernel computes each.
#pragma once

#include <string>
#include <string_view>

#include "emitter.hpp"

namespace npu::opencl {

/// Gives one element of a result: emits what it needs and returns an expression.
using ElementRule = std::string (*)(Emitter& emitter, const BoundNode& node, int result,
                                    const Index& index);

enum class OpClass : std::uint8_t {
  kView,     ///< moves nothing: computed wherever it is read
  kElement,  ///< an element of the result is computed by itself
  kRows,     ///< a work group reduces rows of an operand: reductions, softmax, norms
  kProduct,  ///< sums of products: convolutions and matrix products, in tiles
  kBlock,    ///< a kernel of its own form
};

/// How the shape of the first result follows.
enum class ShapeRule : std::uint8_t { kOwn, kFirst, kBroadcast };
/// How the dtype of the first result follows.
enum class DTypeRule : std::uint8_t { kOwn, kFirst, kPromoted, kFloat, kBool };

struct OpRow {
  std::string_view op_type;
  OpClass kind = OpClass::kElement;
  ElementRule element = nullptr;
  ShapeRule shape = ShapeRule::kOwn;
  DTypeRule dtype = DTypeRule::kFirst;
};

/// Null for an op that is not run.
const OpRow* find_row(std::string_view op_type);
/// The class of a node, which depends on its arguments, too: a small convolution is kElement.
OpClass class_of(const Model& model, NodeId id);
/// True for a view, whether by its op or because it need not move anything here.
bool is_view(const Model& model, NodeId id);
/// The place of an element of a view's operand in the result, where the view keeps all elements;
/// nothing for other views.
std::optional<Index> view_forward(const Model& model, NodeId id, const Index& index);
/// The tensor that a view has in the same row-major order; invalid if it has another order.
TensorId same_order_operand(const Model& model, NodeId id);

// ---- Promotion ----

DType promote(DType a, DType b);
/// PyTorch's result dtype of the arguments named, tensors or numbers.
DType promoted(const Model& model, const BoundNode& node,
               std::initializer_list<std::string_view> arguments);
/// An argument that is a tensor or a number, at an index of the result, as `to`.
std::string operand(Emitter& emitter, const BoundNode& node, std::string_view argument,
                    const Index& index, DType to);
/// A required tensor argument.
TensorId tensor_of(const Emitter& emitter, const BoundNode& node, std::string_view argument);
/// A dimension between 0 and rank.
std::int64_t dimension_of(const Emitter& emitter, const BoundNode& node, std::int64_t dimension,
                          std::size_t rank);

// ---- Element rules, by file ----

using R = std::string;
#define NPU_OPENCL_RULE(name) \
  R name(Emitter& emitter, const BoundNode& node, int result, const Index& index)
// ops_unary.cpp
NPU_OPENCL_RULE(unary_element);
NPU_OPENCL_RULE(clamp_element);
NPU_OPENCL_RULE(identity_element);
NPU_OPENCL_RULE(cast_element);
NPU_OPENCL_RULE(batch_norm_element);
// ops_binary.cpp
NPU_OPENCL_RULE(binary_element);
NPU_OPENCL_RULE(compare_element);
NPU_OPENCL_RULE(where_element);
NPU_OPENCL_RULE(masked_fill_element);
// ops_views.cpp
NPU_OPENCL_RULE(reshape_element);
NPU_OPENCL_RULE(permute_element);
NPU_OPENCL_RULE(expand_element);
NPU_OPENCL_RULE(part_element);
// ops_moving.cpp
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
// ops_gather.cpp
NPU_OPENCL_RULE(embedding_element);
NPU_OPENCL_RULE(grouped_product_element);
NPU_OPENCL_RULE(gather_element);
NPU_OPENCL_RULE(index_select_element);
NPU_OPENCL_RULE(index_element);
// ops_creation.cpp
NPU_OPENCL_RULE(fill_element);
NPU_OPENCL_RULE(arange_element);
NPU_OPENCL_RULE(linspace_element);
NPU_OPENCL_RULE(copy_element);
// ops_windows.cpp
NPU_OPENCL_RULE(max_pool_element);
NPU_OPENCL_RULE(average_pool_element);
NPU_OPENCL_RULE(adaptive_pool_element);
NPU_OPENCL_RULE(upsample_element);
NPU_OPENCL_RULE(grid_sample_element);
// ops_search.cpp
NPU_OPENCL_RULE(arg_element);
NPU_OPENCL_RULE(cumsum_element);
// ops_quantized.cpp
NPU_OPENCL_RULE(quantize_element);
NPU_OPENCL_RULE(dequantize_element);
// ops_convolution.cpp
NPU_OPENCL_RULE(convolution_element);
#undef NPU_OPENCL_RULE

}  // namespace npu::opencl

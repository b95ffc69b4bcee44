// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ops/op_name.hpp"
#include "ops/schema.hpp"

namespace npu {

/// How an op combines its operands, after TVM's OpPatternKind (Chen et al., "TVM: An Automated
/// End-to-End Optimizing Compiler for Deep Learning", OSDI 2018, section 3).
enum class OpKind : std::uint8_t {
  kElementwise,  ///< one input element, one output element
  kBroadcast,    ///< element-wise after broadcasting
  kInjective,    ///< each output element is one input element: transpose, cat, slice
  kReduction,    ///< sum, mean, softmax, norms, pooling
  kAnchor,       ///< conv, linear, matmul: expensive; element-wise ops fuse into its epilogue
  kOpaque,       ///< anything else
};

/// What an op is to the patterns of fusion, besides its kind.
enum class FusionRole : std::uint8_t {
  kOther,
  kConv,
  kMatmul,
  kLinear,     ///< a matrix product with the transpose of its second operand
  kAttention,  ///< a scaled dot product attention in one op
  kBatchNorm,
  kRelu,  ///< from here to kRareActivation: activations
  kLeakyRelu,
  kClip,  ///< relu6, hardtanh, clamp
  kSilu,
  kHardSwish,
  kSigmoid,
  kHardSigmoid,
  kGelu,
  kActivation,      ///< elu, mish, tanh
  kRareActivation,  ///< those that kernels seldom take as a post-op
  kUnary,           ///< functions of one number that are no activations: abs, log, neg
  kAdd,
  kSub,
  kRsub,
  kMul,
  kDiv,
  kSquare,
  kPower,  ///< a tensor to the power of a number
  kMean,
  kSqrt,
  kRsqrt,
  kSoftmax,
  kSafeSoftmax,  ///< gives zeros where everything is masked
  kLayerNorm,
  kRmsNorm,
  kWindow,         ///< a pooling with overlapping windows: reads each operand several times
  kGlobalPool,     ///< adaptive average pooling
  kGlobalMaxPool,  ///< adaptive max pooling
  kCat,
  kSameOrder,  ///< its result has the first operand's elements in the same row-major order
  kPermute,
  kFill,  ///< of its first operand only shape and dtype count, not what it holds
  // From here on: what graph neural networks are made of besides.
  kGather,  ///< its result has rows of its first operand, which the last one numbers
  kIndexAdd,
  kScatterReduce,
  kZeros,  ///< of a shape that attributes state
  kOnes,
  kSelect,
  kSlice,
  kExpand,
  kExp,
  kCast,
};
constexpr bool is_matrix_product(FusionRole role) noexcept {
  return role == FusionRole::kMatmul || role == FusionRole::kLinear;
}
/// A convolution or a product of matrices.
constexpr bool is_product(FusionRole role) noexcept {
  return role == FusionRole::kConv || is_matrix_product(role);
}
constexpr bool is_activation(FusionRole role) noexcept {
  return role >= FusionRole::kRelu && role <= FusionRole::kRareActivation;
}

/// One row of the catalogue.
struct OpInfo {
  std::string_view op_type;  ///< "aten.conv2d.default"
  OpKind kind = OpKind::kOpaque;
  FusionRole role = FusionRole::kOther;
  bool is_alias = false;     ///< a view of its first operand where strides allow: moves no data
  bool is_in_place = false;  ///< overwrites its first operand in PyTorch; functional here
  Schema schema;
};

/// Whether the catalogue knows an op: find_op without reading its schema.
bool is_catalogued(std::string_view op_type);

/// The row of an op, or null if the catalogue does not know it.
const OpInfo* find_op(std::string_view op_type);

/// Its role; kOther for an op that the catalogue does not know.
FusionRole fusion_role(std::string_view op_type);

/// Every op that the catalogue knows, by name.
std::vector<std::string_view> catalogued_ops();

/// Those of one family (ops/op_name.hpp), by name: overloads and their in-place forms.
std::span<const std::string_view> op_forms(std::string_view family);

/// The row for a catalogued op in a table sorted by `op_type`: the one that names the op, or else
/// its family. Null if there is none.
template <typename Rows>
auto find_op_row(const Rows& rows, std::string_view op_type) -> decltype(rows.data()) {
  if (!is_catalogued(op_type)) return nullptr;
  for (const std::string_view name : {op_type, family_name(op_type)}) {
    const auto row = std::ranges::lower_bound(rows, name, {}, &Rows::value_type::op_type);
    if (row != rows.end() && row->op_type == name) return &*row;
  }
  return nullptr;
}

/// True if a node need not move data: its op is an alias (a dropout only if it is not training or
/// drops nothing), a cast whose result has its operand's dtype, a concatenation of one tensor or a
/// pad of no elements.
bool is_alias_node(const Graph& graph, const Node& node);

/// Floating-point operations of a node (a multiply-add is two). 0 for aliases and ops without
/// arithmetic; an op that the catalogue does not know counts as one per output element.
double node_flops(const Graph& graph, const Node& node);

/// Bytes that a node must at least read and write: each operand once, and its results. 0 for an
/// alias. With `with_weights` false, operands that are weights do not count.
double node_bytes(const Graph& graph, const Node& node, bool with_weights = true);

/// The sums over several nodes, each by itself.
struct NodeWork {
  double flops = 0;
  double bytes = 0;
};
NodeWork work_of(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace npu

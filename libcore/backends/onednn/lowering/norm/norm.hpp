// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// What a batch norm multiplies by and adds, and whether a ReLU of the group follows.
Lowered<Norm> read_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node);

/// Weights [.., channels, ..] and bias with the batch norms of the group's epilogue folded
/// in. `weight` is float32 or bfloat16 and plain; dimension 0 counts channels, or for a transposed
/// convolution dimension 1 within each of `groups` runs of dimension 0.
struct FoldedWeights {
  Value weight;
  std::optional<Value> bias;  ///< float32
};
Lowered<FoldedWeights> fold_norms(Lowering& lowering, const GroupContext& context,
                                  const Value& weight, const std::optional<Value>& bias,
                                  std::int64_t groups, bool transposed);

/// A float32 vector of `count` elements.
Value vector_operand(Lowering& lowering, std::string_view argument, TensorId tensor,
                     std::int64_t count);

/// The extents of `shape` in front of those that a node normalizes, and those, multiplied.
struct NormalizedRows {
  std::int64_t rows = 1;
  std::int64_t width = 1;
};
NormalizedRows normalized_rows(Lowering& lowering, const BoundNode& node, const Shape& shape);

/// Softmax or log-softmax of a dense float value along a dimension.
Value add_softmax(Lowering& lowering, const Value& value, std::size_t dimension, bool logarithm);

Lowered<Done> lower_batch_norm(Lowering& lowering, const GroupContext& context,
                               const BoundNode& node);
void lower_group_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node);
Lowered<Done> lower_instance_norm(Lowering& lowering, const GroupContext& context,
                                  const BoundNode& node);
void lower_layer_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_rms_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node);
Lowered<Done> lower_written_rms_norm_group(Lowering& lowering, const GroupContext& context);
void lower_softmax(Lowering& lowering, const GroupContext& context, const BoundNode& node);

}  // namespace npu::onednn

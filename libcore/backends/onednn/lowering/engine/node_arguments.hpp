// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lowering functions read of a node: its arguments, and the shapes that follow from them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/engine/lowering.hpp"
#include "ops/schema.hpp"

namespace npu::onednn {

/// A node of the graph with its arguments by the schema of its op, which has to have one.
BoundNode bound(const Graph& graph, const Node& node);

/// The required tensor argument; refuses the node if it is a number or None.
TensorId tensor_argument(const Lowering& lowering, const BoundNode& node, std::string_view name);
/// The first tensor operand, whatever its argument is called.
TensorId first_operand(const Lowering& lowering);
/// A list argument with one value for every spatial dimension; each has to be at least `least`.
std::vector<std::int64_t> spatial_argument(const Lowering& lowering, const BoundNode& node,
                                           std::string_view name, std::size_t rank,
                                           std::int64_t least);
/// `dimension` counted from the front; refuses the node if it is outside the rank.
std::size_t normalize_dimension(const Lowering& lowering, std::string_view argument,
                                std::int64_t dimension, std::size_t rank);

/// The shape that two shapes broadcast to; refuses the node if they do not.
Shape broadcast_shape(const Lowering& lowering, const Shape& a, const Shape& b);
std::int64_t element_count(const Shape& shape);

}  // namespace npu::onednn

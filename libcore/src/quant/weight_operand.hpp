// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "npu/ir/graph.hpp"

namespace npu {

/// The matrix or kernel that an op multiplies with.
struct WeightOperand {
  std::size_t operand = 0;  ///< place in the node's inputs
  TensorId tensor;
  std::int32_t axis = 0;  ///< along the channels of the result, or of each group of them

  /// The place of what it is multiplied with: addmm's bias stands in front of that.
  std::size_t data() const noexcept { return operand - 1; }
};

/// The weight of a convolution, transposed or not, or a product with a float32 weight of the model;
/// nothing for other ops and for products of two activations.
std::optional<WeightOperand> weight_operand(const Graph& graph, const Node& node);

}  // namespace npu

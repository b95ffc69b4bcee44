// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "npu/ir/graph.hpp"

namespace npu {

/// What an op reads of an operand.
enum class OperandUse : std::uint8_t {
  kElements,
  kShape,  ///< of its shape, which is that of the result, and its dtype: zeros_like
  kDType,  ///< its dtype alone: new_zeros
};
OperandUse operand_use(const Node& node, std::size_t operand);

/// Whether a node gives the same results whenever it has the same operands: an op that the
/// catalogue knows, without random numbers, and whose results are not left uninitialized.
bool is_repeatable(const Graph& graph, const Node& node);

/// Whether a node depends on nothing but what `is_constant(TensorId)` holds for.
template <typename IsConstant>
bool depends_on_constants_alone(const Node& node, const IsConstant& is_constant) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (operand_use(node, i) == OperandUse::kElements && !is_constant(node.inputs[i])) return false;
  }
  return true;
}

}  // namespace npu

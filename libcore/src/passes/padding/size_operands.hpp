// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/support/json.hpp"
#include "passes/padding/rewrite_rows.hpp"

namespace npu::padding {

/// Sizes that count as numbers, by the name of the node that computes with them.
using SizeOperands = std::map<std::string, SizeExpression, std::less<>>;

/// Whether the number in an attribute of a node can be an operand.
bool can_be_operand(const Json& node, std::string_view attribute);

/// Makes operands of numbers that are the valid sizes then. Ids change, names stay.
void write_size_operands(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                         const SizeOperands& numbers, AddedSizes& added);

}  // namespace npu::padding

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The element-wise functions that nodes stand for, alone or behind another node.

#include <string_view>
#include <vector>

#include "kernels/elementwise/broadcast.hpp"
#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// The functions, applied one after the other, that a node of one operand stands for.
std::vector<Eltwise> unary_functions(const Lowering& lowering, const BoundNode& node);
/// The linear function that a node of arithmetic with a number stands for.
Eltwise number_function(const Lowering& lowering, const BoundNode& node);
/// The arithmetic of "add", "rsub" and their like.
BinaryOp binary_op(std::string_view name);
/// A numeric argument as float32, which is what kernels compute with.
float number_argument(const Lowering& lowering, const BoundNode& node, std::string_view name);

}  // namespace npu::onednn

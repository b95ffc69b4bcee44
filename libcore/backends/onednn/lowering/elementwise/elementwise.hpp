// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/elementwise/broadcast.hpp"
#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// A function as a primitive in the layout of its operand, over it if nothing reads it later.
Value add_function(Lowering& lowering, const Eltwise& eltwise, const Value& source);
/// op(a, alpha * b) broadcast; operands in any layout, of which a has the type of the result.
Value add_binary(Lowering& lowering, BinaryOp op, const Value& a, const Value& b, float alpha);
/// True for arithmetic on floats of one dtype, perhaps with a number, that is not rounded.
bool has_one_float_dtype(const Lowering& lowering, const BoundNode& node);

void lower_binary(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_masked_fill(Lowering& lowering, const BoundNode& node);
void lower_power(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_typed_binary(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_typed_clamp(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_typed_unary(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_unary(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_where(Lowering& lowering, const BoundNode& node);
/// What makes up a GELU.
Lowered<Done> lower_written_gelu_group(Lowering& lowering, const GroupContext& context);

}  // namespace npu::onednn

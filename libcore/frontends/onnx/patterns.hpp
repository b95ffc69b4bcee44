// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op.hpp"

namespace npu::onnx {

// Exporters take ops apart that ONNX did not have in their opset. These put them together again;
// each returns the new value, or null if the operands are something else. What is left over is not
// written, since nothing needs it.

/// x * sigmoid(x), x * hardsigmoid(x), a norm without a weight times one (of groups, too, that
/// stand as channels), and 0.5 x (1 + erf(x/√2)) or its approximation with tanh, in two orders.
Value* match_product(Op& op, Value* a, Value* b);
/// As above, for a product with a number.
Value* match_scaled(Op& op, Value* a, double factor);
/// A product with constant weights plus a bias, and a norm with a weight plus a bias.
Value* match_sum(Op& op, Value* a, Value* b);
/// What `x` was before equal zeros at both ends of its last axes, at most half of `kernel`, and
/// their numbers: how exporters write a pool that counts its pads.
Value* unpadded(Op& op, Value* x, const Shape& kernel, Shape& pads);
/// The last elements of an axis in front of the first: a roll, of two axes if `x` was rolled along
/// another one.
Value* match_roll(Op& op, const std::vector<Value*>& parts, std::int64_t axis);
/// x[i, j, ...]: rows of `x`, which is a view of a tensor with its first axes joined, by the sum of
/// an index of each axis times how many rows lie behind it.
Value* match_indices(Op& op, Value* x, Value* index);
/// (x - mean) / sqrt(var + eps), and x * clip(x + 3, 0, 6) / 6.
Value* match_quotient(Op& op, Value* a, Value* b);

}  // namespace npu::onnx

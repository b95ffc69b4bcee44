// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

void lower_dequantize(Lowering& lowering, const BoundNode& node);
void lower_quantize(Lowering& lowering, const BoundNode& node);
/// A product of integers of 8 bits whose result is int32, with what makes its factors.
Lowered<Done> lower_integer_group(Lowering& lowering, const GroupContext& context);
/// An op on dequantized tensors, functions behind it, and a quantization.
Lowered<Done> lower_quantized_group(Lowering& lowering, const GroupContext& context);

}  // namespace npu::onednn

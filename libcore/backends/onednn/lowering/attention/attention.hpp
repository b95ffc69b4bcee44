// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

void lower_attention(Lowering& lowering, const GroupContext& context, const BoundNode& node);
/// npu.length_mask
void lower_length_mask(Lowering& lowering, const BoundNode& node);
/// The opposite of truth, which for a mask of lengths follows from these, too; and of integers.
void lower_opposite(Lowering& lowering, const GroupContext& context, const BoundNode& node);
/// Product, scale, mask, softmax and product.
Lowered<Done> lower_attention_group(Lowering& lowering, const GroupContext& context);
/// The same over a cache, with a cap, a bias and sinks.
Lowered<Done> lower_cached_attention_group(Lowering& lowering, const GroupContext& context);

}  // namespace npu::onednn

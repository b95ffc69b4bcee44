// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

void lower_recurrence(Lowering& lowering, const GroupContext& context, const BoundNode& node);

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// Throws Error for a sub-IR that no lowering function should see: kUnsupported for a tensor with
/// an extent that oneDNN does not count, kInvalidGraph for a result whose stated shape is not the
/// one that the operands give.
void check_shapes(const Graph& graph);

}  // namespace npu::onednn

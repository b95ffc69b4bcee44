// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/passes/align.hpp"
#include "npu/support/ids.hpp"

namespace npu::align {

/// Brings npu.fusion up to date: the names that groups list follow their members, and each of
/// `splits` becomes several entries. Nodes have their new groups already.
void update_fusion(Graph& graph, const std::vector<AlignSplit>& splits);

}  // namespace npu::align

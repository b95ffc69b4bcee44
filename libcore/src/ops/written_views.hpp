// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Warns of each in-place node that writes into a view where a later node, or an output, reads
/// another tensor with the same elements: in PyTorch it would see the change, and here, where such
/// nodes are functional (npu-ir(5)), it does not. O(nodes), and at most some thousand views for
/// each in-place node.
void warn_of_written_views(const Graph& graph, Diagnostics& diagnostics);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Adds an error for every broken rule that concerns the graph as a whole: a cycle, an order that
/// is not topological, a getitem whose index is out of range. Rules about single mentions (types,
/// shapes that disagree) are the reader's. O(nodes + edges).
void verify_graph(const Graph& graph, Diagnostics& diagnostics);

}  // namespace npu

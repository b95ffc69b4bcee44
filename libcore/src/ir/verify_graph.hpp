// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Adds an error for every violated rule that concerns the graph as a whole: a cycle, an order that
/// is not topological, a getitem whose index is out of range. The reader checks rules about single
/// mentions (types, shapes that disagree). O(nodes + edges).
void verify_graph(const Graph& graph, Diagnostics& diagnostics);

}  // namespace npu

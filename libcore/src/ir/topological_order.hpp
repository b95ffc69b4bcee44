// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// Orders nodes so that producers precede consumers; ready nodes are taken in list order (Kahn's
/// algorithm with a heap, O((nodes + edges) log nodes)). Nodes on or after a cycle are left out.
std::vector<NodeId> topological_order(const Graph& graph);

/// One cycle, in edge order, or empty if there is none.
std::vector<NodeId> find_cycle(const Graph& graph);

}  // namespace npu

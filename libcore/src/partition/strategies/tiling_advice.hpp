// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/subgraph.hpp"
#include "npu/partition/strategies.hpp"

namespace npu {

/// The tiles with the least traffic of which one needs at most `limit` bytes.
TilingAdvice advise_tiling(const Graph& graph, BoundaryFinder& boundaries,
                           const std::vector<NodeId>& nodes, double limit);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "npu/ir/graph.hpp"

namespace npu {

/// The most bytes that a partition of these nodes, run in this order, needs at once: its weights
/// and inputs all the time, each result from its node to its last reader or, where another
/// partition or the graph's outputs need it, to the end. Results of aliases share the memory of
/// their operand. Never smaller for more nodes behind. O(size of the set).
std::int64_t working_set_bytes(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "npu/ir/graph.hpp"

namespace npu {

/// Peak bytes of a partition of these nodes, run in this order: its weights and inputs are live all
/// the time, each result from its node to its last reader or, if another partition or the graph's
/// outputs need it, to the end. Results of aliases share the memory of their operand. Appending
/// nodes never lowers it. O(size of the set).
std::int64_t working_set_bytes(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace npu

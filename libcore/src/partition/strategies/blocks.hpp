// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The blocks that a model is built of, in an order in which they can run, the nodes of each in
/// list order. At a depth of 2 and more, their sub-blocks. Every node is in exactly one.
std::vector<std::vector<NodeId>> find_blocks(const Graph& graph, std::int64_t depth);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The parts that a model is built of, in an order in which they can run; each in list order. At a
/// depth of 2 and more, parts of them. Every node is in exactly one.
std::vector<std::vector<NodeId>> find_blocks(const Graph& graph, std::int64_t depth);

}  // namespace npu

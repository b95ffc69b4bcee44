// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The nodes between integers of 8 bits, float64 in between, that `node` is one of: dequantizations
/// of 8-bit integers and of constants, what computes with their results, and quantizations to 8
/// bits, or conversions to float32. So do models that come with quantized operators state what is
/// exact in their definition; in float32 or on the integers themselves results differ by a step at
/// most. Empty if the node has no tensor of float64, or is connected by such ones to an input or
/// output of the graph, to anything else, or to more than 64 nodes. O(nodes of the region).
std::vector<NodeId> byte_region(const Graph& graph, NodeId node);

}  // namespace npu

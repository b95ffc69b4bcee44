// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "gnn/model/staged_model.hpp"
#include "npu/ir/graph.hpp"

namespace npu::gnn {

/// The op that aggregates rows over edges, which lie together by target (npu-ir(5)).
inline constexpr std::string_view kSegmentReduce = "npu.segment_reduce";

/// Inputs of a block in the place of edge_index, where the edges lie in rows by target (CSR):
/// offsets of the rows as int64 [n + 1], sources and targets of the edges as int32 [m].
inline constexpr std::string_view kOffsetInput = "edge_index@offsets";
inline constexpr std::string_view kSourceInput = "edge_index@sources";
inline constexpr std::string_view kTargetInput = "edge_index@targets";

/// Makes every aggregation of a block one npu.segment_reduce, for devices that aggregate in memory
/// of their own: what is gathered for a sum and its factors by edge become its operands, a division
/// by the number of edges a mean, and factors that are a softmax over the edges of a target its
/// scores. What nothing reads any more stays. False if the block reads no edges. O(nodes).
bool segment_nodes(Graph& block, const BlockShape& shape);

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/part_tree.hpp"
#include "gnn/exchange/rank_plan.hpp"

namespace npu::gnn {

/// Calls `action` for every ordered pair of ranks with edges between them, by `from`, then `to`.
/// O(edges log edges).
void for_each_cut(
    const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
    const std::vector<std::int32_t>& rank_of_part, std::int32_t rank_count,
    const std::function<void(std::int32_t from, std::int32_t to, const CutEdges&)>& action);

/// Calls `action` for every part with edges from others, ascending, with all edges from these.
/// Holds the edges of one part at a time. O(edges log edges).
void for_each_part_cut(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                       std::int32_t part_count,
                       const std::function<void(std::int32_t part, const CutEdges&)>& action);

/// The fewest rows that cover the edges, each an edge of a largest matching.
std::vector<CrossingRow> fewest_rows(const CutEdges& cut);

/// The sums over edges from other parts that the nodes of a rank need before a layer.
struct SumCount {
  std::int64_t rows = 0;   ///< one for each node and each sibling above its part with edges into it
  std::int64_t edges = 0;  ///< that they add up, at most
};
/// By rank. O(edges).
std::vector<SumCount> count_sums(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                                 const PartTree& tree,
                                 const std::vector<std::int32_t>& rank_of_part,
                                 std::size_t rank_count);

/// Rows of a part in memory: of its nodes, and what they read besides.
struct PartRows {
  std::int64_t owned = 0;
  std::int64_t others = 0;
};
/// Of all parts of a plan. O(nodes + edges).
std::vector<PartRows> part_rows(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                                const PartTree& tree, bool sums);

/// Sets PlannedRank::memory_bytes and ::streamed_bytes of every rank.
void predict_memory(const RowWidths& widths, const std::vector<SumCount>& sums,
                    const std::vector<PartRows>& parts, RankPlan& plan);

}  // namespace npu::gnn

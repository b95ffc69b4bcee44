// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/csr/csr_graph.hpp"
#include "npu/gnn/staged_model.hpp"

namespace npu::gnn {

/// An edge between two ranks, and what crosses for it. The edges of a pair form a matching with as
/// many edges as rows cross, which proves that no fewer rows can: each of them needs one.
struct CrossingRow {
  std::int32_t source = 0;
  std::int32_t target = 0;
  bool is_sum = false;  ///< the sum for `target` crosses; false: the features of `source`
  bool operator==(const CrossingRow&) const = default;
};

/// What one rank sends to another before every layer.
struct RankPair {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t edges = 0;    ///< from nodes of one to nodes of the other; parallel ones once
  std::int64_t sources = 0;  ///< nodes that they come from
  std::int64_t targets = 0;  ///< nodes that they lead to
  std::int64_t rows = 0;     ///< that cross
  std::vector<CrossingRow> cover = {};  ///< empty if only features cross: one row for each source
  bool operator==(const RankPair&) const = default;
};

/// A process of a plan for several, and what it has to hold.
struct RankShare {
  std::vector<std::int32_t> parts;
  std::int64_t nodes = 0;         ///< that it owns
  std::int64_t edges = 0;         ///< into them
  std::int64_t rows_in = 0;       ///< that it receives before every layer
  std::int64_t rows_out = 0;      ///< that it sends
  std::int64_t memory_bytes = 0;  ///< of its graph, the rows between layers and those that cross
  bool operator==(const RankShare&) const = default;
};

/// How the parts of a plan are spread over processes.
///
/// The parts of all ranks, one after another, are the leaves of a binary tree whose every node
/// halves its leaves (the first half is the longer one), and the parts of a rank are those of one
/// node. A sum over the edges into a node adds up along this tree, so it has the same bits for any
/// number of ranks.
struct RankPlan {
  bool sums = false;             ///< rows cross as features or as sums; false: as features only
  std::string features_because;  ///< why, though sums were asked for; empty: they were not
  std::vector<std::int64_t> row_bytes;  ///< of a row that crosses, by layer
  std::vector<RankShare> ranks;
  std::vector<RankPair> pairs;  ///< by `from`, then `to`; those without edges are left out
  bool operator==(const RankPlan&) const = default;

  std::int64_t rows() const noexcept;   ///< of all pairs
  std::int64_t halo() const noexcept;   ///< rows if only features crossed
  std::int64_t bytes() const noexcept;  ///< of all pairs, over all layers
  /// The parts of all ranks in their order.
  std::vector<std::int32_t> part_order() const;
};

/// The widths of the rows between layers: what goes into the first, second, ... and comes out of
/// the last.
struct RowWidths {
  std::vector<std::int64_t> features;
};
RowWidths row_widths(const StagedModel& model);

struct RankRequest {
  std::int32_t rank_count = 1;
  bool sums = true;
  std::string features_because = {};  ///< why not `sums`
};

/// Groups the parts of a graph by the edges between them, gives each rank a group, and finds what
/// crosses between ranks. The order of the parts does not depend on the number of ranks. Throws
/// Error kUsage for more ranks than parts. O(edges log edges), and a flow for every pair of ranks.
RankPlan plan_ranks(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                    std::int32_t part_count, const RowWidths& widths, const RankRequest& request);

}  // namespace npu::gnn

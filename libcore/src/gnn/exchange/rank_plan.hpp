// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/exchange/rank_links.hpp"
#include "gnn/model/staged_model.hpp"

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
  std::optional<RankLink> link = {};    ///< that was measured; of all pairs or of none
  bool operator==(const RankPair&) const = default;
};

/// A process of a plan for several, and what it has to hold.
struct PlannedRank {
  std::vector<std::int32_t> parts;
  std::int64_t nodes = 0;         ///< that it owns
  std::int64_t edges = 0;         ///< into them
  std::int64_t rows_in = 0;       ///< that it receives before every layer
  std::int64_t rows_out = 0;      ///< that it sends
  std::int64_t memory_bytes = 0;  ///< of its graph, the rows between layers and those that cross
  /// The same if it streams: its graph, the rows of one part and those that cross.
  std::int64_t streamed_bytes = 0;
  std::vector<double> compute_ms = {};  ///< predicted for its parts on its devices, by layer
  bool operator==(const PlannedRank&) const = default;
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
  std::vector<std::int64_t> row_bytes;  ///< of a row that crosses, by layer; 0: none does
  std::vector<PlannedRank> ranks;
  std::vector<RankPair> pairs;  ///< by `from`, then `to`; those without edges are left out
  /// The most bytes that a rank may hold; 0: no limit. One that has to hold more keeps rows in
  /// files and streams them, part by part.
  std::int64_t memory_limit = 0;
  std::optional<RankLink> link;     ///< the same for all pairs; nothing if pairs have their own
  std::vector<double> exchange_ms;  ///< predicted_exchange_ms; empty if nothing is known of links
  bool operator==(const RankPlan&) const = default;

  bool streams(std::size_t rank) const noexcept {
    return memory_limit > 0 && ranks[rank].memory_bytes > memory_limit;
  }
  /// Whether it is known how long a message between two ranks takes.
  bool knows_links() const noexcept {
    return link.has_value() || (!pairs.empty() && pairs.front().link.has_value());
  }
  std::int64_t rows() const noexcept;   ///< of all pairs
  std::int64_t halo() const noexcept;   ///< rows if only features crossed
  std::int64_t bytes() const noexcept;  ///< of all pairs, over all layers
  /// Predicted for all ranks: every layer takes its exchange, if there is a link, and then what the
  /// slowest rank computes; what an exchange hides behind that is not taken off. O(ranks * layers).
  double makespan_ms() const noexcept;
  /// The parts of all ranks in their order.
  std::vector<std::int32_t> part_order() const;
  /// The rank of each part.
  std::map<std::int64_t, std::size_t> ranks_of_parts() const;
};

/// The widths of the rows between layers: what goes into the first, second, ... and comes out of
/// the last.
struct RowWidths {
  std::vector<std::int64_t> features;
  std::vector<char> reads_edges = {};  ///< by layer; empty: all do
  /// Bytes of a row that crosses before a layer, from 0; none do before one without edges.
  std::int64_t row_bytes(std::size_t layer) const {
    return reads_edges.empty() || reads_edges[layer] != 0 ? 4 * features[layer] : 0;
  }
};
RowWidths row_widths(const StagedModel& model);

/// What the exchange before each layer takes by the plan's links, which it knows, in milliseconds:
/// all messages that a rank sends and receives one after another, of the rank that takes longest.
/// O(pairs) for each layer.
std::vector<double> predicted_exchange_ms(const RankPlan& plan);

struct RankRequest {
  std::int32_t rank_count = 1;
  bool sums = true;
  bool in_order = false;  ///< the parts are the leaves of their tree in the order of their numbers
  std::string features_because = {};  ///< why not `sums`
  std::optional<RankLink> link = {};
  std::optional<RankLinks> links = {};  ///< of each pair, instead of `link`
  std::int64_t memory_limit = 0;        ///< RankPlan::memory_limit
};

/// Groups the parts of a graph by the edges between them, gives each rank a group, and finds what
/// crosses between ranks. The order of the parts does not depend on the number of ranks. Throws
/// Error kUsage for more ranks than parts or than the links are of, and kInfeasible if a rank has
/// to hold more than the limit even if it streams. O(edges log edges), and a flow for every pair of
/// ranks.
RankPlan plan_ranks(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                    std::int32_t part_count, const RowWidths& widths, const RankRequest& request);

}  // namespace npu::gnn

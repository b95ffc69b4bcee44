// SPDX-License-Identifier: Apache-2.0
// Lays out what one rank holds, sends and receives. Both ends of a pair number its rows alike:
// features by source, then sums by target. O(nodes + edges into the rank's nodes, and into those
// whose sums it sends), up to logarithms; if features alone cross, O(nodes + edges of the graph),
// since the plan does not list who reads a row.
#include "gnn/exchange/rank_layout.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// What crosses between two ranks: nodes, ascending.
struct Crossing {
  std::vector<std::int32_t> features;
  std::vector<std::int32_t> sums;
  std::int64_t first_sum = 0;  // the row of the first sum, if it comes in
  std::int64_t rows() const { return static_cast<std::int64_t>(features.size() + sums.size()); }
};

void put_in_order(std::vector<std::int32_t>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

class Layouter {
 public:
  Layouter(const RankPlan& plan, const GraphRows& in_edges,
           const std::vector<std::int32_t>& part_of, std::int32_t rank, const std::string& file,
           bool is_max)
      : plan_(plan),
        graph_(in_edges),
        part_of_(part_of),
        rank_(rank),
        file_(file),
        is_max_(is_max),
        tree_(plan_.part_order()),
        rank_of_part_(index_of(tree_.root().size()), 0),
        leaves_(plan_.ranks.size()),
        row_of_(part_of.size(), -1) {
    std::int32_t place = 0;
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      leaves_[r].begin = place;
      for (const std::int32_t part : plan_.ranks[r].parts) {
        rank_of_part_[index_of(part)] = static_cast<std::int32_t>(r);
        ++place;
      }
      leaves_[r].end = place;
    }
    layout_.parts.resize(rank_of_part_.size());
    if (!is_max) return;
    layout_.sent.take_largest();
    layout_.local.take_largest();
  }

  RankLayout lay_out() {
    own_nodes();
    find_crossings();
    number_received();
    add_sent();
    std::size_t first = 0;  // own nodes are together by part
    for (const std::int32_t part : plan_.ranks[index_of(rank_)].parts)
      first = add_part(part, first);
    finish();
    return std::move(layout_);
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kInvalidGraph, text + "; npu-plan --verify says more",
                {.file = file_, .pointer = "/ranks/pairs"});
  }

  std::int32_t part(std::int32_t node) const { return part_of_[index_of(node)]; }
  std::int32_t rank_of(std::int32_t node) const { return rank_of_part_[index_of(part(node))]; }

  // Part by part, so that the rows of a part are together.
  void own_nodes() {
    std::vector<std::vector<std::int32_t>> members(layout_.parts.size());
    for (std::size_t v = 0; v < part_of_.size(); ++v) {
      const auto node = static_cast<std::int32_t>(v);
      if (rank_of(node) == rank_) members[index_of(part(node))].push_back(node);
    }
    for (const std::int32_t p : plan_.ranks[index_of(rank_)].parts) {
      const auto& nodes = members[index_of(p)];
      layout_.own_nodes.insert(layout_.own_nodes.end(), nodes.begin(), nodes.end());
    }
    for (std::size_t row = 0; row < layout_.own_nodes.size(); ++row) {
      row_of_[index_of(layout_.own_nodes[row])] = static_cast<std::int32_t>(row);
    }
  }

  void find_crossings() {
    if (plan_.sums) {
      for (const RankPair& pair : plan_.pairs) {
        if (pair.from != rank_ && pair.to != rank_) continue;
        Crossing& crossing = pair.to == rank_ ? in_[pair.from] : out_[pair.to];
        for (const CrossingRow& row : pair.cover) take(row, pair, crossing);
      }
    } else {
      for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
        const std::int32_t to = rank_of(v);
        for (const std::int32_t u : graph_.row(v)) {
          const std::int32_t from = rank_of(u);
          if (from == to) continue;
          if (to == rank_) in_[from].features.push_back(u);
          if (from == rank_) out_[to].features.push_back(u);
        }
      }
    }
    for (auto* crossings : {&in_, &out_}) {
      for (auto& [other, crossing] : *crossings) {
        put_in_order(crossing.features);
        put_in_order(crossing.sums);
      }
    }
  }

  void take(const CrossingRow& row, const RankPair& pair, Crossing& crossing) const {
    const std::int32_t nodes = graph_.node_count();
    if (row.source >= nodes || row.target >= nodes || rank_of(row.source) != pair.from ||
        rank_of(row.target) != pair.to) {
      refuse("the cover of ranks " + std::to_string(pair.from) + " and " + std::to_string(pair.to) +
             " has an edge of other ranks");
    }
    (row.is_sum ? crossing.sums : crossing.features)
        .push_back(row.is_sum ? row.target : row.source);
  }

  // Received rows are numbered behind the owned ones.
  void number_received() {
    for (auto& [from, crossing] : in_) {
      std::int64_t row = layout_.own_count() + layout_.received;
      for (const std::int32_t u : crossing.features) {
        row_of_[index_of(u)] = static_cast<std::int32_t>(row++);
        if (!plan_.sums) layout_.halo_nodes.push_back(u);
      }
      crossing.first_sum = row;
      layout_.from.ranks.push_back(from);
      layout_.from.rows.push_back(crossing.rows());
      layout_.received += crossing.rows();
    }
    check_rows(layout_.own_count() + layout_.received);
  }

  // Rows are numbered in 32 bits.
  void check_rows(std::int64_t count) const {
    constexpr std::int64_t kMostRankRows = std::numeric_limits<std::int32_t>::max() - 1;
    if (count > kMostRankRows) refuse("a rank has too many rows; plan for more --ranks");
  }

  void add_sent() {
    const PartTree::Node own = leaves_[index_of(rank_)];
    for (const auto& [to, crossing] : out_) {
      layout_.to.ranks.push_back(to);
      layout_.to.rows.push_back(crossing.rows());
      for (const std::int32_t u : crossing.features) {
        layout_.sent.add(own, {{own.begin, row_of_[index_of(u)]}});
      }
      for (const std::int32_t v : crossing.sums) {
        std::vector<RowSums::Term> terms;
        for (const std::int32_t u : graph_.row(v)) {
          if (rank_of(u) != rank_) continue;
          terms.push_back({tree_.place(part(u)), row_of_[index_of(u)]});
        }
        if (terms.empty()) {
          refuse("the cover has a sum for node " + std::to_string(v) +
                 ", which has no edge from rank " + std::to_string(rank_));
        }
        layout_.sent.add(own, std::move(terms));
      }
    }
  }

  // The row of the sum for a node that another rank makes; -1: it makes none.
  std::int32_t sum_row(std::int32_t from, std::int32_t v) const {
    const auto crossing = in_.find(from);
    if (crossing == in_.end()) return -1;
    const std::vector<std::int32_t>& sums = crossing->second.sums;
    const auto sum = std::lower_bound(sums.begin(), sums.end(), v);
    if (sum == sums.end() || *sum != v) return -1;
    return static_cast<std::int32_t>(crossing->second.first_sum + (sum - sums.begin()));
  }

  // The row that stands for an edge from another part: a sum that another rank made stands for all
  // edges from there.
  RowSums::Term term_of(std::int32_t u, std::int32_t v, std::int32_t sum) const {
    if (sum >= 0) return {leaves_[index_of(rank_of(u))].begin, sum};
    if (row_of_[index_of(u)] < 0) {
      refuse("nothing crosses for the edge from node " + std::to_string(u) + " to node " +
             std::to_string(v));
    }
    return {tree_.place(part(u)), row_of_[index_of(u)]};
  }

  // Adds the part whose nodes begin at row `first`, and returns where they end.
  std::size_t add_part(std::int32_t number, std::size_t first) {
    Subgraph& own = layout_.parts[index_of(number)];
    std::size_t end = first;
    while (end < layout_.own_nodes.size() && part(layout_.own_nodes[end]) == number) ++end;
    const std::span nodes(layout_.own_nodes.data() + first, end - first);
    own.owned = static_cast<std::int64_t>(nodes.size());
    own.offsets.push_back(0);
    std::int64_t edges = 0;
    for (const std::int32_t v : nodes) edges += graph_.degree(v);
    own.offsets.reserve(nodes.size() + 1);
    own.sources.reserve(index_of(edges));
    const auto local_of = [&](std::int32_t row) {
      const std::size_t place = row == kZeros ? 0 : index_of(row) + 1;
      if (local_of_row_.size() <= place) local_of_row_.resize(place + 1, -1);
      std::int32_t& local = local_of_row_[place];
      if (local < 0) {
        local = static_cast<std::int32_t>(own.nodes.size());
        own.nodes.push_back(row);
      }
      return local;
    };
    for (const std::int32_t v : nodes) local_of(row_of_[index_of(v)]);
    for (const std::int32_t v : nodes) {
      for (const std::int32_t row : plan_.sums ? summed_rows(v) : rows_read(v)) {
        own.sources.push_back(local_of(row));
      }
      own.offsets.push_back(static_cast<std::int64_t>(own.sources.size()));
    }
    own.nodes.shrink_to_fit();
    for (const std::int32_t row : own.nodes)
      local_of_row_[index_of(row == kZeros ? 0 : row + 1)] = -1;
    return end;
  }

  std::vector<std::int32_t> rows_read(std::int32_t v) const {
    std::vector<std::int32_t> rows;
    for (const std::int32_t u : graph_.row(v)) rows.push_back(row_of_[index_of(u)]);
    return rows;
  }

  // By edge: the source's row if it is of the same part, else the sum of the sibling that the edge
  // comes from, once, and then zeros (kZeros until the number of sums is known).
  std::vector<std::int32_t> summed_rows(std::int32_t v) {
    const std::int32_t own_place = tree_.place(part(v));
    std::map<std::int32_t, std::vector<RowSums::Term>> siblings;  // by depth
    std::map<std::int32_t, std::int32_t> row_of_sibling;
    std::set<std::int32_t> sums;  // of other ranks, which are terms already
    std::vector<std::int32_t> rows;
    for (const std::int32_t u : graph_.row(v)) {
      if (part(u) == part(v)) {
        rows.push_back(row_of_[index_of(u)]);
        continue;
      }
      const std::int32_t depth = tree_.common_depth(own_place, tree_.place(part(u)));
      const std::int64_t row = layout_.own_count() + layout_.local.size() +
                               static_cast<std::int64_t>(row_of_sibling.size());
      check_rows(row);
      const auto next = static_cast<std::int32_t>(row);
      const auto [own_row, is_first] = row_of_sibling.emplace(depth, next);
      rows.push_back(is_first || is_max_ ? own_row->second : kZeros);
      const std::int32_t sum = sum_row(rank_of(u), v);
      const RowSums::Term term = term_of(u, v, sum);
      if (sum < 0 || sums.insert(term.row).second) siblings[depth].push_back(term);
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> order;  // row, depth
    for (const auto& [depth, row] : row_of_sibling) order.emplace_back(row, depth);
    std::sort(order.begin(), order.end());
    for (const auto& [row, depth] : order) {
      layout_.local.add(tree_.sibling(own_place, depth), std::move(siblings[depth]));
    }
    return rows;
  }

  void finish() {
    layout_.holds_sums = plan_.sums;
    layout_.sent.shrink();
    layout_.local.shrink();
    if (!plan_.sums) {
      layout_.row_count = layout_.own_count() + layout_.received;
      layout_.late.assign(index_of(layout_.row_count), 1);
      std::fill_n(layout_.late.begin(), layout_.own_count(), 0);
      return;
    }
    const std::int64_t sums = layout_.local.size();
    layout_.row_count = layout_.own_count() + sums + (sums > 0 ? 1 : 0);
    check_rows(layout_.row_count);
    const std::vector<char> reads = layout_.local.reads_from(layout_.own_count());
    layout_.late.assign(index_of(layout_.row_count), 0);
    std::copy(reads.begin(), reads.end(), layout_.late.begin() + layout_.own_count());
    for (Subgraph& own : layout_.parts) {
      for (std::int32_t& row : own.nodes) {
        if (row == kZeros) row = static_cast<std::int32_t>(layout_.row_count - 1);
      }
    }
  }

  static constexpr std::int32_t kZeros = -2;

  const RankPlan& plan_;
  const GraphRows& graph_;
  const std::vector<std::int32_t>& part_of_;
  std::int32_t rank_;
  const std::string& file_;
  bool is_max_;
  PartTree tree_;
  std::vector<std::int32_t> rank_of_part_;
  std::vector<PartTree::Node> leaves_;      // of each rank
  std::vector<std::int32_t> row_of_;        // by node: owned or received features; or -1
  std::map<std::int32_t, Crossing> in_;     // by rank
  std::map<std::int32_t, Crossing> out_;    // by rank
  std::vector<std::int32_t> local_of_row_;  // in the part at hand, by row + 1; 0 is kZeros; or -1
  RankLayout layout_;
};

}  // namespace

RankLayout lay_out_rank(const RankPlan& plan, const GraphRows& in_edges,
                        const std::vector<std::int32_t>& part_of, std::int32_t rank,
                        const std::string& file, bool is_max) {
  return Layouter(plan, in_edges, part_of, rank, file, is_max).lay_out();
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Checks what a plan says of its ranks, without the code that found it: edges between ranks are
// counted with sets, covers and matchings are checked by definition, and the largest matching is
// computed anew by another algorithm than the flow that gave the plan's. O(edges log edges) and the
// matchings.
#include "gnn/plan/verify/verify_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/part_tree.hpp"
#include "gnn/exchange/rank_cut.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

class RankVerifier {
 public:
  RankVerifier(const RankPlan& plan, const RankComplaint& complain)
      : plan_(plan), complain_(complain) {}

  void check(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
             const RowWidths& widths) {
    const std::vector<std::int32_t> order = plan_.part_order();
    std::vector<std::int32_t> rank_of_part(order.size(), 0);
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      for (const std::int32_t part : plan_.ranks[r].parts) {
        rank_of_part[index_of(part)] = static_cast<std::int32_t>(r);
      }
    }
    expected_ = plan_;
    for (PlannedRank& rank : expected_.ranks) rank = {.parts = std::move(rank.parts)};
    count(in_edges, part_of, rank_of_part);
    for (const auto& [ranks, edges] : cuts_) check_pair(ranks, edges);
    for (std::size_t i = 0; i < plan_.pairs.size(); ++i) {
      const RankPair& pair = plan_.pairs[i];
      if (!cuts_.contains({pair.from, pair.to})) {
        complain_("/pairs/" + std::to_string(i), "there is no edge from rank " +
                                                     std::to_string(pair.from) + " to rank " +
                                                     std::to_string(pair.to));
      }
    }
    const PartTree tree(order);
    predict_memory(widths, count_sums(in_edges, part_of, tree, rank_of_part, plan_.ranks.size()),
                   part_rows(in_edges, part_of, tree, plan_.sums), expected_);
    check_shares();
    check_row_bytes(widths);
    check_exchange();
  }

 private:
  void count(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
             const std::vector<std::int32_t>& rank_of_part) {
    for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
      const std::int32_t to = rank_of_part[index_of(part_of[index_of(v)])];
      ++expected_.ranks[index_of(to)].nodes;
      for (const std::int32_t u : in_edges.row(v)) {
        ++expected_.ranks[index_of(to)].edges;
        const std::int32_t from = rank_of_part[index_of(part_of[index_of(u)])];
        if (from != to) cuts_[{from, to}].emplace(u, v);
      }
    }
  }

  void compare(const std::string& pointer, const char* key, std::int64_t stated,
               std::int64_t counted) const {
    if (stated == counted) return;
    complain_(pointer + "/" + key, "counted as " + std::to_string(counted) + ", the plan says " +
                                       std::to_string(stated));
  }

  void check_pair(const std::pair<std::int32_t, std::int32_t>& ranks, const EdgeSet& edges) {
    // The reader has refused pairs out of order.
    const auto name = [](const RankPair& pair) { return std::pair(pair.from, pair.to); };
    const auto stated = std::lower_bound(
        plan_.pairs.begin(), plan_.pairs.end(), ranks,
        [&](const RankPair& pair, const auto& wanted) { return name(pair) < wanted; });
    if (stated == plan_.pairs.end() || name(*stated) != ranks) {
      complain_("/pairs", "nothing is said of rank " + std::to_string(ranks.first) + " and rank " +
                              std::to_string(ranks.second) + ", which have " +
                              std::to_string(edges.size()) + " edges between them");
      return;
    }
    const std::string pointer = "/pairs/" + std::to_string(stated - plan_.pairs.begin());
    std::set<std::int32_t> sources;
    std::set<std::int32_t> targets;
    for (const auto& [u, v] : edges) {
      sources.insert(u);
      targets.insert(v);
    }
    compare(pointer, "edges", stated->edges, static_cast<std::int64_t>(edges.size()));
    compare(pointer, "sources", stated->sources, static_cast<std::int64_t>(sources.size()));
    compare(pointer, "targets", stated->targets, static_cast<std::int64_t>(targets.size()));
    const std::int64_t rows =
        plan_.sums ? least_rows(edges) : static_cast<std::int64_t>(sources.size());
    compare(pointer, "rows", stated->rows, rows);
    if (plan_.sums) check_cover(pointer + "/cover", stated->cover, edges, complain_);
    expected_.ranks[index_of(ranks.first)].rows_out += rows;
    expected_.ranks[index_of(ranks.second)].rows_in += rows;
  }

  void check_shares() const {
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      const std::string pointer = "/ranks/" + std::to_string(r);
      const PlannedRank& stated = plan_.ranks[r];
      const PlannedRank& counted = expected_.ranks[r];
      compare(pointer, "nodes", stated.nodes, counted.nodes);
      compare(pointer, "edges", stated.edges, counted.edges);
      compare(pointer, "rows_in", stated.rows_in, counted.rows_in);
      compare(pointer, "rows_out", stated.rows_out, counted.rows_out);
      compare(pointer, "memory_bytes", stated.memory_bytes, counted.memory_bytes);
      compare(pointer, "streamed_bytes", stated.streamed_bytes, counted.streamed_bytes);
      if (expected_.streams(r) && counted.streamed_bytes > plan_.memory_limit) {
        complain_(pointer, "the rank has to hold " + std::to_string(counted.streamed_bytes) +
                               " bytes even if it streams its rows, the limit is " +
                               std::to_string(plan_.memory_limit));
      }
    }
  }

  void check_row_bytes(const RowWidths& widths) const {
    if (plan_.row_bytes.size() + 1 != widths.features.size()) {
      complain_("/row_bytes", "the plan has " + std::to_string(plan_.row_bytes.size()) +
                                  " layers, the model " +
                                  std::to_string(widths.features.size() - 1));
      return;
    }
    for (std::size_t l = 0; l < plan_.row_bytes.size(); ++l) {
      compare("/row_bytes", std::to_string(l).c_str(), plan_.row_bytes[l], widths.row_bytes(l));
    }
  }

  // By what was counted, for the bytes that the plan says.
  void check_exchange() const {
    if (!plan_.knows_links()) return;
    const std::vector<double> counted = predicted_exchange_ms(expected_);
    if (plan_.exchange_ms.size() != counted.size()) {
      complain_("/exchange_ms", "expected a time for each of " + std::to_string(counted.size()) +
                                    " layers, the plan has " +
                                    std::to_string(plan_.exchange_ms.size()));
      return;
    }
    for (std::size_t l = 0; l < counted.size(); ++l) {
      const double stated = plan_.exchange_ms[l];
      if (std::abs(stated - counted[l]) <= 1e-6 + 1e-9 * counted[l]) continue;
      complain_("/exchange_ms/" + std::to_string(l),
                "recomputed as " + std::to_string(counted[l]) + " ms");
    }
  }

  const RankPlan& plan_;
  const RankComplaint& complain_;
  RankPlan expected_;
  std::map<std::pair<std::int32_t, std::int32_t>, EdgeSet> cuts_;
};

}  // namespace

std::int64_t least_rows(const EdgeSet& edges) {
  return largest_matching(CutEdges::of({edges.begin(), edges.end()}));
}

void check_cover(const std::string& pointer, const std::vector<CrossingRow>& cover,
                 const EdgeSet& edges, const RankComplaint& complain) {
  std::set<std::int32_t> matched_sources;
  std::set<std::int32_t> matched_targets;
  std::set<std::int32_t> features;
  std::set<std::int32_t> sums;
  for (const CrossingRow& row : cover) {
    const std::string edge = std::to_string(row.source) + " -> " + std::to_string(row.target);
    if (!edges.contains({row.source, row.target})) {
      complain(pointer, "there is no edge " + edge + " between the two sides");
    }
    if (!matched_sources.insert(row.source).second || !matched_targets.insert(row.target).second) {
      complain(pointer, "a node of the edge " + edge + " is in the matching twice");
    }
    if (row.is_sum) {
      sums.insert(row.target);
    } else {
      features.insert(row.source);
    }
  }
  for (const auto& [u, v] : edges) {
    if (features.contains(u) || sums.contains(v)) continue;
    complain(pointer,
             "nothing crosses for the edge " + std::to_string(u) + " -> " + std::to_string(v));
    return;
  }
}

void verify_ranks(const RankPlan& plan, const CsrGraph& in_edges,
                  const std::vector<std::int32_t>& part_of, const RowWidths& widths,
                  const RankComplaint& complain) {
  RankVerifier(plan, complain).check(in_edges, part_of, widths);
}

void verify_compute(const RankPlan& plan, std::size_t layer, const std::vector<ReplayTask>& tasks,
                    const std::vector<std::int64_t>& part_at, const std::vector<double>& switch_ms,
                    const RankComplaint& complain) {
  const std::map<std::int64_t, std::size_t> rank_of = plan.ranks_of_parts();
  std::vector<std::vector<ReplayTask>> of_rank(plan.ranks.size());
  for (const ReplayTask& task : tasks) {
    const auto rank = rank_of.find(part_at[task.position]);
    if (rank != rank_of.end()) of_rank[rank->second].push_back(task);
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const std::vector<double>& stated = plan.ranks[r].compute_ms;
    const double counted = replay_clusters(of_rank[r], switch_ms).makespan_ms;
    if (layer < stated.size() && std::abs(stated[layer] - counted) <= 1e-5 + 1e-6 * counted) {
      continue;
    }
    complain("/ranks/" + std::to_string(r) + "/compute_ms/" + std::to_string(layer),
             "recomputed as " + std::to_string(counted) + " ms");
  }
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Parts for ranks: halves of halves.
//
// Parts that METIS cuts all at once do not go together well: even the best of all ways to put eight
// of them into two groups lets more rows cross than a cut into two. Here the tree over the parts
// comes first, and each of its nodes is a cut of its own. METIS minimises edges, which is not what
// crosses, so each is tried with several seeds and several goals of balance, and what is kept is
// the one with the fewest rows among those that leave the halves the room that parts have.
#include "gnn/exchange/nested_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <span>
#include <utility>

#include "csr/graph_weights.hpp"
#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/part_tree.hpp"
#include "npu/support/ids.hpp"
#include "support/forked_jobs.hpp"
#include "support/mixed.hpp"
#include "support/thread_count.hpp"

namespace npu::gnn {
namespace {

// In all cuts of one node of the tree with one goal, for a tree of one level.
constexpr std::int64_t kEdgesToTry = 2'500'000;
constexpr std::int64_t kFewestSeeds = 2;
constexpr std::int64_t kMostSeeds = 12;
constexpr double kRoom[] = {1.0, 0.6, 0.3};  // of what a half may be too heavy: goals of METIS
constexpr double kSmallestRoom = 0.002;
constexpr double kRoomOfRoot = 0.75;  // of what a part may be too heavy
constexpr double kStep = 0.005;       // of balance; below that rows count
constexpr std::int64_t kEdgesOfProcess = 20'000;

// The edges from each node; rows ascending.
CsrGraph reversed(const CsrGraph& in_edges) {
  CsrGraph out;
  out.offsets.assign(in_edges.offsets.size(), 0);
  for (const std::int32_t u : in_edges.neighbors) ++out.offsets[index_of(u) + 1];
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.neighbors.resize(in_edges.neighbors.size());
  std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    for (const std::int32_t u : in_edges.row(v)) out.neighbors[index_of(next[index_of(u)]++)] = v;
  }
  return out;
}

// How good a cut is: less is better.
struct CutScore {
  std::int64_t excess = 0;  // of balance, in steps
  std::int64_t rows = 0;    // that cross between the halves and to and from all other groups
};

class Nester {
 public:
  Nester(const CsrGraph& in_edges, const CsrGraph& graph, const NestedOptions& options)
      : in_edges_(in_edges),
        out_edges_(reversed(in_edges)),
        graph_(graph),
        options_(options),
        sums_(weight_sums(graph)),
        group_of_(index_of(graph.node_count()), 0),
        local_(index_of(graph.node_count()), -1) {}

  std::optional<std::vector<std::int32_t>> run() {
    std::deque<std::pair<PartTree::Node, int>> open{{{0, options_.metis.part_count}, 0}};
    while (!open.empty()) {
      const auto [node, depth] = open.front();
      open.pop_front();
      if (node.size() == 1) continue;
      if (!split(node, depth)) return std::nullopt;
      open.emplace_back(node.first(), depth + 1);
      open.emplace_back(node.second(), depth + 1);
    }
    return std::move(group_of_);
  }

 private:
  // A group is called by the first leaf of its node of the tree.
  bool split(const PartTree::Node& node, int depth) {
    const CsrGraph inside = induced(node.begin);
    const std::int64_t edges = std::max<std::int64_t>(1, graph_.entry_count() / 2) * levels();
    const auto seeds = static_cast<std::size_t>(
        std::clamp(kEdgesToTry / edges, kFewestSeeds, kMostSeeds) * options_.metis.seed_count);
    std::vector<std::byte> best;
    std::pair<std::pair<std::int64_t, std::int64_t>, std::size_t> best_rank;
    const bool is_small = inside.entry_count() / 2 < kEdgesOfProcess;
    run_forked({.count = seeds * std::size(kRoom),
                .side_by_side = is_small ? 1 : thread_count(options_.threads),
                .bytes = sizeof(CutScore) + members_.size() + 1,
                .work = [&](std::size_t job, bool,
                            std::span<std::byte> result) { cut(inside, node, depth, job, result); },
                .done =
                    [&](std::size_t job, std::span<const std::byte> result) {
                      if (result.back() == std::byte{0}) return;  // too few nodes
                      CutScore score;
                      std::memcpy(&score, result.data(), sizeof score);
                      const std::pair rank(std::pair(score.excess, score.rows), job);
                      if (!best.empty() && best_rank <= rank) return;
                      best_rank = rank;
                      best.assign(result.begin(), result.end());
                    },
                .wait = [] {}});
    if (best.empty()) return false;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const bool is_second = best[sizeof(CutScore) + i] != std::byte{0};
      if (is_second) group_of_[index_of(members_[i])] = node.second().begin;
    }
    return true;
  }

  // The subgraph of a group, whose nodes are then `members_`.
  CsrGraph induced(std::int32_t group) {
    members_.clear();
    for (std::size_t v = 0; v < group_of_.size(); ++v) {
      if (group_of_[v] != group) continue;
      local_[v] = static_cast<std::int32_t>(members_.size());
      members_.push_back(static_cast<std::int32_t>(v));
    }
    CsrGraph inside;
    inside.node_weight_count = graph_.node_weight_count;
    for (const std::int32_t v : members_) {
      for (const std::int32_t u : graph_.row(v)) {
        if (local_[index_of(u)] >= 0) inside.neighbors.push_back(local_[index_of(u)]);
      }
      inside.offsets.push_back(static_cast<std::int64_t>(inside.neighbors.size()));
      for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
        inside.node_weights.push_back(node_weight(graph_, v, c));
      }
    }
    for (const std::int32_t v : members_) local_[index_of(v)] = -1;
    return inside;
  }

  int levels() const {
    const auto parts = static_cast<double>(options_.metis.part_count);
    return std::max(1, static_cast<int>(std::ceil(std::log2(parts))));
  }

  // How much heavier than its share of all leaves a node of the tree may be; a part, at the depth
  // of the tree, as much as the options say.
  double limit(int depth, std::size_t weight) const {
    const std::vector<double>& most = options_.metis.max_imbalance;
    const double of_part = most[std::min(weight, most.size() - 1)] - 1;
    const double way = levels() == 1 ? 1 : static_cast<double>(depth) / (levels() - 1);
    return 1 + of_part * (kRoomOfRoot + (1 - kRoomOfRoot) * std::min(way, 1.0));
  }

  double share_of(const PartTree::Node& node) const {
    return static_cast<double>(node.size()) / options_.metis.part_count;
  }

  void cut(const CsrGraph& inside, const PartTree::Node& node, int depth, std::size_t job,
           std::span<std::byte> result) const {
    MetisOptions options = options_.metis;
    options.part_count = 2;
    options.seed_count = 1;
    options.minimize_volume = false;
    // METIS's seeds 0 and 1 are the same.
    options.seed = mixed(kMostSeeds * options_.metis.seed + job / std::size(kRoom) + 1);
    const double first = static_cast<double>(node.first().size()) / node.size();
    options.target_shares = {first, 1 - first};
    options.max_imbalance.clear();
    const std::vector<std::int64_t> inside_sums = weight_sums(inside);
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      const double mean = share_of(node) * static_cast<double>(sums_[c]);
      const double own = mean > 0 ? static_cast<double>(inside_sums[c]) / mean : 1;
      const double room = limit(depth, c) / std::max(own, 1e-9) - 1;
      options.max_imbalance.push_back(
          1 + std::max(kSmallestRoom, room * kRoom[job % std::size(kRoom)]));
    }
    if (inside.node_count() < 2) return;
    const std::vector<std::int32_t> side = partition_with_metis(inside, options).part_of;
    const auto second = std::count(side.begin(), side.end(), 1);
    if (second < node.second().size() || inside.node_count() - second < node.first().size()) return;
    const CutScore score{excess(inside, side, node, depth), rows_between(side, node)};
    std::memcpy(result.data(), &score, sizeof score);
    for (std::size_t i = 0; i < side.size(); ++i) {
      result[sizeof score + i] = static_cast<std::byte>(side[i]);
    }
    result.back() = std::byte{1};
  }

  std::int64_t excess(const CsrGraph& inside, const std::vector<std::int32_t>& side,
                      const PartTree::Node& node, int depth) const {
    const PartTree::Node halves[]{node.first(), node.second()};
    double most = 0;
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      std::int64_t weights[2]{0, 0};
      for (std::int32_t v = 0; v < inside.node_count(); ++v) {
        weights[side[index_of(v)]] += node_weight(inside, v, static_cast<std::int32_t>(c));
      }
      for (std::size_t half = 0; half < 2; ++half) {
        const double mean = share_of(halves[half]) * static_cast<double>(sums_[c]);
        if (mean <= 0) continue;
        most = std::max(most, static_cast<double>(weights[half]) / mean - limit(depth, c));
      }
    }
    return static_cast<std::int64_t>(std::floor(std::min(most, 1e6) / kStep));
  }

  // Rows between the halves, and between each half and every other group, both ways.
  std::int64_t rows_between(const std::vector<std::int32_t>& side,
                            const PartTree::Node& node) const {
    std::vector<std::int32_t> group_of = group_of_;
    const std::int32_t halves[]{node.first().begin, node.second().begin};
    for (std::size_t i = 0; i < members_.size(); ++i) {
      group_of[index_of(members_[i])] = halves[side[i]];
    }
    const auto groups = index_of(options_.metis.part_count);
    // By half, direction and other group.
    std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> edges(4 * groups);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::int32_t v = members_[i];
      const std::int32_t own = group_of[index_of(v)];
      const std::size_t first = 2 * index_of(side[i]) * groups;
      for (const std::int32_t to : out_edges_.row(v)) {
        const std::int32_t other = group_of[index_of(to)];
        if (other != own) edges[first + index_of(other)].emplace_back(v, to);
      }
      for (const std::int32_t from : in_edges_.row(v)) {
        const std::int32_t other = group_of[index_of(from)];
        // Between the halves an edge is counted where it comes from.
        if (other == halves[0] || other == halves[1]) continue;
        edges[first + groups + index_of(other)].emplace_back(from, v);
      }
    }
    std::int64_t rows = 0;
    for (auto& pair : edges) {
      if (pair.empty()) continue;
      const CutEdges cut = CutEdges::of(std::exchange(pair, {}));
      rows += options_.sums ? largest_matching(cut) : static_cast<std::int64_t>(cut.sources.size());
    }
    return rows;
  }

  const CsrGraph& in_edges_;
  const CsrGraph out_edges_;
  const CsrGraph& graph_;
  const NestedOptions& options_;
  std::vector<std::int64_t> sums_;      // of weights
  std::vector<std::int32_t> group_of_;  // by node
  std::vector<std::int32_t> members_;   // of the group at hand
  std::vector<std::int32_t> local_;     // places in it, or -1
};

}  // namespace

std::optional<std::vector<std::int32_t>> nested_parts(const CsrGraph& in_edges,
                                                      const CsrGraph& graph,
                                                      const NestedOptions& options) {
  return Nester(in_edges, graph, options).run();
}

}  // namespace npu::gnn

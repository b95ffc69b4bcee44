// SPDX-License-Identifier: Apache-2.0
// The tree over the parts of a plan: which parts are close to each other, and which of its nodes
// the ranks get. Neither looks at the number of ranks before the tree is there, so plans for any
// number of them add up in the same order.
#include "gnn/exchange/part_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// Rows that cross between groups, both directions together; symmetric.
class Affinity {
 public:
  explicit Affinity(std::size_t count) : count_(count), rows_(count * count, 0) {}
  std::size_t count() const noexcept { return count_; }
  std::int64_t at(std::size_t a, std::size_t b) const { return rows_[a * count_ + b]; }
  void add(std::size_t a, std::size_t b, std::int64_t rows) {
    rows_[a * count_ + b] += rows;
    rows_[b * count_ + a] += rows;
  }

  // After the groups have become others.
  Affinity merged(const std::vector<std::size_t>& group_of, std::size_t groups) const {
    Affinity result(groups);
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = a + 1; b < count_; ++b) {
        if (group_of[a] != group_of[b]) result.add(group_of[a], group_of[b], at(a, b));
      }
    }
    return result;
  }

 private:
  std::size_t count_;
  std::vector<std::int64_t> rows_;
};

// Distinct nodes at one end of the edges from one part to another.
using EndCounts = std::vector<std::int64_t>;  // by part * parts + other part

// How many rows cross at most between each two parts: one for each source of the edges from one to
// the other, or one for each target, whichever are fewer.
Affinity rows_between(const CsrGraph& in_edges, const std::vector<std::int32_t>& part_of,
                      std::size_t parts) {
  std::vector<std::vector<std::int32_t>> members(parts);
  for (std::int32_t v = 0; v < in_edges.node_count(); ++v) {
    members[index_of(part_of[index_of(v)])].push_back(v);
  }
  EndCounts sources(parts * parts, 0);
  EndCounts targets(parts * parts, 0);
  std::vector<std::int32_t> read_by(part_of.size(), -1);  // the last part that read the node
  std::vector<std::int32_t> reader(parts, -1);            // the last node that read the part
  for (std::size_t part = 0; part < parts; ++part) {
    for (const std::int32_t v : members[part]) {
      for (const std::int32_t u : in_edges.row(v)) {
        const std::size_t other = index_of(part_of[index_of(u)]);
        if (other == part) continue;
        if (std::exchange(read_by[index_of(u)], static_cast<std::int32_t>(part)) !=
            static_cast<std::int32_t>(part)) {
          ++sources[other * parts + part];
        }
        if (std::exchange(reader[other], v) != v) ++targets[other * parts + part];
      }
    }
  }
  Affinity affinity(parts);
  for (std::size_t i = 0; i < parts * parts; ++i) {
    if (sources[i] > 0) affinity.add(i / parts, i % parts, std::min(sources[i], targets[i]));
  }
  return affinity;
}

// Pairs of groups, the closest first; every group is in at most one.
std::vector<std::pair<std::size_t, std::size_t>> closest_pairs(const Affinity& affinity) {
  std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> all;
  for (std::size_t a = 0; a < affinity.count(); ++a) {
    for (std::size_t b = a + 1; b < affinity.count(); ++b) {
      all.emplace_back(-affinity.at(a, b), a, b);
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<char> used(affinity.count(), 0);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& [rows, a, b] : all) {
    if (used[a] != 0 || used[b] != 0) continue;
    used[a] = used[b] = 1;
    pairs.emplace_back(a, b);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

// Lets the two halves of a node of the tree trade parts so that fewer rows cross between them, as
// Kernighan and Lin do: the best trades one after another, each part once, of which those stay that
// are the best together.
class HalfTrader {
 public:
  HalfTrader(const Affinity& rows, std::vector<std::int32_t>& order) : rows_(rows), order_(order) {}

  void improve(const PartTree::Node& node) {
    if (node.size() < 3) return;
    for (int round = 0; round < kMostRounds && trade(node); ++round) {
    }
    improve(node.first());
    improve(node.second());
  }

 private:
  static constexpr int kMostRounds = 8;
  static constexpr std::int32_t kMostTrades = 64;  // in a round

  std::int64_t rows(std::int32_t a, std::int32_t b) const {
    return rows_.at(index_of(order_[index_of(a)]), index_of(order_[index_of(b)]));
  }

  // Rows to the other half less those to the own one, by place.
  void count(const PartTree::Node& node) {
    outward_.assign(index_of(node.end), 0);
    free_.assign(index_of(node.end), 1);
    const PartTree::Node first = node.first();
    for (std::int32_t a = node.begin; a < node.end; ++a) {
      for (std::int32_t b = node.begin; b < node.end; ++b) {
        if (a == b) continue;
        const bool is_same = first.contains(a) == first.contains(b);
        outward_[index_of(a)] += is_same ? -rows(a, b) : rows(a, b);
      }
    }
  }

  bool trade(const PartTree::Node& node) {
    count(node);
    const PartTree::Node first = node.first();
    const PartTree::Node second = node.second();
    std::vector<std::pair<std::int32_t, std::int32_t>> trades;
    std::int64_t saved = 0;
    std::int64_t most_saved = 0;
    std::size_t kept = 0;
    for (std::int32_t step = 0; step < std::min(second.size(), kMostTrades); ++step) {
      std::pair<std::int32_t, std::int32_t> best{-1, -1};
      std::int64_t best_gain = std::numeric_limits<std::int64_t>::min();
      for (std::int32_t a = first.begin; a < first.end; ++a) {
        for (std::int32_t b = second.begin; b < second.end && free_[index_of(a)] != 0; ++b) {
          if (free_[index_of(b)] == 0) continue;
          const std::int64_t gain = outward_[index_of(a)] + outward_[index_of(b)] - 2 * rows(a, b);
          if (gain <= best_gain) continue;
          best_gain = gain;
          best = {a, b};
        }
      }
      swap(node, best.first, best.second);
      trades.push_back(best);
      saved += best_gain;
      if (saved <= most_saved) continue;
      most_saved = saved;
      kept = trades.size();
    }
    while (trades.size() > kept) {
      std::swap(order_[index_of(trades.back().first)], order_[index_of(trades.back().second)]);
      trades.pop_back();
    }
    return most_saved > 0;
  }

  void swap(const PartTree::Node& node, std::int32_t a, std::int32_t b) {
    const PartTree::Node first = node.first();
    for (std::int32_t i = node.begin; i < node.end; ++i) {
      const std::int64_t change = 2 * (rows(i, a) - rows(i, b));
      if (i != a && i != b) outward_[index_of(i)] += first.contains(i) ? change : -change;
    }
    std::swap(order_[index_of(a)], order_[index_of(b)]);
    free_[index_of(a)] = free_[index_of(b)] = 0;
  }

  const Affinity& rows_;
  std::vector<std::int32_t>& order_;
  std::vector<std::int64_t> outward_;
  std::vector<char> free_;
};

}  // namespace

PartTree::PartTree(const std::vector<std::int32_t>& order) : place_(order.size(), 0) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    place_[index_of(order[i])] = static_cast<std::int32_t>(i);
  }
}

bool PartTree::has(const Node& leaves) const noexcept {
  if (leaves.size() < 1 || !root().contains(leaves)) return false;
  Node node = root();
  while (node.size() > leaves.size()) {
    node = node.first().contains(leaves.begin) ? node.first() : node.second();
  }
  return node == leaves;
}

std::int32_t PartTree::common_depth(std::int32_t place, std::int32_t other) const noexcept {
  std::int32_t depth = 1;
  Node node = root();
  while (node.first().contains(place) == node.first().contains(other)) {
    node = node.first().contains(place) ? node.first() : node.second();
    ++depth;
  }
  return depth;
}

PartTree::Node PartTree::sibling(std::int32_t place, std::int32_t depth) const noexcept {
  Node node = root();
  for (std::int32_t d = 1; d < depth; ++d) {
    node = node.first().contains(place) ? node.first() : node.second();
  }
  return node.first().contains(place) ? node.second() : node.first();
}

std::vector<std::int32_t> order_parts(const CsrGraph& in_edges,
                                      const std::vector<std::int32_t>& part_of,
                                      std::int32_t part_count) {
  const Affinity between = rows_between(in_edges, part_of, index_of(part_count));
  Affinity affinity = between;
  std::vector<std::vector<std::int32_t>> groups(index_of(part_count));
  for (std::int32_t p = 0; p < part_count; ++p) groups[index_of(p)] = {p};
  while (groups.size() > 1) {
    std::vector<std::vector<std::int32_t>> next;
    std::vector<std::size_t> group_of(groups.size(), groups.size());
    for (const auto& [a, b] : closest_pairs(affinity)) {
      group_of[a] = group_of[b] = next.size();
      next.push_back(std::move(groups[a]));
      next.back().insert(next.back().end(), groups[b].begin(), groups[b].end());
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (group_of[g] != groups.size()) continue;  // an odd one is left over
      group_of[g] = next.size();
      next.push_back(std::move(groups[g]));
    }
    affinity = affinity.merged(group_of, next.size());
    groups = std::move(next);
  }
  if (groups.empty()) return {};
  std::vector<std::int32_t> order = std::move(groups.front());
  HalfTrader(between, order).improve({0, part_count});
  return order;
}

std::vector<PartTree::Node> split_tree(const PartTree& tree,
                                       const std::vector<std::int64_t>& weights,
                                       std::int32_t count) {
  const auto weight = [&](const PartTree::Node& node) {
    return std::accumulate(weights.begin() + node.begin, weights.begin() + node.end,
                           std::int64_t{0});
  };
  std::vector<PartTree::Node> nodes{tree.root()};
  while (nodes.size() < index_of(count)) {
    const auto heaviest = std::max_element(
        nodes.begin(), nodes.end(), [&](const PartTree::Node& a, const PartTree::Node& b) {
          return std::pair(a.size() > 1, weight(a)) < std::pair(b.size() > 1, weight(b));
        });
    const PartTree::Node second = heaviest->second();
    *heaviest = heaviest->first();
    nodes.insert(heaviest + 1, second);
  }
  return nodes;
}

}  // namespace npu::gnn

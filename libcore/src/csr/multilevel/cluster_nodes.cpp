// SPDX-License-Identifier: Apache-2.0
// Clusters by size-constrained label propagation (Meyerhenke, Sanders, Schulz, SEA 2014): each node
// in turn joins the cluster that it has the heaviest edges to and that has room for it.
//
// The nodes of a round take turns in groups. A group decides on the clusters as they are before it,
// on any number of threads, and then joins in the order of its nodes: so the result depends on the
// graph alone. Nodes are spread over groups by a hash, since two neighbours in one group may swap
// their clusters.
//
// What is left alone then, because the cluster of its hub is full, joins others that would rather
// be in the same cluster. O(nodes + entries) for each of a few rounds.
#include "csr/multilevel/cluster_nodes.hpp"

#include <algorithm>
#include <numeric>

#include "csr/graph_weights.hpp"
#include "csr/multilevel/pieces.hpp"
#include "csr/multilevel/weight_table.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kRounds = 2;
constexpr std::size_t kGroups = 4;

class LabelPropagation {
 public:
  LabelPropagation(const CsrGraph& graph, const std::vector<std::int64_t>& limits,
                   std::size_t threads)
      : graph_(graph), limits_(limits), threads_(threads), label_(index_of(graph.node_count())) {
    std::iota(label_.begin(), label_.end(), 0);
    choice_.resize(label_.size());
    for (std::int32_t v = 0; v < graph.node_count(); ++v) {
      for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
        weight_.push_back(node_weight(graph, v, c));
      }
    }
  }

  NodeClusters run() {
    std::vector<std::vector<std::int32_t>> groups(kGroups);
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      groups[mixed(index_of(v) + 1) % kGroups].push_back(v);
    }
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      for (const auto& group : groups) {
        choose(group, round, false);
        for (const std::int32_t v : group) join(v, choice_[index_of(v)]);
      }
    }
    if (std::vector<std::int32_t> alone = nodes_alone(); alone.size() > label_.size() / 4) {
      choose(alone, kRounds, true);
      pair_up(alone);
    }
    return numbered();
  }

 private:
  bool has_room(std::int32_t label, std::int32_t node) const {
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      const std::int64_t sum =
          weight_[index_of(std::int64_t{label} * graph_.node_weight_count + c)];
      if (sum + node_weight(graph_, node, c) > limits_[index_of(c)]) return false;
    }
    return true;
  }

  // Fills choice_ for the nodes: where they would go. `any`: full clusters count as well.
  void choose(const std::vector<std::int32_t>& nodes, std::uint64_t round, bool any) {
    in_pieces(nodes.size(), threads_, [&](std::size_t begin, std::size_t end) {
      WeightTable table;
      for (std::size_t i = begin; i < end; ++i) {
        choice_[index_of(nodes[i])] = choice_of(nodes[i], round, any, table);
      }
    });
  }

  std::int32_t choice_of(std::int32_t node, std::uint64_t round, bool any,
                         WeightTable& table) const {
    table.reset(graph_.degree(node));
    for (std::int64_t e = graph_.offsets[index_of(node)]; e < graph_.offsets[index_of(node) + 1];
         ++e) {
      table.add(label_[index_of(graph_.neighbors[index_of(e)])], edge_weight(graph_, e));
    }
    const std::int32_t own = label_[index_of(node)];
    std::int32_t best = any ? -1 : own;
    std::int64_t most = -1;
    std::uint64_t most_tie = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto& [label, sum] = table.entry(i);
      if (sum < most) continue;
      // Equal sums are told apart in another way in each round.
      const std::uint64_t tie = mixed((round << 32) + index_of(label) + 1);
      if (sum == most && tie <= most_tie) continue;
      if (!any && label != own && !has_room(label, node)) continue;
      best = label;
      most = sum;
      most_tie = tie;
    }
    return best;
  }

  void join(std::int32_t node, std::int32_t label) {
    const std::int32_t own = label_[index_of(node)];
    if (label == own || !has_room(label, node)) return;
    for (std::int32_t c = 0; c < graph_.node_weight_count; ++c) {
      const std::int64_t weight = node_weight(graph_, node, c);
      weight_[index_of(std::int64_t{own} * graph_.node_weight_count + c)] -= weight;
      weight_[index_of(std::int64_t{label} * graph_.node_weight_count + c)] += weight;
    }
    label_[index_of(node)] = label;
  }

  std::vector<std::int32_t> nodes_alone() const {
    std::vector<std::int32_t> members(label_.size(), 0);
    for (const std::int32_t label : label_) ++members[index_of(label)];
    std::vector<std::int32_t> alone;
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      if (members[index_of(label_[index_of(v)])] == 1) alone.push_back(v);
    }
    return alone;
  }

  // Nodes alone that chose the same cluster share one, up to the limits.
  void pair_up(const std::vector<std::int32_t>& nodes) {
    std::vector<std::int32_t> open(label_.size() + 1, -1);  // by choice + 1: the cluster to join
    for (const std::int32_t v : nodes) {
      std::int32_t& cluster = open[index_of(choice_[index_of(v)] + 1)];
      if (cluster >= 0) join(v, cluster);
      cluster = label_[index_of(v)];
    }
  }

  NodeClusters numbered() const {
    std::vector<std::int32_t> number(label_.size(), -1);
    for (const std::int32_t label : label_) number[index_of(label)] = 0;
    NodeClusters clusters;
    for (std::int32_t& n : number) {
      if (n == 0) n = clusters.count++;
    }
    clusters.cluster_of.reserve(label_.size());
    for (const std::int32_t label : label_) clusters.cluster_of.push_back(number[index_of(label)]);
    return clusters;
  }

  const CsrGraph& graph_;
  const std::vector<std::int64_t>& limits_;
  std::size_t threads_;
  std::vector<std::int32_t> label_;   // by node; a cluster has the number of one of the nodes
  std::vector<std::int32_t> choice_;  // by node
  std::vector<std::int64_t> weight_;  // of clusters, by label and weight
};

}  // namespace

NodeClusters cluster_nodes(const CsrGraph& graph, const std::vector<std::int64_t>& limits,
                           std::size_t threads) {
  return LabelPropagation(graph, limits, threads).run();
}

}  // namespace npu

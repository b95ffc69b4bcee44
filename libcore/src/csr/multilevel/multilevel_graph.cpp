// SPDX-License-Identifier: Apache-2.0
// Coarsens a graph once, for any number of cuts. Clusters are much lighter than parts, so that
// parts of the coarsest graph can be balanced.
#include "csr/multilevel/multilevel_graph.hpp"

#include <algorithm>
#include <bit>

#include "csr/graph_weights.hpp"
#include "csr/multilevel/contract_graph.hpp"

namespace npu {
namespace {

constexpr std::int32_t kFewParts = 16;
constexpr std::int64_t kClustersPerPart = 64;  // clusters that a part consists of at the least
// METIS is quick enough for this many nodes, and does better with them than without.
constexpr std::int64_t kFewNodes = 20'000;
constexpr std::int64_t kFewNodesPerPart = 160;
constexpr std::int64_t kFewNodesShare = 8;  // or one in 8

}  // namespace

MultilevelGraph::MultilevelGraph(const CsrGraph& graph, std::int32_t most_parts,
                                 std::size_t threads)
    : graph_(graph) {
  // In steps, so that few requests differ in what they get for the same number of parts.
  const auto parts =
      static_cast<std::int64_t>(std::bit_ceil(index_of(std::max(most_parts, kFewParts))));
  std::vector<std::int64_t> limits = weight_sums(graph);
  for (std::int64_t& limit : limits) {
    limit = std::max<std::int64_t>(limit / (parts * kClustersPerPart), 1);
  }
  const std::int64_t few = std::max<std::int64_t>(
      {kFewNodes, kFewNodesPerPart * parts, graph.node_count() / kFewNodesShare});
  while (coarsest().node_count() > few) {
    NodeClusters clusters = cluster_nodes(coarsest(), limits, threads);
    if (clusters.count > coarsest().node_count() / 10 * 9) break;
    CsrGraph coarse = contract_graph(coarsest(), clusters, threads);
    levels_.push_back({std::move(clusters.cluster_of), std::move(coarse)});
  }
}

std::vector<std::int32_t> MultilevelGraph::refined(std::vector<std::int32_t> part_of,
                                                   const PartLimits& limits,
                                                   std::size_t threads) const {
  refine_parts(coarsest(), limits, part_of, threads);
  for (std::size_t l = levels_.size(); l-- > 0;) {
    std::vector<std::int32_t> finer;
    finer.reserve(levels_[l].cluster_of.size());
    for (const std::int32_t cluster : levels_[l].cluster_of) {
      finer.push_back(part_of[index_of(cluster)]);
    }
    part_of = std::move(finer);
    refine_parts(l == 0 ? graph_ : levels_[l - 1].graph, limits, part_of, threads);
  }
  return part_of;
}

}  // namespace npu

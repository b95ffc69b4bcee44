// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace npu::gnn {

/// The edges from the nodes of one rank to those of another; parallel ones once.
struct CutEdges {
  std::vector<std::int32_t> sources;  ///< nodes, ascending
  std::vector<std::int32_t> targets;  ///< nodes, ascending
  /// Indices into `sources` and `targets`, ascending.
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;

  /// Of pairs of nodes in any order, which may repeat.
  static CutEdges of(std::vector<std::pair<std::int32_t, std::int32_t>> node_pairs);
};

/// What crosses at the least cost, and a proof: amounts on edges that add up to at most the cost of
/// a row at each node. Every way to send something for each edge costs at least their sum, and this
/// one costs as much. Where all rows cost 1 the edges with an amount are a matching.
struct LeastExchange {
  struct Amount {
    std::size_t edge = 0;  ///< index into CutEdges::edges
    std::int64_t amount = 1;
  };
  std::vector<char> features;   ///< by source: its row crosses
  std::vector<char> sums;       ///< by target: the sum for it crosses
  std::vector<Amount> amounts;  ///< in the order of the edges
  std::int64_t cost = 0;
};

/// The rows that make every edge's contribution known to the other rank at the least cost: the
/// features of its source or a sum for its target. Ties go to features. Deterministic. Throws Error
/// kUnsupported for more edges than the flow can number.
LeastExchange least_exchange(const CutEdges& cut, std::int64_t feature_cost, std::int64_t sum_cost);

/// What is wrong with an exchange, by definition; empty if nothing is.
std::string check_exchange(const CutEdges& cut, std::int64_t feature_cost, std::int64_t sum_cost,
                           const LeastExchange& exchange);

/// The size of a largest matching, by the algorithm of Hopcroft and Karp, independently of
/// least_exchange. O(edges * sqrt(nodes)).
std::int64_t largest_matching(const CutEdges& cut);

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace npu {

/// A graph in compressed sparse row form: row v lists the neighbours of node v, in a simple graph
/// strictly ascending and without v itself. In a directed graph row v holds the sources of the
/// edges into v.
struct CsrGraph {
  std::vector<std::int64_t> offsets{0};    ///< node_count() + 1 entries
  std::vector<std::int32_t> neighbors;     ///< row v is neighbors[offsets[v] .. offsets[v + 1])
  std::vector<std::int64_t> edge_weights;  ///< parallel to neighbors; empty: all weights are 1
  std::vector<std::int64_t> node_weights;  ///< node-major; empty: one weight of 1 each
  std::int32_t node_weight_count = 1;      ///< weights per node

  std::int32_t node_count() const noexcept { return static_cast<std::int32_t>(offsets.size()) - 1; }
  /// Entries of all rows; an undirected edge counts twice.
  std::int64_t entry_count() const noexcept { return offsets.back(); }
  std::int64_t degree(std::int32_t node) const noexcept {
    const auto index = static_cast<std::size_t>(node);
    return offsets[index + 1] - offsets[index];
  }
  std::span<const std::int32_t> row(std::int32_t node) const noexcept {
    return {neighbors.data() + offsets[static_cast<std::size_t>(node)],
            static_cast<std::size_t>(degree(node))};
  }
};

/// An edge as build_undirected_graph takes it.
struct WeightedEdge {
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int64_t weight = 1;
};

/// The undirected graph of a list of edges: each is entered in both rows, parallel edges are merged
/// into one with the sum of their weights, loops are dropped. Throws Error kInvalidGraph for an
/// endpoint that is not a node. O(nodes + edges log degree).
CsrGraph build_undirected_graph(std::int32_t node_count, std::span<const WeightedEdge> edges);

/// Why a graph is not simple and undirected (rows strictly ascending, no loops, for every entry its
/// reverse with the same weight, no negative weights, matching sizes); empty if it is.
/// O(nodes + entries).
std::string undirected_graph_fault(const CsrGraph& graph);

}  // namespace npu

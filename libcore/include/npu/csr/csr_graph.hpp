// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace npu {

/// A graph in compressed rows: row v lists the neighbours of node v, strictly ascending and without
/// v itself once `is_simple` holds. In a directed graph row v holds the sources of the edges into
/// v.
struct CsrGraph {
  std::vector<std::int64_t> offsets{0};    ///< node_count() + 1 entries
  std::vector<std::int32_t> neighbors;     ///< row v is neighbors[offsets[v] .. offsets[v + 1])
  std::vector<std::int64_t> edge_weights;  ///< beside neighbors; empty: every weight is 1
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

/// An edge that build_undirected_graph takes.
struct WeightedEdge {
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int64_t weight = 1;
};

/// The undirected graph of a list of edges: each is entered in both rows, parallel edges become one
/// with the sum of their weights, loops are left out. Throws Error kInvalidGraph for an end that is
/// no node. O(nodes + edges log degree).
CsrGraph build_undirected_graph(std::int32_t node_count, std::span<const WeightedEdge> edges);

/// What keeps a graph from being simple and undirected (rows strictly ascending, no loops, every
/// entry with its reverse of the same weight, weights at least 0, sizes that match); empty if
/// nothing does. O(nodes + entries).
std::string undirected_graph_fault(const CsrGraph& graph);

}  // namespace npu

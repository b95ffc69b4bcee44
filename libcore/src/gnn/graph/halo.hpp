// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu::gnn {

/// The size of one part of a graph, together with everything that its nodes read.
struct SubgraphSize {
  std::int32_t id = 0;
  std::int64_t n = 0;          ///< nodes: owned and halo
  std::int64_t m = 0;          ///< edges into owned nodes
  std::int64_t halo = 0;       ///< nodes of other parts with an edge into an owned node
  std::int64_t cut_edges = 0;  ///< of the m edges, those that come from other parts
  /// Of the halo, rows that devices other than the host need not read, since sums stand for them.
  std::int64_t saved = 0;
  std::int64_t owned() const noexcept { return n - halo; }
  bool operator==(const SubgraphSize&) const = default;
};

/// Sizes of all parts, by part. O(nodes + edges).
std::vector<SubgraphSize> subgraph_sizes(const CsrGraph& in_edges,
                                         const std::vector<std::int32_t>& part_of,
                                         std::int32_t part_count);

/// One part as a graph of its own: local nodes are the owned ones, ascending, then the halo.
struct Subgraph {
  std::vector<std::int32_t> nodes;  ///< global id by local id
  std::int64_t owned = 0;
  std::vector<std::int64_t> offsets;  ///< rows of the owned nodes
  std::vector<std::int32_t> sources;  ///< local ids
};

/// All parts. O(nodes + edges).
std::vector<Subgraph> extract_subgraphs(const CsrGraph& in_edges,
                                        const std::vector<std::int32_t>& part_of,
                                        std::int32_t part_count);

}  // namespace npu::gnn

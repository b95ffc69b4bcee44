// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu {

/// Clusters of nodes, numbered from 0.
struct NodeClusters {
  std::vector<std::int32_t> cluster_of;  ///< by node
  std::int32_t count = 0;
};

/// Clusters of nodes with heavy edges between them, none of more than one node heavier than
/// `limits` says for each node weight. The same on any number of threads. O(nodes + entries).
NodeClusters cluster_nodes(const CsrGraph& graph, const std::vector<std::int64_t>& limits,
                           std::size_t threads);

}  // namespace npu

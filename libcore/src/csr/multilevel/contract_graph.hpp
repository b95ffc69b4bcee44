// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "csr/multilevel/cluster_nodes.hpp"

namespace npu {

/// The graph whose nodes are the clusters of another: weights add up, edges within clusters vanish.
/// O(nodes + entries log degree).
CsrGraph contract_graph(const CsrGraph& graph, const NodeClusters& clusters, std::size_t threads);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"
#include "npu/support/ids.hpp"
#include "support/checked.hpp"

namespace npu {

inline std::int64_t node_weight(const CsrGraph& graph, std::int32_t node, std::int32_t which) {
  if (graph.node_weights.empty()) return 1;
  return graph.node_weights[index_of(std::int64_t{node} * graph.node_weight_count + which)];
}

inline std::int64_t edge_weight(const CsrGraph& graph, std::int64_t entry) {
  return graph.edge_weights.empty() ? 1 : graph.edge_weights[index_of(entry)];
}

/// Sums of the nodes' weights, by weight.
inline std::vector<std::int64_t> weight_sums(const CsrGraph& graph) {
  std::vector<std::int64_t> sums(index_of(graph.node_weight_count), 0);
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
      sums[index_of(c)] = saturating_add(sums[index_of(c)], node_weight(graph, v, c));
    }
  }
  return sums;
}

}  // namespace npu

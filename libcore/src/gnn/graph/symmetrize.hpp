// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "csr/csr_graph.hpp"

namespace npu::gnn {

/// The simple undirected graph of `in_edges`, for METIS, and what had to be changed.
struct SymmetrizedGraph {
  CsrGraph graph;
  std::int64_t loops = 0;           ///< dropped
  std::int64_t duplicates = 0;      ///< parallel edges dropped
  std::int64_t added_reverses = 0;  ///< edges whose reverse was missing
  /// "3 loops and 2 parallel edges dropped, 5 reverse edges added"; empty if nothing was.
  std::string note() const;
};
SymmetrizedGraph symmetrize(const CsrGraph& in_edges);

}  // namespace npu::gnn

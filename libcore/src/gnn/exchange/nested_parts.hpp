// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "csr/csr_graph.hpp"
#include "csr/metis_partitioner.hpp"

namespace npu::gnn {

struct NestedOptions {
  MetisOptions metis;  ///< part_count, seeds and goals of balance
  bool sums = true;    ///< rows cross as features or as sums; false: as features only
  int threads = 0;     ///< processes at once; 0: as many as there are cores
};

/// Parts that are the leaves of a PartTree in their order: every node of it is cut in two so that
/// the fewest rows cross between its halves and all else that there is then, of many cuts by METIS.
/// So ranks that get the parts below one node each have to tell each other little, however many
/// they are. `graph` is the undirected one with its weights. Nothing if METIS leaves a half with
/// fewer nodes than it has leaves. The same on any number of threads. O(edges) times METIS and a
/// matching for each level of the tree and each cut that is tried, of which there are fewer in
/// large graphs.
std::optional<std::vector<std::int32_t>> nested_parts(const CsrGraph& in_edges,
                                                      const CsrGraph& graph,
                                                      const NestedOptions& options);

}  // namespace npu::gnn

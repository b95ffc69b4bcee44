// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu {

struct MetisOptions {
  std::int32_t part_count = 2;
  /// How far above the mean the heaviest part may be, for each node weight: 1.05 is 5 %. The last
  /// entry applies to all further weights. METIS treats it as a goal, not as a limit.
  std::vector<double> max_imbalance{1.05};
  /// Shares of all weights that the parts are to have, which sum up to 1; empty: the same for all.
  std::vector<double> target_shares = {};
  std::uint64_t seed = 0;       ///< of the first attempt
  std::int32_t seed_count = 1;  ///< seeds seed, seed + 1, ...: the best result is kept
  /// Minimise total communication volume (halo) instead of the edge cut. On some graphs METIS's
  /// volume objective is no better at that than the cut, so both are tried and the better is kept.
  bool minimize_volume = false;
  /// How volume is counted; empty: by volume_of the graph.
  std::function<std::int64_t(const std::vector<std::int32_t>&)> volume_of = {};
};

/// A graph cut into parts, none of them empty.
struct GraphPartition {
  std::int32_t part_count = 1;
  std::vector<std::int32_t> part_of;  ///< by node
  std::int64_t edge_cut = 0;          ///< weight of the edges between parts, each once
  std::vector<double> imbalance;      ///< heaviest part over mean, for each node weight
  std::uint64_t seed = 0;             ///< of the attempt that was kept
  std::int32_t repaired_parts = 0;    ///< parts that METIS left empty and that then got a node
  std::string hash;                   ///< partition_hash(part_of)
};

/// Cuts an undirected graph into `part_count` parts with METIS and works around its defects: one
/// part and graphs without edges never reach it, empty parts are filled, weights that do not fit
/// its 32-bit integers are scaled, and cut and balance are computed from the result. Throws Error
/// kInvalidGraph for a graph that is not undirected (see undirected_graph_fault), kInfeasible for
/// more parts than nodes, kUsage for fewer than one. The same call gives the same result with the
/// same build of METIS.
GraphPartition partition_with_metis(const CsrGraph& graph, const MetisOptions& options);

/// 16 hexadecimal digits that tell part vectors apart: FNV-1a over little-endian 32-bit part ids.
std::string partition_hash(const std::vector<std::int32_t>& part_of);

/// Weight of the edges between parts, each undirected edge once.
std::int64_t edge_cut_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of);

/// The number of nodes that parts read from others: summed over all parts, the outside nodes with
/// an edge into the part.
std::int64_t volume_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                       std::int32_t part_count);

/// Heaviest part over the mean, for each node weight; 1 where the weights sum to 0.
std::vector<double> imbalance_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                                 std::int32_t part_count);

}  // namespace npu

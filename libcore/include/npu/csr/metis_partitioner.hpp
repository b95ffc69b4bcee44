// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/csr/csr_graph.hpp"

namespace npu {

struct MetisOptions {
  std::int32_t part_count = 2;
  /// How far above the mean the heaviest part may be, for each node weight: 1.05 is 5 %. The last
  /// entry stands for further weights. METIS takes it as a goal.
  std::vector<double> max_imbalance{1.05};
  std::uint64_t seed = 0;       ///< of the first try
  std::int32_t seed_count = 1;  ///< seeds seed, seed + 1, ...: the best result is kept
  /// Total communication volume (halo) in place of the edge cut. METIS's own objective is no better
  /// at it than the cut on some graphs, so both are tried and the smaller volume is kept.
  bool minimize_volume = false;
  /// What counts as volume; empty: volume_of of the graph.
  std::function<std::int64_t(const std::vector<std::int32_t>&)> volume_of = {};
};

/// A graph cut into parts, none of them empty.
struct GraphPartition {
  std::int32_t part_count = 1;
  std::vector<std::int32_t> part_of;  ///< by node
  std::int64_t edge_cut = 0;          ///< weight of the edges between parts, each once
  std::vector<double> imbalance;      ///< heaviest part over mean, for each node weight
  std::uint64_t seed = 0;             ///< of the try that was kept
  std::int32_t repaired_parts = 0;    ///< parts that METIS left empty and that were given a node
  std::string hash;                   ///< partition_hash(part_of)
};

/// Cuts an undirected graph into `part_count` parts with METIS, whatever its faults: 1 part and
/// graphs without edges are answered here, empty parts are filled, weights that do not fit METIS's
/// 32-bit integers are scaled, and cut and balance are counted from the result. Throws Error
/// kInvalidGraph for a graph that is not undirected (see undirected_graph_fault), kInfeasible for
/// more parts than nodes, kUsage for less than one. The same call gives the same result on one
/// build of METIS.
GraphPartition partition_with_metis(const CsrGraph& graph, const MetisOptions& options);

/// 16 hexadecimal digits that tell part vectors apart: FNV-1a over little-endian 32-bit part ids.
std::string partition_hash(const std::vector<std::int32_t>& part_of);

/// Weight of the edges between parts, each undirected edge once.
std::int64_t edge_cut_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of);

/// How many nodes the parts read of others: over all parts, the nodes outside that have an edge
/// into it.
std::int64_t volume_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                       std::int32_t part_count);

/// Heaviest part over the mean, for each node weight; 1 where the weights sum up to 0.
std::vector<double> imbalance_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                                 std::int32_t part_count);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/metis_partitioner.hpp"
#include "npu/support/progress.hpp"

namespace npu {

enum class Partitioner {
  kAutomatic,   ///< kMultilevel from kManyEdges edges on, unless the halo is to be small
  kMetis,       ///< METIS cuts the graph anew for each number of parts and each seed
  kMultilevel,  ///< the graph is coarsened once, METIS cuts what is left, parts are refined
  kPtScotch,    ///< several processes cut the graph, not partition_sweep; see csr/found_parts.hpp
};

/// Undirected edges from which on kAutomatic coarsens a graph.
inline constexpr std::int64_t kManyEdges = 1'000'000;

struct SweepOptions {
  std::vector<std::int32_t> part_counts;
  MetisOptions metis;  ///< of every cut but for its part_count
  Partitioner partitioner = Partitioner::kAutomatic;
  int threads = 0;  ///< threads, and processes with METIS, at once; 0: as many as there are cores
  ProgressCallback progress = {};
};

/// A graph cut into several numbers of parts.
struct PartitionSweep {
  std::vector<GraphPartition> partitions;  ///< by number of parts, as they were asked for
  std::int32_t levels = 0;                 ///< graphs of kMultilevel; 0: METIS alone
  std::int32_t coarsest_nodes = 0;         ///< of the smallest of them
};

/// Cuts an undirected graph into each number of parts. METIS is not safe to be used by two threads,
/// so its runs are processes side by side, as many as memory allows. The result is the same for any
/// number of them and of threads, and with kMetis that of partition_with_metis, whose errors are
/// thrown; kPtScotch is Error kUsage. `times` gets the phases "coarsen" and "partition".
PartitionSweep partition_sweep(const CsrGraph& graph, const SweepOptions& options,
                               PhaseTimes& times);

}  // namespace npu

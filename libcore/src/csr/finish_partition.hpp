// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "csr/metis_partitioner.hpp"

namespace npu {

/// Throws what partition_with_metis throws for a graph or options that nobody can cut by.
void check_cut(const CsrGraph& graph, const MetisOptions& options);

/// A partition of given parts: empty ones get a node, cut, balance and hash are computed.
/// O(nodes + entries).
GraphPartition finish_partition(const CsrGraph& graph, std::int32_t part_count,
                                std::vector<std::int32_t> part_of, std::uint64_t seed);

/// What makes one partition better than another: the smaller pair. How far balance misses its goal
/// in steps, then the halo if that is to be small, else the cut.
std::pair<std::int64_t, std::int64_t> partition_rank(const CsrGraph& graph,
                                                     const MetisOptions& options,
                                                     const GraphPartition& partition);

}  // namespace npu

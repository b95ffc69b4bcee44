// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/partition_sweep.hpp"

namespace npu {

/// Parts that somebody else has found.
struct FoundParts {
  std::int32_t part_count = 1;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> part_of;  ///< by node
};

/// A sweep over parts that were found before: they are moved to the options' balance, and of
/// several seeds the best is kept. A number of parts that nothing was found for is cut by
/// partition_with_metis, which needs METIS for none that is 1, or has no edges to cut, or a part
/// for every node. Throws Error kInvalidGraph for parts that do not fit the graph. `times` gets the
/// phase "balance".
PartitionSweep sweep_of_found(const CsrGraph& graph, const SweepOptions& options,
                              const std::vector<FoundParts>& found, PhaseTimes& times);

}  // namespace npu

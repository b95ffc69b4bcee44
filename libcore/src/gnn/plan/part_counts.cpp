// SPDX-License-Identifier: Apache-2.0
// Which numbers of parts a plan is looked for. O(numbers).
#include "gnn/plan/part_counts.hpp"

#include <set>
#include <string>

namespace npu::gnn {

std::vector<std::int32_t> counts_to_try(const MakePlanOptions& options, std::int64_t node_count,
                                        Diagnostics& diagnostics) {
  std::set<std::int32_t> counts(options.part_counts.begin(), options.part_counts.end());
  if (options.rank_count == 0) {
    counts.insert(1);
  } else {
    // Ranks share the same parts, however many they are, so they get none that were not asked for.
    const std::int32_t most = *counts.rbegin();
    counts.erase(counts.begin(), counts.lower_bound(options.rank_count));
    if (counts.empty()) {
      throw Error(ErrorCode::kUsage, "--ranks " + std::to_string(options.rank_count) +
                                         ": at most " + std::to_string(most) +
                                         " parts are tried; give --parts " +
                                         std::to_string(options.rank_count) + " or more");
    }
  }
  std::vector<std::int32_t> fitting;
  for (const std::int32_t k : counts) {
    if (k <= node_count) {
      fitting.push_back(k);
      continue;
    }
    diagnostics.warning({.file = options.graph}, "k = " + std::to_string(k) +
                                                     " is left out: the graph has " +
                                                     std::to_string(node_count) + " nodes");
  }
  return fitting;
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npu::gnn {

/// A share of a segment of a subgraph, as the replay sees it.
struct ReplayTask {
  std::size_t position = 0;  ///< of its subgraph in the order of execution
  std::size_t segment = 0;
  std::int32_t device = 0;
  std::int32_t resource = 0;  ///< devices that share one take turns
  std::int64_t cluster = 0;   ///< going over to another one costs the device time
  double ms = 0;
};

struct ReplayResult {
  double makespan_ms = 0;
  std::int32_t switches = 0;
  double switching_ms = 0;  ///< of all switches
};

/// The schedule of the tasks of one layer, with the tasks of a subgraph side by side in `tasks` and
/// its segments ascending. At every moment each idle resource takes what comes first: by device,
/// then by position. Written apart from `simulate`, which it is there to check. O(tasks^2).
/// `switch_ms` by device; empty: none.
ReplayResult replay_clusters(const std::vector<ReplayTask>& tasks,
                             const std::vector<double>& switch_ms);

}  // namespace npu::gnn

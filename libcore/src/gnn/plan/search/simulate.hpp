// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace npu::gnn {

/// One subgraph as the simulation sees it: segments that run one after the other, each with the
/// times of the devices that share it.
struct SimItem {
  struct Share {
    std::int32_t device = 0;
    double ms = 0;
  };
  std::vector<std::vector<Share>> segments;
  std::int32_t cluster = 0;
};

struct SimTask {
  std::int32_t item = 0;
  std::int32_t segment = 0;
  std::int32_t share = 0;
  std::int32_t device = 0;
  double start_ms = 0;
  double end_ms = 0;
};

struct SimResult {
  std::vector<SimTask> tasks;  ///< by start
  double makespan_ms = 0;
  std::int32_t switches = 0;  ///< of a device from one cluster to another
  double switching_ms = 0;    ///< the time of all of them
};

/// Runs items in the given order of priority: a free device takes the first item whose previous
/// segment is done; devices that share a resource take turns; switching to another cluster costs
/// device d `switch_ms[d]`, or nothing if that is empty.
SimResult simulate(const std::vector<SimItem>& items, const std::vector<std::int32_t>& resource_of,
                   const std::vector<double>& switch_ms);

}  // namespace npu::gnn

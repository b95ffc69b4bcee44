// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace npu::gnn {

/// Fewer runs say nothing of their spread.
inline constexpr std::size_t kRunsForSpread = 3;

struct BlockTiming {
  double ms = 0;                ///< median; of disturbed runs the least
  std::vector<double> samples;  ///< of all timed runs, in order
  bool disturbed = false;       ///< by other work on the machine
  std::int32_t runnable = 0;    ///< most threads that wanted a core
};

/// Calls `run`, which says how long it took in ms, `warm_up` times untimed, with numbers from
/// -warm_up to -1, and `runs` times, with numbers from 0 on.
BlockTiming time_runs(std::int32_t warm_up, std::int32_t runs,
                      const std::function<double(std::int32_t run)>& run);

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Repeated runs of a block, and whether something disturbed them.
#include "gnn/profile/block_timing.hpp"

#include <algorithm>

#include "profile/machine_watch.hpp"
#include "support/statistics.hpp"

namespace npu::gnn {
namespace {

// Runs that differ by more were disturbed by something, whatever the machine says.
constexpr double kMostSpread = 0.15;

}  // namespace

BlockTiming time_runs(std::int32_t warm_up, std::int32_t runs,
                      const std::function<double(std::int32_t run)>& run) {
  for (std::int32_t i = -warm_up; i < 0; ++i) run(i);
  BlockTiming timing;
  const MachineWatch watch;
  for (std::int32_t i = 0; i < runs; ++i) timing.samples.push_back(run(i));
  const MachineLoad load = watch.load();
  timing.runnable = load.runnable;
  timing.ms = lower_median(timing.samples);
  const double spread = median_absolute_deviation(timing.samples, timing.ms);
  timing.disturbed = is_disturbed(load) ||
                     (timing.samples.size() >= kRunsForSpread && spread > kMostSpread * timing.ms);
  // Other work only ever adds time.
  if (timing.disturbed) {
    timing.ms = *std::min_element(timing.samples.begin(), timing.samples.end());
  }
  return timing;
}

}  // namespace npu::gnn

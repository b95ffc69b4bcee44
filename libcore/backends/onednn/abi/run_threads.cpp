// SPDX-License-Identifier: Apache-2.0
// Measures whether the threads of runs get the CPUs that they need, and leaves the decision to
// ThreadGovernor. The shares of oneDNN's loops are fixed when a loop starts, so a thread without a
// CPU holds up all others; nothing but fewer threads helps against that.
//
// Delays are read when runs have taken some hundred microseconds since they were read last: about
// 1 % of the time of short runs, and nothing beside that of long ones.
#include "abi/run_threads.hpp"

#include <omp.h>

#include <vector>

#include "npu/support/elapsed.hpp"

namespace npu::onednn {

void RunThreads::watch_team() {
  std::vector<std::int64_t> team(static_cast<std::size_t>(governor_.threads()), 0);
#pragma omp parallel num_threads(static_cast <int>(team.size()))
  team[static_cast<std::size_t>(omp_get_thread_num())] = this_thread_number();
  std::erase(team, 0);
  is_measurable_ = delays_.watch(team);
}

void RunThreads::note_run(double seconds) {
  constexpr double kWindow = 300e-6;
  busy_ += seconds;
  if (!is_measurable_ || busy_ < kWindow) return;
  const double busy = busy_;
  busy_ = 0.0;
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  if (governor_.wants_idle(now)) {
    // Where nobody tells, it is tried.
    governor_.record_idle(idle_.read(now).value_or(1.0), now);
    caller_ = -1;
  }
  if (governor_.threads() == 1) return;
  const std::int64_t caller = this_thread_number();
  const auto waited = caller == caller_ ? delays_.read() : std::nullopt;
  if (!waited) {  // another team: its delays count from now on
    caller_ = caller;
    return watch_team();
  }
  if (governor_.record_runs(busy, *waited, now)) {
    caller_ = -1;
    idle_.read(now);
  }
}

}  // namespace npu::onednn

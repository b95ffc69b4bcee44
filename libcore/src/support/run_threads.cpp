// SPDX-License-Identifier: Apache-2.0
// Measures whether the threads of runs get the CPUs that they need, and leaves the decision to
// ThreadGovernor.
//
// Delays are read when runs have taken some hundred microseconds since they were read last: about
// 1 % of the time of short runs, and nothing beside that of long ones.
#include "support/run_threads.hpp"

#include <chrono>
#include <optional>

#include "support/elapsed.hpp"

namespace npu {

void RunThreads::note_run(double seconds, const std::function<std::vector<std::int64_t>()>& team) {
  constexpr double kWindow = 300e-6;
  constexpr double kSuspicion = 0.05;  // idle times are counted in hundredths of a second
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
    is_measurable_ = delays_.watch(team());
    return;
  }
  if (!governor_.record_runs(busy, *waited)) {
    suspected_at_ = -1.0;
  } else if (suspected_at_ < 0.0) {
    suspected_at_ = now;
    idle_.read(now);
  } else if (now - suspected_at_ >= kSuspicion) {
    suspected_at_ = -1.0;
    if (governor_.confirm(idle_.read(now).value_or(0.0), now)) caller_ = -1;
  }
}

}  // namespace npu

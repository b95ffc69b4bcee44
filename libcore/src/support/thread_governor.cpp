// SPDX-License-Identifier: Apache-2.0
// The number of threads of a run beside busy neighbours. Threads that share their work wait for the
// slowest of them: one that has half a CPU doubles the time of all, and one that waits for its turn
// costs a tick of the scheduler, so fewer threads are faster then.
//
// Input: the time that threads waited for a CPU, and how many CPUs were idle. Two rules keep the
// number steady. It falls only if the wait is a considerable part of the last 30 ms or so of runs,
// longer than a single tick, and no CPU is idle meanwhile: a system may take its time to spread
// threads that have just woken. It rises only if CPUs were idle on average over some time, which
// doubles whenever it fell again soon. O(1).
#include "support/thread_governor.hpp"

#include <algorithm>
#include <cmath>

namespace npu {

namespace {

constexpr double kMemory = 0.03;       // of runs, after which what was recorded counts 1 / e
constexpr double kMostWait = 0.15;     // of the time of runs
constexpr double kLeastWait = 0.0025;  // less than a tick of 4 ms
constexpr double kMostIdle = 0.5;      // of a CPU, for fewer threads
constexpr double kLeastIdle = 0.75;    // of a CPU, for another thread
constexpr double kShortPause = 0.05;   // idle times are counted in hundredths of a second
constexpr double kLongPause = 3.2;
constexpr double kSteady = 1.0;  // how long a raised number lasts that was raised rightly

}  // namespace

bool ThreadGovernor::record_runs(double busy, double waited) {
  if (!(busy > 0.0)) return false;
  const double kept = std::exp(-busy / kMemory);
  busy_ = busy_ * kept + busy;
  waited_ = waited_ * kept + std::max(waited, 0.0);
  return threads_ > 1 && waited_ >= kLeastWait && waited_ >= kMostWait * busy_;
}

bool ThreadGovernor::confirm(double idle_cpus, double now) {
  if (threads_ == 1 || !(busy_ > 0.0) || idle_cpus >= kMostIdle) return false;
  // As many threads too many as were waiting on average.
  const double surplus = std::max(1.0, std::ceil(waited_ / busy_ - kMostWait));
  threads_ = surplus < threads_ ? threads_ - static_cast<int>(surplus) : 1;
  const bool fell_soon = pause_ > 0.0 && now - raised_at_ < kSteady;
  pause_ = fell_soon ? std::min(2.0 * pause_, kLongPause) : kShortPause;
  look_at_ = now + pause_;
  busy_ = 0.0;
  waited_ = 0.0;
  return true;
}

void ThreadGovernor::record_idle(double idle_cpus, double now) {
  look_at_ = now + std::max(pause_, kShortPause);
  if (!is_reduced() || !(idle_cpus >= kLeastIdle)) return;
  const double more = std::max(1.0, std::floor(idle_cpus));
  threads_ = more < most_ - threads_ ? threads_ + static_cast<int>(more) : most_;
  raised_at_ = now;
  busy_ = 0.0;
  waited_ = 0.0;
}

}  // namespace npu

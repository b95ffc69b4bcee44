// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu {

/// Decides how many threads the next run gets, from how long threads of runs waited for a CPU.
/// Times are in seconds; `now` is of any clock that never goes back.
class ThreadGovernor {
 public:
  explicit ThreadGovernor(int most) : most_(most), threads_(most) {}

  int threads() const noexcept { return threads_; }
  bool is_reduced() const noexcept { return threads_ < most_; }

  /// Runs took `busy` seconds, during which their threads were ready, but had no CPU, for `waited`
  /// seconds in all. Returns whether that is too long; idle CPUs decide what follows.
  bool record_runs(double busy, double waited);
  /// Threads wait too long while so many CPUs are idle on average. If there are none, neighbours
  /// have them, and the number of threads falls; else the system has yet to spread the threads.
  /// Returns whether it fell.
  bool confirm(double idle_cpus, double now);
  /// With fewer threads than most: whether it is time to look for idle CPUs.
  bool wants_idle(double now) const noexcept { return is_reduced() && now >= look_at_; }
  /// So many CPUs were idle on average since the last call, or since the number of threads fell.
  void record_idle(double idle_cpus, double now);

 private:
  int most_;
  int threads_;
  double busy_ = 0.0;    // seconds of late, older ones count less
  double waited_ = 0.0;  // the same
  double pause_ = 0.0;   // between looks
  double look_at_ = 0.0;
  double raised_at_ = 0.0;
};

}  // namespace npu

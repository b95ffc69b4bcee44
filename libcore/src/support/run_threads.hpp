// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "support/cpu_pressure.hpp"
#include "support/thread_governor.hpp"

namespace npu {

/// The number of threads for runs: all that there are, and fewer while other programs take their
/// CPUs. Not to be used by two threads at once.
class RunThreads {
 public:
  explicit RunThreads(int most) : governor_(most) {}

  int threads() const noexcept { return governor_.threads(); }
  /// A run on threads() threads took so long. `team` gives the numbers of the threads that it used,
  /// this_thread_number() among them; it is called seldom.
  void note_run(double seconds, const std::function<std::vector<std::int64_t>()>& team);

 private:
  ThreadGovernor governor_;
  CpuDelays delays_;
  IdleCpus idle_;
  double busy_ = 0.0;           // seconds of runs since the delays were read
  double suspected_at_ = -1.0;  // since when idle CPUs are counted; below 0: they are not
  std::int64_t caller_ = -1;    // the thread whose team is watched
  bool is_measurable_ = true;   // the system says how long threads waited
};

}  // namespace npu

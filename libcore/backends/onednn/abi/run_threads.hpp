// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "support/cpu_pressure.hpp"
#include "support/thread_governor.hpp"

namespace npu::onednn {

/// The number of threads for the runs of a device: all of them, and fewer while other programs take
/// their CPUs.
class RunThreads {
 public:
  explicit RunThreads(int most) : governor_(most) {}

  int threads() const noexcept { return governor_.threads(); }
  /// A run on threads() threads took so long. From the thread that ran it, with that number set for
  /// OpenMP.
  void note_run(double seconds);

 private:
  void watch_team();

  ThreadGovernor governor_;
  CpuDelays delays_;
  IdleCpus idle_;
  double busy_ = 0.0;          // seconds of runs since the delays were read
  std::int64_t caller_ = -1;   // the thread whose team is watched
  bool is_measurable_ = true;  // /proc says how long threads waited
};

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Detects other load on the machine during a measurement.
#pragma once

#include <cstdint>
#include <optional>

namespace npu {

/// The load between two looks at the machine.
struct MachineLoad {
  double elapsed_ms = 0;
  /// Time for which threads of this process were ready to run but had no core; nothing if the
  /// kernel does not count it.
  std::optional<double> waited_ms = {};
  std::int64_t involuntary_switches = 0;  ///< context switches away from this process
  std::int32_t runnable = 0;              ///< threads on the machine that wanted a core at the end
};

/// Whether other work disturbed the measurement: threads of this process waited for a core for more
/// than a tenth of the time or, if that is not counted, were preempted.
bool is_disturbed(const MachineLoad& load) noexcept;

/// Reads the counters on construction, and again when asked. O(threads of the process).
class MachineWatch {
 public:
  MachineWatch();
  MachineLoad load() const;

 private:
  std::optional<double> waited_ms_;
  std::int64_t switches_ = 0;
  double start_ms_ = 0;
};

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// What else a machine does while something is measured on it.
#pragma once

#include <cstdint>
#include <optional>

namespace npu {

/// What happened between two looks at the machine.
struct MachineLoad {
  double elapsed_ms = 0;
  /// Time for which threads of this process were ready to run and had no core; nothing where the
  /// kernel does not count it.
  std::optional<double> waited_ms = {};
  std::int64_t involuntary_switches = 0;  ///< of this process, to another one
  std::int32_t runnable = 0;              ///< threads on the machine that wanted a core at the end
};

/// Whether other work held up what was measured: threads of this process waited for a core for more
/// than a tenth of the time or, where nobody counts that, were taken off one.
bool is_disturbed(const MachineLoad& load) noexcept;

/// Looks at the machine when it is made, and again when it is asked. O(threads of the process).
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

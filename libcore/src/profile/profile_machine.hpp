// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/support/progress.hpp"

namespace npu {

/// The options of `npu-profile --machine`.
struct ProfileMachineOptions {
  std::string target = "host";  ///< built-in name or file; every device needs a backend
  std::int32_t threads = 0;     ///< of each device; 0: all cores
  double seconds = 4.7;         ///< time after which rounds stop; at least three are run
};

/// One rate of the roofline model, in the target and as measured.
struct MachineRate {
  std::string device;  ///< or "FROM -> TO" of a link
  std::string what;    ///< "convolution, 3 x 3", "launch", ...
  std::string unit;    ///< "FLOP/s", "B/s", "us", or "" of a ratio
  double before = 0;   ///< 0: the target had none
  double measured = 0;
  double spread = 0;  ///< median absolute deviation of the rounds, as a share of the time
};

struct MachineProfile {
  Json target;  ///< as read, but with the rates of this machine; npu-target(5)
  std::vector<MachineRate> rates;
  std::int32_t rounds = 0;
  bool disturbed = false;  ///< by other work on the machine; the target's description says so too
};

/// Measures what the roofline model needs for each device and link of a target: arithmetic by kind
/// of op and dtype, memory, launches, nodes and copies. Every time is the difference of two short
/// models that differ in the ops in question, run in turns. `progress` is called for each run; if
/// it returns false, Error kIo is thrown. Warns if other work on the machine disturbed it. Throws
/// Error kUnsupported if a device has no backend or the backend is missing. An op or dtype that a
/// device refuses keeps its rate, scaled like the device's float32 rate.
MachineProfile profile_machine(const ProfileMachineOptions& options,
                               const ProgressCallback& progress, Diagnostics& diagnostics);

/// A table for people: the measured rates beside those of the target.
std::string format_machine_profile(const MachineProfile& profile);

}  // namespace npu

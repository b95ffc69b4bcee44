// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace npu {

/// Long for a library to load, yet short for a user who waits: libtorch takes about a second.
constexpr std::chrono::milliseconds kProbeTime{20'000};

/// Runs `load` in a child process and reports how that ended: empty if it returned or threw an
/// exception (which the caller will meet as well when it loads the object); else a text such as
/// "crashes while it is loaded (signal 11, Segmentation fault)". A child that does not finish in
/// time is killed, whatever it does about signals. Its output is dropped.
std::string probe_load(const std::function<void()>& load,
                       std::chrono::milliseconds time = kProbeTime);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace npu {

/// Long for a library that loads, short for somebody who waits: libtorch takes about a second.
constexpr std::chrono::milliseconds kProbeTime{20'000};

/// Does `load` in a child process first, and says what became of it there: empty if it came back,
/// by returning or with an exception (which the caller meets, too, when it loads for itself); else
/// such as "crashes while it is loaded (signal 11, Segmentation fault)". A child that has not come
/// back in time is killed, whatever it does about signals. What it prints is dropped.
std::string probe_load(const std::function<void()>& load,
                       std::chrono::milliseconds time = kProbeTime);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Reads what Linux counts: the time on run queues of every thread (/proc/self/task/*/schedstat),
// involuntary switches (getrusage) and the run queue of the machine (/proc/loadavg). What is not
// there counts as quiet.
#include "profile/machine_watch.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace npu {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<double> waited_ms() {
  std::error_code error;
  std::optional<double> sum;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    double on_core_ns = 0;
    double waiting_ns = 0;
    if (file >> on_core_ns >> waiting_ns) sum = sum.value_or(0) + waiting_ns * 1e-6;
  }
  return sum;
}

std::int64_t involuntary_switches() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// "0.20 0.18 0.12 1/80 11206": the number before the slash.
std::int32_t runnable_threads() {
  std::ifstream file("/proc/loadavg");
  std::string word;
  for (int i = 0; i < 3; ++i) file >> word;
  std::int32_t running = 0;
  file >> running;
  return running;
}

}  // namespace

bool is_disturbed(const MachineLoad& load) noexcept {
  constexpr double kMostWaiting = 0.1;
  constexpr double kUncountedSwitchMs = 10;  // one switch in as long is the kernel's own business
  if (load.waited_ms) return *load.waited_ms > kMostWaiting * load.elapsed_ms;
  return static_cast<double>(load.involuntary_switches) > 1 + load.elapsed_ms / kUncountedSwitchMs;
}

MachineWatch::MachineWatch()
    : waited_ms_(waited_ms()), switches_(involuntary_switches()), start_ms_(now_ms()) {}

MachineLoad MachineWatch::load() const {
  MachineLoad load;
  load.elapsed_ms = now_ms() - start_ms_;
  if (const auto waited = waited_ms(); waited && waited_ms_) {
    // A thread that has ended takes what it waited with it.
    load.waited_ms = std::max(0.0, *waited - *waited_ms_);
  }
  load.involuntary_switches = involuntary_switches() - switches_;
  load.runnable = runnable_threads();
  return load;
}

}  // namespace npu

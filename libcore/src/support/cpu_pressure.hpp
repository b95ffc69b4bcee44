// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "support/descriptor.hpp"

namespace npu {

/// The number by which the system knows the calling thread.
std::int64_t this_thread_number() noexcept;

/// How long some threads of this process were ready to run, but had no CPU.
class CpuDelays {
 public:
  /// These threads from now on. Returns whether the system tells.
  bool watch(const std::vector<std::int64_t>& threads);
  /// Seconds since the last call, or since watch(), summed over threads; nothing if the system does
  /// not tell, or one of the threads has ended.
  std::optional<double> read();

 private:
  std::optional<std::uint64_t> total() const;

  std::vector<Descriptor> files_;
  std::optional<std::uint64_t> before_;  // nanoseconds
};

/// How many of the CPUs that this process may use are idle.
class IdleCpus {
 public:
  /// CPUs idle on average since the last call; nothing at the first call, or if the system does not
  /// tell. `now` in seconds.
  std::optional<double> read(double now);

 private:
  std::optional<double> before_;  // seconds of idle CPUs
  double read_at_ = 0.0;
};

/// The second number of /proc/PID/task/TID/schedstat: nanoseconds of waiting.
std::optional<std::uint64_t> parse_schedstat(std::string_view text);
/// From /proc/stat, in its ticks: how long the CPUs for which `is_mine` holds were idle.
std::optional<std::uint64_t> parse_idle_ticks(std::string_view text,
                                              const std::function<bool(std::size_t)>& is_mine);

}  // namespace npu

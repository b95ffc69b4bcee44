// SPDX-License-Identifier: Apache-2.0
// Reads what Linux says of memory, for the machine and for the control group (version 2, and 1 as
// container runtimes mount it). A few small files.
#include "support/free_memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace npu {
namespace {

std::optional<std::int64_t> number_in(const char* file) {
  std::ifstream stream(file);
  std::int64_t value = 0;
  if (stream >> value && value >= 0) return value;  // "max" is not a number
  return std::nullopt;
}

std::int64_t available_bytes() {
  std::ifstream stream("/proc/meminfo");
  std::string key;
  std::int64_t value = 0;
  std::string unit;
  while (stream >> key >> value >> unit) {
    if (key == "MemAvailable:") return value * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t free_memory_bytes() {
  static constexpr const char* kGroups[][2] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  std::int64_t free = available_bytes();
  for (const auto& [limit_file, usage_file] : kGroups) {
    const auto limit = number_in(limit_file);
    const auto usage = number_in(usage_file);
    if (!limit || !usage) continue;
    const std::int64_t left = std::max<std::int64_t>(*limit - *usage, 0);
    free = free > 0 ? std::min(free, left) : left;
  }
  return free;
}

}  // namespace npu

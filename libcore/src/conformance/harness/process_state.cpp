// SPDX-License-Identifier: Apache-2.0
// Reads /proc/self. Resident memory also grows without a leak, while an allocator warms up, so
// callers repeat a few times before they look first.
#include "conformance/harness/process_state.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace npu::conformance {

ProcessState ProcessState::now() {
  ProcessState state;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    long total = 0;
    long resident = 0;
    if (std::fscanf(file, "%ld %ld", &total, &resident) == 2) {  // NOLINT(cert-err34-c)
      state.resident_bytes = std::int64_t{resident} * ::sysconf(_SC_PAGESIZE);
    }
    std::fclose(file);
  }
  if (DIR* folder = ::opendir("/proc/self/fd")) {
    while (::readdir(folder) != nullptr) ++state.open_files;
    ::closedir(folder);
  }
  return state;
}

void expect_no_growth(Findings& found, const ProcessState& before, int repeats,
                      const std::string& what) {
  const ProcessState after = ProcessState::now();
  const std::int64_t grown = after.resident_bytes - before.resident_bytes;
  const std::int64_t allowed = std::max<std::int64_t>(4096 * std::int64_t{repeats}, 512 << 10);
  found.expect(grown <= allowed, "memory grows by " + std::to_string(grown >> 10) + " KiB in " +
                                     std::to_string(repeats) + " times of " + what);
  // A backend may open a file of its own once, late.
  found.expect(
      after.open_files - before.open_files <= repeats / 4,
      std::to_string(after.open_files - before.open_files) + " more files are open after " + what);
}

}  // namespace npu::conformance

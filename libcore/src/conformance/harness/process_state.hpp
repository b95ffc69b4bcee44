// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "conformance/harness/findings.hpp"

namespace npu::conformance {

/// Memory and files of this process, to see whether something that is repeated keeps growing.
struct ProcessState {
  std::int64_t resident_bytes = 0;
  std::int64_t open_files = 0;

  static ProcessState now();
};

/// Hardly more files than before, and not much more memory than `repeats` times 4 KiB, which is
/// what even a small leak takes.
void expect_no_growth(Findings& found, const ProcessState& before, int repeats,
                      const std::string& what);

}  // namespace npu::conformance

// SPDX-License-Identifier: Apache-2.0
// What kernels are made for, and the sizes of theirs that may be measured there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace npu::opencl {

/// What a plan is made for, by the facts of the device.
struct Machine {
  bool has_float64 = false;
  bool has_float16 = false;  ///< arithmetic and arrays, not only in memory
  bool is_cpu = false;
  /// The driver finishes a kernel when it is started, once for small ranges and once for others,
  /// and what it made is in the program's binary.
  bool finishes_at_start = false;
  std::int64_t max_group = 256;  ///< work items of a work group
  std::int64_t local_bytes = 16384;
  std::int64_t compute_units = 16;
  /// Sizes of tiles and work groups that were measured, by the key of a kernel.
  std::map<std::string, std::vector<std::int64_t>> tuning;
};

/// What may be measured of a kernel.
struct Tunable {
  std::string key;  ///< of its form and sizes
  /// The first is the rule's.
  std::vector<std::vector<std::int64_t>> candidates;
};

/// The measured sizes of a kernel; null if there are none.
const std::vector<std::int64_t>* tuned_sizes(const Machine& machine, const std::string& key);
/// Throws Error: the sizes in a table of tuning are none of this kernel on this device.
[[noreturn]] void refuse_tuning(const std::string& key, const std::vector<std::int64_t>& sizes);

}  // namespace npu::opencl

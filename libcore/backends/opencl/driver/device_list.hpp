// SPDX-License-Identifier: Apache-2.0
// The OpenCL devices of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/cl_handle.hpp"

namespace npu::opencl {

struct DeviceFacts {
  cl_device_id device = nullptr;
  std::string id;  ///< "opencl:0"
  std::string name;
  std::string vendor;
  std::string driver;
  std::string fingerprint;
  cl_device_type type = 0;
  bool is_usable = false;
  std::string why_not;
  std::uint64_t compute_units = 0;
  std::uint64_t clock_hz = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t largest_buffer = 0;
  std::uint64_t local_bytes = 0;
  std::uint64_t max_group = 0;  ///< work items of a work group
  bool has_float64 = false;
  bool has_float16 = false;  ///< arithmetic and arrays, not only in memory
  /// The driver finishes a kernel when it is started, once for small ranges and once for others,
  /// and what it made is in the program's binary.
  bool finishes_at_start = false;
};

/// In the order of the platforms; the same list for the life of the process. Without a device it
/// has one entry that is not usable and says what is missing.
const std::vector<DeviceFacts>& device_list();

}  // namespace npu::opencl

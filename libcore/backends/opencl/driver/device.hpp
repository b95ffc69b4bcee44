// SPDX-License-Identifier: Apache-2.0
// A device that is open: what calls of its driver need.
#pragma once

#include "driver/cl_handle.hpp"
#include "driver/device_list.hpp"

namespace npu::opencl {

struct OpenDevice {
  /// Throws ClError.
  explicit OpenDevice(const DeviceFacts& of);

  /// In order, and with times. Throws ClError.
  ClQueue make_queue() const;

  const DeviceFacts* facts;
  ClContext context;
  ClQueue queue;  ///< of blocking calls
};

}  // namespace npu::opencl

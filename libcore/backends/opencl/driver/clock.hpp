// SPDX-License-Identifier: Apache-2.0
// The device's clock beside the host's.
#pragma once

#include <mutex>

#include "driver/device.hpp"
#include "npu/backend.h"

namespace npu::opencl {

/// Tells what time it is on the clock that the driver dates commands with.
class DeviceClock {
 public:
  /// From any thread, beside anything else. Throws StatusError NPU_UNSUPPORTED if the driver dates
  /// nothing, ClError.
  npu_clock_sample sample(const OpenDevice& device);

 private:
  std::mutex mutex_;
  ClQueue queue_;  ///< of its own, so that nothing waits for a run; null until it is asked for
  ClMemory memory_;
};

}  // namespace npu::opencl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device_call.hpp"
#include "npu/backend.h"

namespace npu {

/// The host's structs of a report of memory, one for each memory of a device.
class ReportRoom {
 public:
  explicit ReportRoom(std::size_t memories)
      : bytes_(memories, sized<npu_memory_bytes>()), report_(sized<npu_memory_report>()) {
    for (npu_memory_bytes& each : bytes_) pointers_.push_back(&each);
    report_.memories = pointers_.data();
    report_.memory_count = pointers_.size();
  }
  ReportRoom(const ReportRoom&) = delete;
  ReportRoom& operator=(const ReportRoom&) = delete;

  npu_memory_report* get() noexcept { return &report_; }
  /// NPU_MEMORY_EXACT or NPU_MEMORY_BOUND.
  bool has_flag(std::uint64_t flag) const noexcept { return (report_.flags & flag) != 0; }
  std::uint64_t host_bytes() const noexcept { return report_.host_bytes; }
  const std::vector<npu_memory_bytes>& memories() const noexcept { return bytes_; }

 private:
  std::vector<npu_memory_bytes> bytes_;
  std::vector<npu_memory_bytes*> pointers_;
  npu_memory_report report_;
};

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "device/backend.hpp"

namespace npu {

/// The options of a device: what the host takes out of them, and what the backend gets.
struct DeviceOptions {
  std::uint32_t threads = 0;
  std::uint64_t memory_limit = 0;
  std::string instance;
  std::string own;  ///< of the backend, as JSON
};

/// Throws Error kUsage for a wrong value, and kInvalidGraph for a key that neither the host nor a
/// backend which states its keys knows.
DeviceOptions read_device_options(const Backend& backend, const std::string& text);

}  // namespace npu

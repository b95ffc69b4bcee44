// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/passes/tag.hpp"
#include "npu/target/select_devices.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Parses "DEVICE=GLOB", the value of --force. Throws Error kUsage.
ForceRule parse_force_rule(const std::string& text);

/// --devices and --exclude-device.
void add_device_options(Tool& tool, DeviceChoice& where);

}  // namespace npu::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/passes/tag.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Parses "DEVICE=GLOB", the value of --force. Throws Error kUsage.
ForceRule parse_force_rule(const std::string& text);

/// Which devices of a target npu-tag is to use.
struct DeviceArguments {
  std::vector<std::string> wanted;  ///< in this order; empty: all
  std::vector<std::string> excluded;
};
void add_device_options(Tool& tool, DeviceArguments& devices);

}  // namespace npu::cli

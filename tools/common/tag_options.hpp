// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/passes/tag.hpp"

namespace npu::cli {

/// Parses "DEVICE=GLOB", the value of --force. Throws Error kUsage.
ForceRule parse_force_rule(const std::string& text);

}  // namespace npu::cli

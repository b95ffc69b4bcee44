// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/profile/profile_gnn.hpp"
#include "tool.hpp"

namespace npu::cli {

/// Devices, the grid of sizes, and how often each point is timed.
void add_profile_options(Tool& tool, ProfileGnnOptions& options);

}  // namespace npu::cli

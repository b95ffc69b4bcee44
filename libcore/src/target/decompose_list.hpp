// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// The op types that a device may run as the ops that make them up: its `decompose`.
std::vector<std::string> decompose_list(const Target& target, std::string_view device);

/// Adds an error for every fault of the list in the description of a device, which is at `pointer`.
void check_decompose_list(const Json& device, const std::string& file, const std::string& pointer,
                          Diagnostics& diagnostics);

}  // namespace npu

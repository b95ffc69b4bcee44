// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/target/target.hpp"

namespace npu {

/// The built-in targets, one a line.
std::string format_targets();

/// The description of a target as JSON, as npu-target(5) has it.
std::string format_target(const Target& target);

/// What the devices of a target run, one alternative of one op a line: device, op type, dtypes,
/// rank, operands, conditions. `device` alone if it is not empty; throws Error kUsage if there is
/// none of that name.
std::string format_target_ops(const Target& target, const std::string& device);

}  // namespace npu

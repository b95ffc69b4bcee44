// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/target/target.hpp"

namespace npu {

/// The built-in targets, one per line.
std::string format_targets();

/// The description of a target as JSON, in the form of npu-target(5).
std::string format_target(const Target& target);

/// What the devices of a target run, one alternative of one op per line: device, op type, dtypes,
/// rank, operands, conditions. If `device` is not empty, lists only that device; throws Error
/// kUsage if there is none of that name.
std::string format_target_ops(const Target& target, const std::string& device);

}  // namespace npu

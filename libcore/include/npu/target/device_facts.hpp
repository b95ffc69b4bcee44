// SPDX-License-Identifier: Apache-2.0
// What a target says of its devices besides what placing ops takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "npu/target/target.hpp"

namespace npu {

/// `memory_bytes` of a device of the target; 0: not known.
std::int64_t device_memory_bytes(const Target& target, std::string_view device);

/// 32 hexadecimal digits that stand for what the device runs (ops, dtypes, rank), not for its
/// rates; empty if the target has no such device.
std::string device_rules_digest(const Target& target, std::string_view device);

}  // namespace npu

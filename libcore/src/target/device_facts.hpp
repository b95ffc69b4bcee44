// SPDX-License-Identifier: Apache-2.0
// Facts about a target's devices that are not needed for placing ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "npu/target/target.hpp"

namespace npu {

/// `memory_bytes` of a device of the target; 0: not known.
std::int64_t device_memory_bytes(const Target& target, std::string_view device);

/// `switch_us` of a device of the target: the time to go over to another program; nothing: not
/// known.
std::optional<double> device_switch_us(const Target& target, std::string_view device);

/// A digest of what the device runs (ops, dtypes, rank), not of its rates: 32 hexadecimal digits;
/// empty if the target has no such device.
std::string device_rules_digest(const Target& target, std::string_view device);

}  // namespace npu

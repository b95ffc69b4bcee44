// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace npu {

/// SplitMix64's mix: spreads numbers that are close to each other.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace npu

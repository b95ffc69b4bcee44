// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "support/elapsed.hpp"

namespace npu {

/// A deadline as backends take it: nanoseconds of CLOCK_MONOTONIC; 0: none.
inline std::uint64_t deadline_ns(const std::optional<Clock::time_point>& deadline) noexcept {
  if (!deadline) return 0;
  const auto since = std::chrono::nanoseconds(deadline->time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(since, 1));
}

}  // namespace npu

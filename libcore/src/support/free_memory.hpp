// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace npu {

/// Memory that this process and its children could still take without swapping: what the system has
/// to spare, and no more than its control group may grow, whose cache of files counts as taken. 0
/// where nobody says.
std::int64_t free_memory_bytes();

}  // namespace npu

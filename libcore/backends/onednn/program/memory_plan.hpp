// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "program/plan.hpp"

namespace npu::onednn {

/// Alignment of every buffer: a cache line, and the widest vector.
inline constexpr std::size_t kAlignment = 64;

/// Where the buffers of kind kArena lie in one piece of memory.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< by BufferId; meaningless for other kinds
  std::size_t arena_bytes = 0;
  std::size_t peak_live_bytes = 0;  ///< the least that any plan needs
};

MemoryPlan plan_memory(const Plan& plan);

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/plan_record.hpp"

namespace npu::onednn {

/// Memory that is needed from one step to another, both included.
struct LiveRange {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// What needs room in the arena: buffers of kind kArena that a step touches, by index, then the
/// scratch memory of steps, each with the place that the plan says.
struct ArenaRange {
  LiveRange range;
  std::uint64_t* offset = nullptr;
};
std::vector<ArenaRange> arena_ranges(PlanRecord& plan);

/// Gives each range a place, and the plan the size of its arena. Returns the bytes that are alive
/// at the same time at most, which no plan can do without.
std::size_t place_in_arena(PlanRecord& plan);

/// True if the places that a plan states are aligned, inside its arena, and apart from those of
/// everything that is alive at the same time.
bool arena_fits(PlanRecord& plan);

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Packs buffers that are never alive together into the same bytes of one arena.
//
// Greedy by size: largest buffer first, each at the lowest offset where it meets no buffer that is
// alive at the same step (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020). A buffer lives from the step that writes it first to the step that touches it
// last. O(buffers^2), which for the largest models (a few thousand buffers) is some milliseconds.
#include "program/memory_plan.hpp"

#include <algorithm>
#include <limits>

namespace npu::onednn {

namespace {

struct Interval {
  std::size_t buffer = 0;
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<Interval> live_ranges(const Plan& plan) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::vector<Interval> ranges(plan.buffers.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t bytes = plan.buffers[i].bytes;
    ranges[i] = {i, (bytes + kAlignment - 1) / kAlignment * kAlignment, kNever, 0};
  }
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    for (const Operand& operand : plan.steps[step].operands) {
      Interval& range = ranges[static_cast<std::size_t>(operand.buffer.value)];
      range.first = std::min(range.first, step);
      range.last = step;
    }
  }
  std::erase_if(ranges, [&](const Interval& range) {
    return plan.buffers[range.buffer].kind != BufferKind::kArena || range.first == kNever;
  });
  return ranges;
}

}  // namespace

MemoryPlan plan_memory(const Plan& plan) {
  MemoryPlan result;
  result.offsets.assign(plan.buffers.size(), 0);
  std::vector<Interval> ranges = live_ranges(plan);
  std::vector<std::ptrdiff_t> change(plan.steps.size() + 1, 0);
  for (const Interval& range : ranges) {
    change[range.first] += static_cast<std::ptrdiff_t>(range.bytes);
    change[range.last + 1] -= static_cast<std::ptrdiff_t>(range.bytes);
  }
  std::ptrdiff_t live = 0;
  for (const std::ptrdiff_t bytes : change) {
    live += bytes;
    result.peak_live_bytes = std::max(result.peak_live_bytes, static_cast<std::size_t>(live));
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Interval& a, const Interval& b) { return a.bytes > b.bytes; });
  std::vector<Interval> placed;  // by offset
  for (const Interval& range : ranges) {
    std::size_t offset = 0;
    for (const Interval& other : placed) {
      if (other.last < range.first || range.last < other.first) continue;
      const std::size_t begin = result.offsets[other.buffer];
      if (offset + range.bytes <= begin) break;
      offset = std::max(offset, begin + other.bytes);
    }
    result.offsets[range.buffer] = offset;
    result.arena_bytes = std::max(result.arena_bytes, offset + range.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::size_t value, const Interval& other) {
                                             return value < result.offsets[other.buffer];
                                           });
    placed.insert(position, range);
  }
  return result;
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Packs buffers that are never alive together into the same bytes of one
// arena, and checks such a packing.
//
// Greedy by size: largest buffer first, each at the lowest offset where it meets no buffer that is
// alive at the same step (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020). A buffer lives from the step that writes it first to the step that touches it
// last. O(buffers^2), which for the largest models (a few thousand buffers) is some milliseconds.
// The check walks the steps with those alive ordered by place: O(buffers * log(buffers)).
#include "program/memory_plan.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace npu::onednn {

namespace {

std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t peak_bytes(const std::vector<ArenaRange>& ranges, std::size_t steps) {
  std::vector<std::ptrdiff_t> change(steps + 1, 0);
  for (const auto& [range, offset] : ranges) {
    change[range.first] += static_cast<std::ptrdiff_t>(range.bytes);
    change[range.last + 1] -= static_cast<std::ptrdiff_t>(range.bytes);
  }
  std::ptrdiff_t live = 0;
  std::ptrdiff_t peak = 0;
  for (const std::ptrdiff_t bytes : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return static_cast<std::size_t>(peak);
}

}  // namespace

std::vector<ArenaRange> arena_ranges(PlanRecord& plan) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::vector<ArenaRange> ranges(plan.buffers.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ranges[i] = {{rounded(plan.buffers[i].bytes), kNever, 0}, &plan.buffers[i].offset};
  }
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    for (const OperandRecord& operand : plan.steps[step].operands) {
      LiveRange& range = ranges[operand.buffer].range;
      range.first = std::min(range.first, step);
      range.last = step;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != BufferKind::kArena || ranges[i].range.first == kNever) continue;
    ranges[kept++] = ranges[i];
  }
  ranges.resize(kept);
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    StepRecord& record = plan.steps[step];
    if (record.scratch_bytes == 0) continue;
    ranges.push_back({{rounded(record.scratch_bytes), step, step}, &record.scratch_offset});
  }
  return ranges;
}

std::size_t place_in_arena(PlanRecord& plan) {
  std::vector<ArenaRange> ranges = arena_ranges(plan);
  std::stable_sort(ranges.begin(), ranges.end(), [](const ArenaRange& a, const ArenaRange& b) {
    return a.range.bytes > b.range.bytes;
  });
  plan.arena_bytes = 0;
  std::vector<ArenaRange> placed;  // by offset
  for (const ArenaRange& each : ranges) {
    std::size_t offset = 0;
    for (const ArenaRange& other : placed) {
      if (other.range.last < each.range.first || each.range.last < other.range.first) continue;
      const std::size_t begin = *other.offset;
      if (offset + each.range.bytes <= begin) break;
      offset = std::max(offset, begin + other.range.bytes);
    }
    *each.offset = offset;
    plan.arena_bytes = std::max<std::uint64_t>(plan.arena_bytes, offset + each.range.bytes);
    const auto position = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [](std::size_t value, const ArenaRange& other) { return value < *other.offset; });
    placed.insert(position, each);
  }
  return peak_bytes(ranges, plan.steps.size());
}

bool arena_fits(PlanRecord& plan) {
  std::vector<ArenaRange> ranges = arena_ranges(plan);
  std::stable_sort(ranges.begin(), ranges.end(), [](const ArenaRange& a, const ArenaRange& b) {
    return a.range.first < b.range.first;
  });
  std::vector<const ArenaRange*> ending;  // by last step
  for (const ArenaRange& each : ranges) ending.push_back(&each);
  std::stable_sort(ending.begin(), ending.end(), [](const ArenaRange* a, const ArenaRange* b) {
    return a->range.last < b->range.last;
  });
  std::map<std::uint64_t, std::uint64_t> alive;  // offset to end
  std::size_t ended = 0;
  for (const ArenaRange& each : ranges) {
    for (; ending[ended]->range.last < each.range.first; ++ended) {
      alive.erase(*ending[ended]->offset);
    }
    const std::uint64_t begin = *each.offset;
    if (each.range.bytes == 0 || begin % kAlignment != 0 || begin > plan.arena_bytes ||
        each.range.bytes > plan.arena_bytes - begin) {
      return false;
    }
    const auto behind = alive.lower_bound(begin);
    if (behind != alive.end() && behind->first < begin + each.range.bytes) return false;
    if (behind != alive.begin() && std::prev(behind)->second > begin) return false;
    alive.emplace_hint(behind, begin, begin + each.range.bytes);
  }
  return true;
}

}  // namespace npu::onednn

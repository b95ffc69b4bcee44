// SPDX-License-Identifier: Apache-2.0
// Blocks that begin or end between the stages of an aggregation read or write a row for every edge.
// Where such a block takes longer than the whole layer, whose program never makes those rows, a
// device that has a share of the block would be done sooner with that share of the layer, and every
// other device with it: no plan has the block. On large graphs these blocks take most of a
// profile's time. O(entries + sizes * blocks) a point.
#include "gnn/profile/dominated_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr double kDominated = 1.5;
// Below, a block may take longer for launches alone, which larger sizes do not feel.
constexpr double kLeastMs = 1;
constexpr double kSameDegree = 1e-3;  // relative: edges are rounded
constexpr double kNever = std::numeric_limits<double>::infinity();

/// What was measured at one size, of one layer and one resource.
struct SizeTimes {
  double block = kNever;
  double layer = kNever;         // all stages on the block's device
  double shared_layer = kNever;  // on the fastest of the resource
  std::vector<const ProfileEntry*> blocks;
};

/// The least time for stages `first` to `last` by blocks that follow one another.
double least_chain(const SizeTimes& times, std::int32_t first, std::int32_t last) {
  std::vector<double> until(index_of(std::max(last - first + 2, 1)), kNever);
  until[0] = 0;
  for (std::int32_t stage = first; stage <= last; ++stage) {
    for (const ProfileEntry* block : times.blocks) {
      if (block->last != stage || block->first < first) continue;
      double& least = until[index_of(stage - first + 1)];
      least = std::min(least, until[index_of(block->first - first)] + block->ms);
    }
  }
  return until.back();
}

std::map<double, SizeTimes> smaller_sizes(const StageTable& table, const BlockPoint& point,
                                          std::int32_t stage_count) {
  const std::string& resource = table.devices[index_of(point.device)].resource;
  const double degree = static_cast<double>(point.m) / static_cast<double>(point.n);
  std::map<double, SizeTimes> sizes;  // by nodes
  for (const ProfileEntry& entry : table.entries) {
    if (entry.layer != point.layer || entry.n >= static_cast<double>(point.n) ||
        std::abs(entry.m / entry.n - degree) > kSameDegree * degree) {
      continue;
    }
    const std::int32_t device = table.find_device(entry.device);
    if (device < 0 || table.devices[index_of(device)].resource != resource) continue;
    SizeTimes& times = sizes[entry.n];
    times.blocks.push_back(&entry);
    const bool is_same = device == point.device;
    const bool is_whole = entry.first == 1 && entry.last == stage_count;
    if (is_same && entry.first == point.first && entry.last == point.last) times.block = entry.ms;
    if (is_whole && is_same) times.layer = entry.ms;
    if (is_whole) times.shared_layer = std::min(times.shared_layer, entry.ms);
  }
  return sizes;
}

}  // namespace

bool is_dominated(const StageTable& table, const BlockPoint& point, std::int32_t stage_count) {
  if (point.first == 1 && point.last == stage_count) return false;
  const bool is_only_resource =
      std::all_of(table.devices.begin(), table.devices.end(), [&](const ProfileDevice& device) {
        return device.resource == table.devices.front().resource;
      });
  bool is_shown = false;
  for (const auto& [n, times] : smaller_sizes(table, point, stage_count)) {
    if (times.block == kNever) continue;  // was left out there
    const double layer = times.layer < kNever ? times.layer : times.shared_layer;
    double block = times.block;
    if (is_only_resource) {
      block +=
          least_chain(times, 1, point.first - 1) + least_chain(times, point.last + 1, stage_count);
    }
    if (layer == kNever || block < kDominated * layer) return false;
    is_shown = is_shown || times.block >= kLeastMs;
  }
  return is_shown;
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Discrete-event simulation of a plan: list scheduling with one queue a device.
//
// Every step starts the task that can start first (ties: by device, then by priority). Its start is
// no later than that of any task that becomes ready afterwards, so the schedule is what work-
// conserving workers do. O(tasks * queued) at worst, O(tasks * devices) if nothing waits.
#include "npu/plan/simulate.hpp"

#include <algorithm>
#include <limits>

namespace npu {

SimResult simulate(const std::vector<SimItem>& items, const std::vector<std::int32_t>& resource_of,
                   double switch_ms) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Queued {
    std::int32_t item;
    std::int32_t segment;
    std::int32_t share;
  };
  std::vector<std::vector<Queued>> queues(resource_of.size());
  std::vector<std::vector<double>> ready(items.size());  // by item and segment
  std::vector<std::vector<std::int32_t>> open(items.size());
  std::size_t left = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ready[i].assign(items[i].segments.size() + 1, kNever);
    ready[i][0] = 0;
    for (std::size_t s = 0; s < items[i].segments.size(); ++s) {
      open[i].push_back(static_cast<std::int32_t>(items[i].segments[s].size()));
      for (std::size_t d = 0; d < items[i].segments[s].size(); ++d) {
        queues[static_cast<std::size_t>(items[i].segments[s][d].device)].push_back(
            {static_cast<std::int32_t>(i), static_cast<std::int32_t>(s),
             static_cast<std::int32_t>(d)});
        ++left;
      }
    }
  }
  std::vector<std::vector<double>> ends(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) ends[i].assign(items[i].segments.size(), 0);
  const std::size_t resource_count =
      resource_of.empty()
          ? 0
          : static_cast<std::size_t>(*std::max_element(resource_of.begin(), resource_of.end())) + 1;
  std::vector<double> free(resource_count, 0);
  std::vector<std::int32_t> cluster(resource_of.size(), -1);
  std::vector<std::size_t> head(resource_of.size(), 0);
  std::vector<std::vector<char>> taken(resource_of.size());
  for (std::size_t d = 0; d < queues.size(); ++d) taken[d].assign(queues[d].size(), 0);
  SimResult result;
  result.tasks.reserve(left);
  while (left > 0) {
    double best_start = kNever;
    std::size_t best_device = 0;
    std::size_t best_index = 0;
    for (std::size_t d = 0; d < queues.size(); ++d) {
      while (head[d] < queues[d].size() && taken[d][head[d]] != 0) ++head[d];
      const double idle_from = free[static_cast<std::size_t>(resource_of[d])];
      if (idle_from >= best_start) continue;
      for (std::size_t q = head[d]; q < queues[d].size(); ++q) {
        if (taken[d][q] != 0) continue;
        const Queued& task = queues[d][q];
        const double start = std::max(
            idle_from,
            ready[static_cast<std::size_t>(task.item)][static_cast<std::size_t>(task.segment)]);
        if (start < best_start) {
          best_start = start;
          best_device = d;
          best_index = q;
        }
        if (start <= idle_from) break;  // nothing behind it starts earlier
      }
    }
    const Queued task = queues[best_device][best_index];
    taken[best_device][best_index] = 1;
    --left;
    const SimItem& item = items[static_cast<std::size_t>(task.item)];
    const auto segment = static_cast<std::size_t>(task.segment);
    double length = item.segments[segment][static_cast<std::size_t>(task.share)].ms;
    if (cluster[best_device] != item.cluster) {
      if (cluster[best_device] >= 0) {
        length += switch_ms;
        ++result.switches;
      }
      cluster[best_device] = item.cluster;
    }
    const double end = best_start + length;
    free[static_cast<std::size_t>(resource_of[best_device])] = end;
    auto& segment_end = ends[static_cast<std::size_t>(task.item)][segment];
    segment_end = std::max(segment_end, end);
    if (--open[static_cast<std::size_t>(task.item)][segment] == 0) {
      ready[static_cast<std::size_t>(task.item)][segment + 1] = segment_end;
    }
    result.makespan_ms = std::max(result.makespan_ms, end);
    result.tasks.push_back({task.item, task.segment, task.share,
                            static_cast<std::int32_t>(best_device), best_start, end});
  }
  return result;
}

}  // namespace npu

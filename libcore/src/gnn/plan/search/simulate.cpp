// SPDX-License-Identifier: Apache-2.0
// Discrete-event simulation of a plan: list scheduling with one queue per device.
//
// Every step starts the task that can start first (ties: by device, then by priority). Its start is
// no later than that of any task that becomes ready afterwards, so the schedule is what work-
// conserving workers do. O(tasks * queued) at worst, O(tasks * devices) if nothing waits.
#include "gnn/plan/search/simulate.hpp"

#include <algorithm>
#include <limits>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Simulation {
 public:
  Simulation(const std::vector<SimItem>& items, const std::vector<std::int32_t>& resource_of,
             const std::vector<double>& switch_ms)
      : items_(items),
        resource_of_(resource_of),
        switch_ms_(switch_ms),
        queues_(resource_of.size()),
        states_(items.size()),
        cluster_(resource_of.size(), -1) {
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < items.size(); ++i) tasks += enqueue(i);
    const auto largest = std::max_element(resource_of.begin(), resource_of.end());
    free_.assign(largest == resource_of.end() ? 0 : index_of(*largest) + 1, 0);
    result_.tasks.reserve(tasks);
    left_ = tasks;
  }

  SimResult run() {
    for (; left_ > 0; --left_) {
      const Start next = earliest();
      Queue& queue = queues_[next.device];
      queue.taken[next.index] = 1;
      start(queue.tasks[next.index], next.device, next.ms);
    }
    return std::move(result_);
  }

 private:
  struct Queued {
    std::int32_t item;
    std::int32_t segment;
    std::int32_t share;
  };
  struct Queue {  // of a device, in order of priority
    std::vector<Queued> tasks;
    std::vector<char> taken;
    std::size_t head = 0;  // everything before it is taken
  };
  struct ItemState {  // by segment
    std::vector<double> ready;
    std::vector<double> end;
    std::vector<std::int32_t> open;
  };
  struct Start {
    double ms = kNever;
    std::size_t device = 0;
    std::size_t index = 0;  // in the device's queue
  };

  // Puts the tasks of an item into the queues; returns how many.
  std::size_t enqueue(std::size_t i) {
    const auto& segments = items_[i].segments;
    ItemState& state = states_[i];
    state.ready.assign(segments.size() + 1, kNever);
    state.ready[0] = 0;
    state.end.assign(segments.size(), 0);
    std::size_t tasks = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      state.open.push_back(static_cast<std::int32_t>(segments[s].size()));
      for (std::size_t d = 0; d < segments[s].size(); ++d) {
        Queue& queue = queues_[index_of(segments[s][d].device)];
        queue.tasks.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(s),
                               static_cast<std::int32_t>(d)});
        queue.taken.push_back(0);
      }
      tasks += segments[s].size();
    }
    return tasks;
  }

  // The task that can start first.
  Start earliest() {
    Start best;
    for (std::size_t d = 0; d < queues_.size(); ++d) {
      Queue& queue = queues_[d];
      while (queue.head < queue.tasks.size() && queue.taken[queue.head] != 0) ++queue.head;
      const double idle_from = free_[index_of(resource_of_[d])];
      if (idle_from >= best.ms) continue;
      for (std::size_t q = queue.head; q < queue.tasks.size(); ++q) {
        if (queue.taken[q] != 0) continue;
        const Queued& task = queue.tasks[q];
        const double start =
            std::max(idle_from, states_[index_of(task.item)].ready[index_of(task.segment)]);
        if (start < best.ms) best = {start, d, q};
        if (start <= idle_from) break;  // nothing after it starts earlier
      }
    }
    return best;
  }

  void start(const Queued& task, std::size_t device, double start_ms) {
    const SimItem& item = items_[index_of(task.item)];
    const auto segment = index_of(task.segment);
    double length = item.segments[segment][index_of(task.share)].ms;
    if (cluster_[device] != item.cluster) {
      if (cluster_[device] >= 0) {
        const double ms = switch_ms_.empty() ? 0 : switch_ms_[device];
        length += ms;
        result_.switching_ms += ms;
        ++result_.switches;
      }
      cluster_[device] = item.cluster;
    }
    const double end = start_ms + length;
    free_[index_of(resource_of_[device])] = end;
    ItemState& state = states_[index_of(task.item)];
    state.end[segment] = std::max(state.end[segment], end);
    if (--state.open[segment] == 0) state.ready[segment + 1] = state.end[segment];
    result_.makespan_ms = std::max(result_.makespan_ms, end);
    result_.tasks.push_back(
        {task.item, task.segment, task.share, static_cast<std::int32_t>(device), start_ms, end});
  }

  const std::vector<SimItem>& items_;
  const std::vector<std::int32_t>& resource_of_;
  const std::vector<double>& switch_ms_;  // by device; empty: none
  std::vector<Queue> queues_;             // by device
  std::vector<ItemState> states_;         // by item
  std::vector<std::int32_t> cluster_;     // by device: of its last task
  std::vector<double> free_;              // by resource
  std::size_t left_ = 0;
  SimResult result_;
};

}  // namespace

SimResult simulate(const std::vector<SimItem>& items, const std::vector<std::int32_t>& resource_of,
                   const std::vector<double>& switch_ms) {
  return Simulation(items, resource_of, switch_ms).run();
}

}  // namespace npu::gnn

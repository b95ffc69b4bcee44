// SPDX-License-Identifier: Apache-2.0
// Executes the clusters of a layer event by event to check a plan: every step looks at all
// remaining tasks and starts the one that can start first. O(tasks^2).
#include "gnn/plan/replay_clusters.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace npu::gnn {
namespace {

class Replay {
 public:
  Replay(const std::vector<ReplayTask>& tasks, double switch_ms)
      : tasks_(tasks), switch_ms_(switch_ms), done_(tasks.size(), false) {
    for (const ReplayTask& task : tasks) ++segments_[{task.position, task.segment}].open;
  }

  double run() {
    double makespan = 0;
    while (const std::optional<Start> next = earliest()) {
      makespan = std::max(makespan, finish(tasks_[next->task], next->ms));
      done_[next->task] = true;
    }
    return makespan;
  }

 private:
  struct Segment {
    std::int32_t open = 0;  // tasks
    double end = 0;         // of those that are done
  };
  struct Start {
    std::size_t task = 0;
    double ms = 0;
  };

  // The task that can start first; nothing if none is left.
  std::optional<Start> earliest() {
    std::optional<Start> first;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (done_[t]) continue;
      const ReplayTask& task = tasks_[t];
      double ready = 0;
      if (task.segment > 0) {
        const Segment& before = segments_[{task.position, task.segment - 1}];
        if (before.open > 0) continue;
        ready = before.end;
      }
      const double start = std::max(ready, free_at_[task.resource]);
      const auto rank = [&](std::size_t other) {
        return std::tuple(tasks_[other].device, tasks_[other].position);
      };
      if (!first || start < first->ms || (start == first->ms && rank(t) < rank(first->task))) {
        first = {t, start};
      }
    }
    return first;
  }

  // Runs a task from `start` on; returns its end.
  double finish(const ReplayTask& task, double start) {
    double end = start + task.ms;
    const auto [where, is_first] = cluster_on_.emplace(task.device, task.cluster);
    if (!is_first && where->second != task.cluster) {
      end += switch_ms_;
      where->second = task.cluster;
    }
    Segment& segment = segments_[{task.position, task.segment}];
    --segment.open;
    segment.end = std::max(segment.end, end);
    free_at_[task.resource] = end;
    return end;
  }

  const std::vector<ReplayTask>& tasks_;
  double switch_ms_;
  std::vector<bool> done_;
  std::map<std::pair<std::size_t, std::size_t>, Segment> segments_;  // by position and segment
  std::map<std::int32_t, double> free_at_;                           // by resource
  std::map<std::int32_t, std::int64_t> cluster_on_;                  // by device
};

}  // namespace

double replay_clusters(const std::vector<ReplayTask>& tasks, double switch_ms) {
  return Replay(tasks, switch_ms).run();
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Executes the clusters of a layer event by event to check a plan: every step looks at all
// remaining tasks and starts the one that can start first. O(tasks^2).
#include "gnn/plan/search/replay_clusters.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

class Replay {
 public:
  Replay(const std::vector<ReplayTask>& tasks, const std::vector<double>& switch_ms)
      : tasks_(tasks), switch_ms_(switch_ms), done_(tasks.size(), false) {
    for (const ReplayTask& task : tasks) ++segments_[{task.position, task.segment}].open;
  }

  ReplayResult run() {
    while (const std::optional<Start> next = earliest()) {
      result_.makespan_ms = std::max(result_.makespan_ms, finish(tasks_[next->task], next->ms));
      done_[next->task] = true;
    }
    return result_;
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
      const double ms = switch_ms_.empty() ? 0 : switch_ms_.at(index_of(task.device));
      end += ms;
      result_.switching_ms += ms;
      ++result_.switches;
      where->second = task.cluster;
    }
    Segment& segment = segments_[{task.position, task.segment}];
    --segment.open;
    segment.end = std::max(segment.end, end);
    free_at_[task.resource] = end;
    return end;
  }

  const std::vector<ReplayTask>& tasks_;
  const std::vector<double>& switch_ms_;
  std::vector<bool> done_;
  ReplayResult result_;
  std::map<std::pair<std::size_t, std::size_t>, Segment> segments_;  // by position and segment
  std::map<std::int32_t, double> free_at_;                           // by resource
  std::map<std::int32_t, std::int64_t> cluster_on_;                  // by device
};

}  // namespace

ReplayResult replay_clusters(const std::vector<ReplayTask>& tasks,
                             const std::vector<double>& switch_ms) {
  return Replay(tasks, switch_ms).run();
}

}  // namespace npu::gnn

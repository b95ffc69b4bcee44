// SPDX-License-Identifier: Apache-2.0
// Puts fused nodes that have a device into the fewest runs on one device each.
//
// The current device takes every node whose producers are done, until none of its nodes is ready;
// then another device continues. A run is one partition; since it only ever waits for earlier runs,
// partitions cannot depend on each other in a cycle.
//
// For two devices that is optimal: by induction, after i runs it has done every node that any other
// schedule of i runs beginning with the same device has done. Both first devices are tried. For
// more devices the problem contains the shortest common supersequence (one chain per sequence),
// which is NP-hard: the next device is then the one with the ready node that has the most device
// changes still below it, and every first device is tried. O(devices * (nodes + edges)).
#include "partition/device_runs.hpp"

#include <algorithm>

#include "partition/plan_builder.hpp"

namespace npu {
namespace {

/// Device changes on the longest path (counted in changes) from each fused node to a sink.
std::vector<std::int32_t> changes_below(const FusedGraph& fused) {
  std::vector<std::int32_t> changes(fused.size(), 0);
  for (std::size_t i = fused.order.size(); i-- > 0;) {
    const std::int32_t fused_node = fused.order[i];
    for (const std::int32_t next : fused.successors(fused_node)) {
      const std::int32_t step = fused.device[static_cast<std::size_t>(next)] !=
                                fused.device[static_cast<std::size_t>(fused_node)];
      auto& value = changes[static_cast<std::size_t>(fused_node)];
      value = std::max(value, changes[static_cast<std::size_t>(next)] + step);
    }
  }
  return changes;
}

class RunScheduler {
 public:
  explicit RunScheduler(const FusedGraph& fused) : fused_(fused), changes_(changes_below(fused)) {}

  std::vector<DeviceRun> schedule(std::int32_t first_device) {
    waiting_ = fused_.predecessor_count;
    ready_.assign(fused_.device_names.size(), {});
    urgency_.assign(fused_.device_names.size(), -1);
    for (const std::int32_t fused_node : fused_.order) {
      if (waiting_[static_cast<std::size_t>(fused_node)] == 0) push(fused_node);
    }
    std::vector<DeviceRun> runs;
    std::int32_t device = first_device;
    while (device >= 0) {
      DeviceRun& run = runs.emplace_back(DeviceRun{device, {}});
      take_all(device, run.fused_nodes);
      device = next_device();
    }
    return runs;
  }

 private:
  void push(std::int32_t fused_node) {
    const auto device =
        static_cast<std::size_t>(fused_.device[static_cast<std::size_t>(fused_node)]);
    ready_[device].push_back(fused_node);
    urgency_[device] = std::max(urgency_[device], changes_[static_cast<std::size_t>(fused_node)]);
  }

  void take_all(std::int32_t device, std::vector<std::int32_t>& taken) {
    auto& queue = ready_[static_cast<std::size_t>(device)];
    for (std::size_t i = 0; i < queue.size(); ++i) {  // grows while it runs
      const std::int32_t fused_node = queue[i];
      taken.push_back(fused_node);
      for (const std::int32_t next : fused_.successors(fused_node)) {
        if (--waiting_[static_cast<std::size_t>(next)] == 0) push(next);
      }
    }
    queue.clear();
    urgency_[static_cast<std::size_t>(device)] = -1;
  }

  std::int32_t next_device() const {
    const auto best = std::max_element(urgency_.begin(), urgency_.end());
    return best == urgency_.end() || *best < 0 ? -1
                                               : static_cast<std::int32_t>(best - urgency_.begin());
  }

  const FusedGraph& fused_;
  std::vector<std::int32_t> changes_;
  std::vector<std::int32_t> waiting_;
  std::vector<std::vector<std::int32_t>> ready_;
  std::vector<std::int32_t>
      urgency_;  // by device: most changes below a ready fused node, -1 if none is ready
};

std::int64_t price_of(const std::vector<DeviceRun>& runs, std::span<const std::int64_t> launch) {
  if (launch.empty()) return static_cast<std::int64_t>(runs.size());
  std::int64_t price = 0;
  for (const DeviceRun& run : runs) price += launch[static_cast<std::size_t>(run.device)];
  return price;
}

}  // namespace

std::vector<DeviceRun> fewest_device_runs(const FusedGraph& fused,
                                          std::span<const std::int64_t> launch) {
  std::vector<char> has_source(fused.device_names.size(), 0);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    if (fused.predecessor_count[u] == 0) has_source[static_cast<std::size_t>(fused.device[u])] = 1;
  }
  RunScheduler scheduler(fused);
  std::vector<DeviceRun> best;
  for (std::size_t d = 0; d < has_source.size(); ++d) {
    if (has_source[d] == 0) continue;
    std::vector<DeviceRun> runs = scheduler.schedule(static_cast<std::int32_t>(d));
    if (best.empty() || price_of(runs, launch) < price_of(best, launch)) best = std::move(runs);
  }
  return best;
}

void append_runs(PartitionPlan& plan, const FusedGraph& fused, const std::vector<DeviceRun>& runs) {
  for (const DeviceRun& run : runs) {
    Partition& partition = plan.partitions.emplace_back();
    partition.device = fused.device_names[static_cast<std::size_t>(run.device)];
    for (const std::int32_t fused_node : run.fused_nodes) {
      const auto& members = fused.members[static_cast<std::size_t>(fused_node)];
      partition.nodes.insert(partition.nodes.end(), members.begin(), members.end());
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
  }
}

PartitionPlan plan_of_runs(const Graph& graph, const FusedGraph& fused,
                           const std::vector<DeviceRun>& runs, std::string strategy) {
  PartitionPlan plan;
  plan.strategy = std::move(strategy);
  append_runs(plan, fused, runs);
  connect_partitions(graph, plan);
  return plan;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The convex strategy: fewest partitions by dependence.
//
// Nodes of one device run in waves: the current device takes every node whose producers are done,
// until none of its own is ready, then another device goes on. A wave is one partition; since it
// only ever waits for earlier waves, partitions cannot depend on each other in a cycle.
//
// For two devices the greedy wave is optimal: by induction, after i waves that begin with the same
// device it has done every node that any other schedule of i waves has done. Both first devices are
// tried. For more devices the problem contains the shortest common supersequence (one chain per
// sequence), which is NP-hard: the next device is then the one with the ready node that has the
// most device changes still below it, and every first device is tried.
//
// Fusion groups are contracted to single units before. O(devices * (nodes + edges)).
#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "npu/partition/strategies.hpp"
#include "npu/support/error.hpp"
#include "partition/plan_builder.hpp"
#include "partition/unit_graph.hpp"
#include "partition/waves.hpp"

namespace npu {
namespace {

/// Device changes on the longest path (counted in changes) from each unit to a sink.
std::vector<std::int32_t> changes_below(const UnitGraph& units) {
  std::vector<std::int32_t> changes(units.size(), 0);
  for (std::size_t i = units.order.size(); i-- > 0;) {
    const std::int32_t unit = units.order[i];
    for (const std::int32_t next : units.successors(unit)) {
      const std::int32_t step = units.device[static_cast<std::size_t>(next)] !=
                                units.device[static_cast<std::size_t>(unit)];
      auto& value = changes[static_cast<std::size_t>(unit)];
      value = std::max(value, changes[static_cast<std::size_t>(next)] + step);
    }
  }
  return changes;
}

class WaveScheduler {
 public:
  explicit WaveScheduler(const UnitGraph& units) : units_(units), changes_(changes_below(units)) {}

  std::vector<Wave> schedule(std::int32_t first_device) {
    waiting_ = units_.predecessor_count;
    ready_.assign(units_.device_names.size(), {});
    urgency_.assign(units_.device_names.size(), -1);
    for (const std::int32_t unit : units_.order) {
      if (waiting_[static_cast<std::size_t>(unit)] == 0) push(unit);
    }
    std::vector<Wave> waves;
    std::int32_t device = first_device;
    while (device >= 0) {
      Wave& wave = waves.emplace_back(Wave{device, {}});
      run(device, wave.units);
      device = next_device();
    }
    return waves;
  }

 private:
  void push(std::int32_t unit) {
    const auto device = static_cast<std::size_t>(units_.device[static_cast<std::size_t>(unit)]);
    ready_[device].push_back(unit);
    urgency_[device] = std::max(urgency_[device], changes_[static_cast<std::size_t>(unit)]);
  }

  void run(std::int32_t device, std::vector<std::int32_t>& taken) {
    auto& queue = ready_[static_cast<std::size_t>(device)];
    for (std::size_t i = 0; i < queue.size(); ++i) {  // grows while it runs
      const std::int32_t unit = queue[i];
      taken.push_back(unit);
      for (const std::int32_t next : units_.successors(unit)) {
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

  const UnitGraph& units_;
  std::vector<std::int32_t> changes_;
  std::vector<std::int32_t> waiting_;
  std::vector<std::vector<std::int32_t>> ready_;
  std::vector<std::int32_t>
      urgency_;  // by device: most changes below a ready unit, -1 if none is ready
};

std::int64_t price_of(const std::vector<Wave>& waves, std::span<const std::int64_t> launch) {
  if (launch.empty()) return static_cast<std::int64_t>(waves.size());
  std::int64_t price = 0;
  for (const Wave& wave : waves) price += launch[static_cast<std::size_t>(wave.device)];
  return price;
}

}  // namespace

std::vector<Wave> fewest_waves(const UnitGraph& units, std::span<const std::int64_t> launch) {
  std::vector<char> has_source(units.device_names.size(), 0);
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (units.predecessor_count[u] == 0) has_source[static_cast<std::size_t>(units.device[u])] = 1;
  }
  WaveScheduler scheduler(units);
  std::vector<Wave> best;
  for (std::size_t d = 0; d < has_source.size(); ++d) {
    if (has_source[d] == 0) continue;
    std::vector<Wave> waves = scheduler.schedule(static_cast<std::int32_t>(d));
    if (best.empty() || price_of(waves, launch) < price_of(best, launch)) best = std::move(waves);
  }
  return best;
}

PartitionPlan plan_of_waves(const Graph& graph, const UnitGraph& units,
                            const std::vector<Wave>& waves, std::string strategy) {
  PartitionPlan plan;
  plan.strategy = std::move(strategy);
  for (const Wave& wave : waves) {
    Partition& partition = plan.partitions.emplace_back();
    partition.device = units.device_names[static_cast<std::size_t>(wave.device)];
    for (const std::int32_t unit : wave.units) {
      const auto& members = units.members[static_cast<std::size_t>(unit)];
      partition.nodes.insert(partition.nodes.end(), members.begin(), members.end());
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
  }
  connect_partitions(graph, plan);
  return plan;
}

PartitionPlan partition_convex(const Graph& graph) {
  const UnitGraph units = build_unit_graph(graph);
  return plan_of_waves(graph, units, fewest_waves(units), "convex");
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/partition/partition_plan.hpp"
#include "partition/fused_graph.hpp"

namespace npu {

/// Fused nodes that run one after another on one device.
struct DeviceRun {
  std::int32_t device = 0;
  std::vector<std::int32_t> fused_nodes;
};

/// The fewest device runs, or the cheapest if `launch` has a price for each device.
std::vector<DeviceRun> fewest_device_runs(const FusedGraph& fused,
                                          std::span<const std::int64_t> launch = {});

/// Appends each device run to `plan` as a partition, without boundaries and steps.
void append_runs(PartitionPlan& plan, const FusedGraph& fused, const std::vector<DeviceRun>& runs);

/// Each device run as a partition, with the transfers between them.
PartitionPlan plan_of_runs(const Graph& graph, const FusedGraph& fused,
                           const std::vector<DeviceRun>& runs, std::string strategy);

}  // namespace npu

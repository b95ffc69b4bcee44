// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/partition/partition_plan.hpp"
#include "partition/unit_graph.hpp"

namespace npu {

/// Units that run one after another on one device.
struct Wave {
  std::int32_t device = 0;
  std::vector<std::int32_t> units;
};

/// The fewest waves, or the cheapest where `launch` has a price for each device; see convex.cpp.
std::vector<Wave> fewest_waves(const UnitGraph& units, std::span<const std::int64_t> launch = {});

/// Each wave as a partition, with the transfers between them.
PartitionPlan plan_of_waves(const Graph& graph, const UnitGraph& units,
                            const std::vector<Wave>& waves, std::string strategy);

}  // namespace npu

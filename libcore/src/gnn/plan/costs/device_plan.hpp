// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace npu::gnn {

/// The part of a segment that one device computes.
struct GroupShare {
  std::int32_t device = 0;
  std::int32_t percent = 100;  ///< of the owned nodes
  bool operator==(const GroupShare&) const = default;
};

/// Consecutive stages that run on a group of devices.
struct StageSegment {
  std::int32_t first = 1;
  std::int32_t last = 1;
  std::vector<GroupShare> shares;  ///< devices ascending, percents sum up to 100
  bool operator==(const StageSegment&) const = default;
};

/// How the stages of a subgraph are spread over devices: its segments run one after the other, each
/// on its own group of devices. No device is in two segments.
struct DevicePlan {
  std::vector<StageSegment> segments;
  bool operator==(const DevicePlan&) const = default;
};

/// "cpu[1-4]|npu[5-7]", "cpu:37+gpu:63[1-7]".
std::string device_plan_text(const DevicePlan& device_plan,
                             const std::vector<std::string>& device_names);

/// Every way to cut `stage_count` stages into at most `max_segments` contiguous segments and to
/// give each its own non-empty group of devices, in a fixed order with fewer segments first.
/// Percents are left at 0 in groups of more than one device.
std::vector<DevicePlan> enumerate_device_plans(std::int32_t stage_count, std::int32_t device_count,
                                               std::int32_t max_segments);

}  // namespace npu::gnn

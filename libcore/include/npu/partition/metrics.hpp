// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "npu/cost/cost_model.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What `npu.partition.metrics` holds and --assert compares; times in microseconds.
struct PlanMetrics {
  std::int64_t partitions = 0;
  std::map<std::string, std::int64_t> partitions_by_device;  ///< every device of the target
  std::map<std::string, std::int64_t> nodes_by_device;
  std::int64_t transfers = 0;            ///< transfer steps
  std::int64_t transferred_tensors = 0;  ///< listed by the transfer steps
  std::int64_t transfer_bytes = 0;
  std::int64_t copied_tensors = 0;  ///< distinct (tensor, device): what npu-run copies
  std::int64_t copied_bytes = 0;
  double predicted_us = 0;    ///< partitions and copies one after another
  double launch_us = 0;       ///< part of predicted_us: launching the partitions
  double all_on_last_us = 0;  ///< the whole graph on the target's last device, which runs every op
};

/// Predicted times of a plan's steps, in microseconds.
struct PlanTimes {
  std::vector<double> partition_us;  ///< by partition: its nodes plus the device's launch overhead
  std::vector<double> transfer_us;   ///< by transfer
};

PlanTimes plan_times(const Graph& graph, const PartitionPlan& plan, const Target& target,
                     const CostModel& cost = roofline_cost());

PlanMetrics plan_metrics(const Graph& graph, const PartitionPlan& plan, const Target& target,
                         const CostModel& cost = roofline_cost());
/// The same from times that the caller has already.
PlanMetrics plan_metrics(const Graph& graph, const PartitionPlan& plan, const Target& target,
                         const CostModel& cost, const PlanTimes& times);

/// Predicted time of one partition: its nodes plus the device's launch overhead.
double partition_us(const Graph& graph, const Partition& partition, const Target& target,
                    const CostModel& cost = roofline_cost());
/// Predicted time of a transfer's tensors over their links.
double plan_transfer_us(const Graph& graph, const PartitionPlan& plan, const Transfer& transfer,
                        const Target& target, const CostModel& cost = roofline_cost());

}  // namespace npu

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
  double launch_us = 0;       ///< of it, what launching the partitions takes
  double scheduling_us = 0;   ///< launch_us, and what starting the copies takes
  double all_on_last_us = 0;  ///< the whole graph on the target's last device, which runs every op
};

/// Predicted times of a plan's steps, in microseconds.
struct PlanTimes {
  std::vector<double> partition_us;  ///< by partition: its nodes plus the device's launch overhead
  std::vector<double> transfer_us;   ///< by transfer
};

/// What the partitions of a plan offer to a device, and hold there.
struct PlanWorkload {
  double parallelism = 1;        ///< work of the nodes over the longest chains of partitions
  double least_parallelism = 1;  ///< of the partition where that is least, of those with work
  std::int64_t peak_bytes = 0;   ///< most that one partition holds at once, weights included
  /// Of peak_bytes: results of element-wise ops that could be computed again where they are read
  /// next, from operands that are there anyway; and the work of that.
  std::int64_t recomputable_bytes = 0;
  double recompute_flops = 0;
};
PlanWorkload plan_workload(const Graph& graph, const PartitionPlan& plan, const Target& target,
                           const CostModel& cost = roofline_cost());

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

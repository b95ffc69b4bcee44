// SPDX-License-Identifier: Apache-2.0
// Counts the partitions and transfers of a plan and predicts its times. O(nodes + edges).
#include "npu/partition/metrics.hpp"

#include <set>

#include "support/checked.hpp"

namespace npu {
namespace {

const Device& device_named(const Target& target, const std::string& name) {
  const Device* device = target.find_device(name);
  if (device == nullptr) {
    throw Error(ErrorCode::kInvalidGraph,
                "device '" + name + "' is not in target '" + target.name + "'; run npu-tag again");
  }
  return *device;
}

const std::string& source_device(const Graph& graph, TensorId id) {
  return *graph.node(graph.tensor(id).producer).device;
}

}  // namespace

double partition_us(const Graph& graph, const Partition& partition, const Target& target,
                    const CostModel& cost) {
  const Device& device = device_named(target, partition.device);
  double total = cost.launch_us(device);
  for (const NodeId id : partition.nodes) total += cost.node_us(graph, id, device);
  return total;
}

double plan_transfer_us(const Graph& graph, const PartitionPlan& plan, const Transfer& transfer,
                        const Target& target, const CostModel& cost) {
  const std::string& from = plan.partitions[static_cast<std::size_t>(transfer.from)].device;
  double total = 0;
  for (const TensorId id : transfer.tensors) {
    total += cost.tensor_us(graph, id, target, from, transfer.to_device);
  }
  return total;
}

PlanTimes plan_times(const Graph& graph, const PartitionPlan& plan, const Target& target,
                     const CostModel& cost) {
  PlanTimes times;
  for (const Partition& partition : plan.partitions) {
    times.partition_us.push_back(partition_us(graph, partition, target, cost));
  }
  for (const Transfer& transfer : plan.transfers) {
    times.transfer_us.push_back(plan_transfer_us(graph, plan, transfer, target, cost));
  }
  return times;
}

PlanMetrics plan_metrics(const Graph& graph, const PartitionPlan& plan, const Target& target,
                         const CostModel& cost) {
  PlanTimes times;  // transfers are not needed
  for (const Partition& partition : plan.partitions) {
    times.partition_us.push_back(partition_us(graph, partition, target, cost));
  }
  return plan_metrics(graph, plan, target, cost, times);
}

PlanMetrics plan_metrics(const Graph& graph, const PartitionPlan& plan, const Target& target,
                         const CostModel& cost, const PlanTimes& times) {
  PlanMetrics metrics;
  for (const Device& device : target.devices) {
    metrics.partitions_by_device[device.name] = 0;
    metrics.nodes_by_device[device.name] = 0;
  }
  metrics.partitions = static_cast<std::int64_t>(plan.partitions.size());
  for (const Partition& partition : plan.partitions) {
    metrics.launch_us += cost.launch_us(device_named(target, partition.device));
    ++metrics.partitions_by_device[partition.device];
    metrics.nodes_by_device[partition.device] += static_cast<std::int64_t>(partition.nodes.size());
  }
  for (const double us : times.partition_us) metrics.predicted_us += us;
  metrics.transfers = static_cast<std::int64_t>(plan.transfers.size());
  std::set<std::pair<std::int32_t, std::string>> copied;
  for (const Transfer& transfer : plan.transfers) {
    metrics.transferred_tensors += static_cast<std::int64_t>(transfer.tensors.size());
    metrics.transfer_bytes = saturating_add(metrics.transfer_bytes, transfer.bytes);
    for (const TensorId id : transfer.tensors) {
      if (source_device(graph, id) == transfer.to_device) continue;
      if (!copied.emplace(id.value, transfer.to_device).second) continue;
      const std::int64_t bytes = graph.tensor(id).bytes();
      ++metrics.copied_tensors;
      metrics.copied_bytes = saturating_add(metrics.copied_bytes, bytes);
      const std::string& from = source_device(graph, id);
      metrics.predicted_us += cost.tensor_us(graph, id, target, from, transfer.to_device);
      metrics.scheduling_us += cost.transfer_us(target, from, transfer.to_device, 0);
    }
  }
  metrics.scheduling_us += metrics.launch_us;
  const Device& last = target.devices.back();
  if (!graph.nodes().empty()) metrics.all_on_last_us = cost.launch_us(last);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    metrics.all_on_last_us += cost.node_us(graph, NodeId{static_cast<std::int32_t>(n)}, last);
  }
  return metrics;
}

}  // namespace npu

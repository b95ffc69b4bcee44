// SPDX-License-Identifier: Apache-2.0
// Counts and predicts what a plan costs. O(nodes + edges).
#include "npu/partition/metrics.hpp"

#include <cmath>
#include <set>

#include "npu/support/checked.hpp"
#include "npu/support/text.hpp"

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

// Rounded so that documents do not differ in the last bits between compilers.
double rounded_us(double value) { return std::round(value * 1000) / 1000; }

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

PlanMetrics plan_metrics(const Graph& graph, const PartitionPlan& plan, const Target& target,
                         const CostModel& cost) {
  PlanMetrics metrics;
  for (const Device& device : target.devices) {
    metrics.partitions_by_device[device.name] = 0;
    metrics.nodes_by_device[device.name] = 0;
  }
  metrics.partitions = static_cast<std::int64_t>(plan.partitions.size());
  for (const Partition& partition : plan.partitions) {
    ++metrics.partitions_by_device[partition.device];
    metrics.nodes_by_device[partition.device] += static_cast<std::int64_t>(partition.nodes.size());
    metrics.predicted_us += partition_us(graph, partition, target, cost);
  }
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
      metrics.predicted_us +=
          cost.tensor_us(graph, id, target, source_device(graph, id), transfer.to_device);
    }
  }
  const Device& last = target.devices.back();
  if (!graph.nodes().empty()) metrics.all_on_last_us = cost.launch_us(last);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    metrics.all_on_last_us += cost.node_us(graph, NodeId{static_cast<std::int32_t>(n)}, last);
  }
  return metrics;
}

Json metrics_to_json(const PlanMetrics& metrics, const Target& target) {
  Json json = Json::object();
  json["partitions"] = metrics.partitions;
  for (const Device& device : target.devices) {
    json["partitions_" + device.name] = metrics.partitions_by_device.at(device.name);
  }
  for (const Device& device : target.devices) {
    json["nodes_" + device.name] = metrics.nodes_by_device.at(device.name);
  }
  json["transfers"] = metrics.transfers;
  json["transferred_tensors"] = metrics.transferred_tensors;
  json["transfer_bytes"] = metrics.transfer_bytes;
  json["copied_tensors"] = metrics.copied_tensors;
  json["copied_bytes"] = metrics.copied_bytes;
  json["predicted_us"] = rounded_us(metrics.predicted_us);
  json["all_" + target.devices.back().name + "_us"] = rounded_us(metrics.all_on_last_us);
  return json;
}

std::string format_plan_report(const Graph& graph, const PartitionPlan& plan, const Json& metrics,
                               const Target& target, const CostModel& cost) {
  std::vector<std::vector<std::string>> rows{
      {">step", "what", "device", ">nodes", ">tensors", ">bytes", ">predicted us"}};
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == PlanStep::Kind::kPartition) {
      const Partition& partition = plan.partitions[static_cast<std::size_t>(step.index)];
      rows.push_back({std::to_string(s), "partition " + std::to_string(step.index),
                      partition.device, std::to_string(partition.nodes.size()), "", "",
                      fixed_text(partition_us(graph, partition, target, cost), 1)});
    } else {
      const Transfer& transfer = plan.transfers[static_cast<std::size_t>(step.index)];
      rows.push_back(
          {std::to_string(s),
           "transfer " + std::to_string(transfer.from) + " -> " + std::to_string(transfer.to),
           "to " + transfer.to_device, "", std::to_string(transfer.tensors.size()),
           bytes_text(static_cast<double>(transfer.bytes)),
           fixed_text(plan_transfer_us(graph, plan, transfer, target, cost), 1)});
    }
  }
  std::string text = table_text(rows) + "\n";
  std::vector<std::vector<std::string>> totals{{"total", ">"}};
  for (const auto& [key, value] : metrics.items()) {
    totals.push_back(
        {key, value.is_number_float() ? fixed_text(value.get<double>(), 1) : value.dump()});
  }
  return text + table_text(totals);
}

}  // namespace npu

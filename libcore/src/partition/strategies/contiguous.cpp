// SPDX-License-Identifier: Apache-2.0
// The contiguous strategy: maximal runs of one device in list order.
//
// This is the algorithm of pytorch-ir's partitioner, whose users know its plans: partitions are
// intervals of a topological order and therefore convex, but branches that interleave in the list
// are cut without need, and a transfer repeats tensors that are on the device already (npu-run
// skips those). partition_convex does better in both respects. O(nodes + edges).
#include <algorithm>
#include <string>

#include "npu/partition/strategies.hpp"
#include "partition/plan_builder.hpp"

namespace npu {
namespace {

// Everything that the partition reads and an earlier one produced, sorted by name.
Transfer transfer_before(const Graph& graph, const PartitionPlan& plan, std::int32_t to) {
  const Partition& partition = plan.partitions[static_cast<std::size_t>(to)];
  Transfer transfer{.from = to - 1, .to = to, .to_device = partition.device, .tensors = {}};
  for (const TensorId input : partition.boundary.inputs) {
    if (graph.tensor(input).kind == TensorKind::kResult) transfer.tensors.push_back(input);
  }
  std::sort(transfer.tensors.begin(), transfer.tensors.end(),
            [&](TensorId a, TensorId b) { return graph.tensor(a).name < graph.tensor(b).name; });
  return transfer;
}

}  // namespace

PartitionPlan partition_contiguous(const Graph& graph) {
  PartitionPlan plan;
  plan.strategy = "contiguous";
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string& device = device_of(graph, id);
    if (plan.partitions.empty() || plan.partitions.back().device != device) {
      plan.partitions.push_back({device, {}, {}});
    }
    plan.partitions.back().nodes.push_back(id);
  }
  BoundaryFinder boundaries(graph);
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    Partition& partition = plan.partitions[p];
    partition.boundary = boundaries.find(partition.nodes);
    const auto index = static_cast<std::int32_t>(p);
    if (p > 0) append_transfer(graph, plan, transfer_before(graph, plan, index));
    plan.steps.push_back({PlanStep::Kind::kPartition, index});
  }
  return plan;
}

}  // namespace npu

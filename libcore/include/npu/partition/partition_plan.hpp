// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Nodes that run together on one device.
struct Partition {
  std::string device;
  std::vector<NodeId> nodes;  ///< in list order
  SubgraphBoundary boundary;
};

/// Tensors that are copied to a device before a partition runs there.
struct Transfer {
  std::int32_t from = 0;  ///< partition after which all of the tensors exist
  std::int32_t to = 0;    ///< partition that needs them
  std::string to_device;
  std::vector<TensorId> tensors;
  std::int64_t bytes = 0;
};

struct PlanStep {
  enum class Kind : std::uint8_t { kPartition, kTransfer };
  Kind kind = Kind::kPartition;
  std::int32_t index = 0;  ///< into partitions or transfers
};

/// An execution plan: `npu.partition` of npu-ir(5). Partition ids are indices into `partitions` and
/// follow the order of the steps.
struct PartitionPlan {
  std::string strategy;
  std::vector<Partition> partitions;
  std::vector<Transfer> transfers;
  std::vector<PlanStep> steps;
};

/// The plan stored in a document. Checks that every node is in exactly one partition, that a
/// partition's nodes carry its device, that steps respect every dependence and that every tensor is
/// on the device that reads it. Adds an error to `diagnostics` for each fault.
PartitionPlan read_partition_plan(const Graph& graph, Diagnostics& diagnostics);

/// Writes `plan` to `npu.partition` and sets `partition` of every node. `metrics` becomes the
/// member of that name; the members of the object `details` follow it.
void write_partition_plan(Graph& graph, const PartitionPlan& plan, Json metrics,
                          Json details = Json::object());

/// One partition with every node of `graph` on `device`.
PartitionPlan single_partition_plan(const Graph& graph, const std::string& device);

}  // namespace npu

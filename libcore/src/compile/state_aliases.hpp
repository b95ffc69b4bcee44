// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "device/backend.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"

namespace npu {

/// Two tensors of a state that may be one buffer in the runs of a partition.
struct StateAlias {
  TensorId input;
  TensorId output;
};

/// The states that a partition overwrites in part, from its input to its output, and that no later
/// partition reads as they were before. O(states x partitions + nodes of the partition).
std::vector<StateAlias> state_aliases(const Graph& graph, const PartitionPlan& plan,
                                      std::size_t partition);
/// The same for a backend; none for one without the feature "alias".
std::vector<StateAlias> backend_aliases(const Graph& graph, const PartitionPlan& plan,
                                        std::size_t partition, const Backend& backend);

}  // namespace npu

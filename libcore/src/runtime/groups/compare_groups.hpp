// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/runtime/group_comparison.hpp"
#include "runtime/compare_outputs.hpp"
#include "runtime/groups/model_groups.hpp"

namespace npu {

/// The two sides of a comparison: a plan, and the same model on one device.
struct GroupSides {
  const Graph* graph = nullptr;  ///< of the plan
  const PartitionPlan* plan = nullptr;
  const std::vector<CompiledPartition>* compiled = nullptr;  ///< by partition id; null: none is yet
  PartRunner runner;                                         ///< with the weights of `graph`
  const Graph* reference = nullptr;                          ///< with the same names of tensors
  std::string reference_device;
  PartRunner reference_runner;
  std::vector<Tensor> inputs;  ///< in the order of graph_inputs
  ToleranceOptions tolerance;
};

/// Compares the results of the plan's fusion groups with the reference's, as the options say.
/// Throws Error as the backends do.
GroupReport compare_groups(const GroupSides& sides, const GroupComparisonOptions& options);

}  // namespace npu

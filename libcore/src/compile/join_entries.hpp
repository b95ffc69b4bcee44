// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// An entry of a bundle that is to be compiled.
struct EntryToJoin {
  std::string name;
  const Graph& graph;
  const PartitionPlan& plan;
  const std::vector<Tensor>& weights;  ///< by TensorId
};

/// Compiles the partitions of all entries on each device whose backend has the feature "entries" to
/// one blob, in which each weight is once. Returns them by entry, for compile_graph; none for a
/// device whose backend refuses some of them, which then compile by themselves. Opens devices that
/// are not in `devices`. Throws what compile_graph throws for what is no refusal.
std::vector<KnownPartitions> join_entries(const std::vector<EntryToJoin>& entries,
                                          const Target& target, const CompileOptions& options,
                                          CompileCache* cache, OpenDevices& devices);

}  // namespace npu

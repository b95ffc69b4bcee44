// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Where a run gets a result that is no output of the graph.
struct TapPlace {
  TensorId tensor;
  std::size_t partition = 0;
  /// Among the taps of the partition's program; none: it is an output of the partition.
  std::optional<std::size_t> index;
};

/// By name; nothing for a tensor that no partition hands out as it is compiled.
std::vector<std::optional<TapPlace>> find_taps(const Graph& graph, const PartitionPlan& plan,
                                               const std::vector<CompiledPartition>& compiled,
                                               const std::vector<std::string>& names);

/// Those of `names` that no compile of this plan can hand out: within a partition of a backend that
/// lacks the feature "taps".
std::vector<std::string> untapped_names(const Graph& graph, const PartitionPlan& plan,
                                        const Target& target,
                                        const std::vector<std::string>& names);

/// Those of some results of a partition's nodes that its program hands out besides its outputs.
std::vector<std::string> handed_out(const CompiledPartition& partition,
                                    const std::vector<std::string>& names);

}  // namespace npu

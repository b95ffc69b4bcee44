// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// The names of results that match one of the globs (shell patterns) and are no outputs of the
/// graph, in the order of the nodes. Throws Error kUsage for a glob that matches no result.
std::vector<std::string> tapped_names(const Graph& graph, const std::vector<std::string>& globs);

/// Makes results outputs of the graph, behind those that it has. All ids may change.
void add_outputs(Graph& graph, const std::vector<TensorId>& tensors);
void add_outputs(Graph& graph, const std::vector<std::string>& tensors);

/// Where a run gets a result that is no output of the graph.
struct TapPlace {
  TensorId tensor;
  std::size_t partition = 0;
  bool is_boundary = false;  ///< an output of the partition; otherwise its program hands it out
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

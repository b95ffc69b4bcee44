// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/passes/align.hpp"
#include "passes/align/align_problem.hpp"

namespace npu::align {

/// A node that converts one tensor.
bool is_channel_norm(const Node& node);

/// A channel_norm that goes, and the tensor that its readers get instead of its result.
struct Removal {
  NodeId node;
  TensorId by;
  bool takes_name = false;  ///< `by` gets the name of the node's result
};
/// Takes channel_norms out of a graph and brings npu.partition and npu.fusion up to date. A tensor
/// that leaves its region keeps its name.
void remove_channel_norms(Graph& graph, const std::vector<Removal>& removals);
/// Those that an earlier run wrote down as its own.
std::vector<Removal> own_channel_norms(const Graph& graph);
/// Those that do nothing: on weights and tensors that are the same in both layouts, the second of a
/// pair that cancels, copies of a conversion, and those that nothing reads. Adds to `removed`.
std::vector<Removal> idle_channel_norms(const Graph& graph, const Problem& problem,
                                        std::vector<AlignRemoval>& removed);

}  // namespace npu::align

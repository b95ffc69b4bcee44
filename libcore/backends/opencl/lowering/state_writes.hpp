// SPDX-License-Identifier: Apache-2.0
// Which states of a sub-IR its kernels can write where they lie.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/sub_ir_aliases.hpp"
#include "npu/ir/graph.hpp"

namespace npu::opencl {

/// A pair of a sub-IR's "aliases".
struct StateWrite {
  AliasPair pair;
  /// From the input to the output, what each overwrites a part of; the first is the input, the last
  /// the output. Empty: no kernels write it where it lies.
  std::vector<TensorId> chain;
};

/// What reads a tensor, also behind views: nodes, as often as they do, and graph outputs.
struct TensorReaders {
  const std::vector<std::vector<NodeId>>& nodes;  ///< by tensor
  const std::vector<bool>& is_output;             ///< by tensor
};

/// Those of a graph. A chain is one of ops that overwrite a part of their first operand, read it
/// once, and leave nothing that a graph output is a view of. Throws Error as read_aliases does.
/// O(states x nodes of a chain + readers).
std::vector<StateWrite> find_state_writes(const Graph& graph, const TensorReaders& readers);

/// What has to run before what, so that nothing reads a tensor of a chain that is overwritten:
/// pairs of a reader and a writer.
std::vector<std::pair<NodeId, NodeId>> reads_before_writes(const Graph& graph,
                                                           const TensorReaders& readers,
                                                           std::span<const StateWrite> writes);

/// Nodes that become one kernel.
struct KernelNodes {
  std::vector<NodeId> nodes;
  std::string pattern;
  std::string split_reason = {};  ///< of a part of a group
};

/// Kernels as they are, but for those with readers of a state as it was that are in one group with
/// what depends on its next value: these are two. O(nodes of the graph x chain).
std::vector<KernelNodes> part_readers(const Graph& graph, const TensorReaders& readers,
                                      const StateWrite& state, std::vector<KernelNodes> kernels);

/// Empties the chains of those whose readers do not all stand before the writers.
void keep_ordered(const Graph& graph, const TensorReaders& readers, std::vector<StateWrite>& writes,
                  const std::function<bool(NodeId, NodeId)>& is_before);

}  // namespace npu::opencl

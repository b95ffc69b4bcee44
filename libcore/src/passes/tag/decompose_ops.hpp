// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Where a node has to be.
struct NodeWish {
  bool stays_whole = false;        ///< wherever it is
  const Device* device = nullptr;  ///< the only one that may run it; null: any
};

/// Whether a device of the target names the op of a node.
bool may_decompose(const Graph& graph, const Target& target);

/// Replaces nodes by those of their decompositions where that brings them to a device that names
/// their op in `decompose`: no device in front of it runs the node whole, nor does it itself, and
/// it runs each of the new nodes. The last one keeps the node's name and its result's, so that
/// readers and outputs stay as they are, and has the op in its member "decomposed" (npu-ir(5)).
/// True if the graph changed; ids change then.
bool decompose_ops(Graph& graph, const Target& target,
                   const std::function<NodeWish(NodeId)>& wish_of);

/// The same for every node that is lacking and has a decomposition, whatever runs its nodes.
bool decompose_ops(Graph& graph, const std::function<bool(const Node&)>& is_lacking);

}  // namespace npu

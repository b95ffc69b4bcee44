// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// Every node, in list order.
std::vector<NodeId> all_nodes(const Graph& graph);

/// The boundary of a set of nodes.
struct SubgraphBoundary {
  /// Graph inputs and results of other nodes that the set reads, in order of first use.
  std::vector<TensorId> inputs;
  /// Results that other nodes or the graph's outputs need, in order of production.
  std::vector<TensorId> outputs;
  /// Weights that the set reads, in order of first use.
  std::vector<TensorId> weights;
};

/// Finds the boundaries of many sets of one graph, each in the time of its nodes and edges.
class BoundaryFinder {
 public:
  explicit BoundaryFinder(const Graph& graph);
  /// `nodes` in list order.
  SubgraphBoundary find(const std::vector<NodeId>& nodes);

 private:
  const Graph& graph_;
  std::vector<char> is_output_;       // by tensor
  std::vector<std::int32_t> member_;  // by node: the last set that it was in
  std::vector<std::int32_t> seen_;    // by tensor: the last set that reads it
  std::int32_t set_ = 0;
};

/// Of a single set: O(size of the graph).
SubgraphBoundary find_boundary(const Graph& graph, const std::vector<NodeId>& nodes);

/// The format of such documents, their "ir_version".
inline constexpr int kSubIrVersion = 1;

/// A graph with just these nodes, which stand in list order: boundary inputs become graph_inputs,
/// boundary outputs graph_outputs, and weights go by their names. What nodes say of placement
/// (device, partition, ...) is dropped; fusion groups and all other keys are kept. Throws
/// std::logic_error if the boundary is not that of the nodes.
Graph extract(const Graph& graph, const std::vector<NodeId>& nodes,
              const SubgraphBoundary& boundary);

/// The same as a document of npu-ir(5), for what compiles it.
std::string write_subgraph(const Graph& graph, const std::vector<NodeId>& nodes,
                           const SubgraphBoundary& boundary);

/// Throws Error kInvalidGraph for a sub-IR of another version; one that states none counts as this.
void check_sub_ir_version(const Graph& graph);

}  // namespace npu

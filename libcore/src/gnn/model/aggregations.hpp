// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "npu/ir/graph.hpp"
#include "ops/op_catalogue.hpp"
#include "rows/segment_reduce.hpp"

namespace npu::gnn {

/// The ends of an edge, as rows of the input `edge_index`.
enum class EdgeEnd : std::uint8_t { kSource, kTarget };

/// What the nodes and tensors of a block are to its edges, which are the columns of its input
/// `edge_index`. Refers to the graph.
class EdgeMatcher {
 public:
  explicit EdgeMatcher(const Graph& graph);

  /// The number of edges; -1 if the block has no input `edge_index`.
  std::int64_t edges() const noexcept { return edges_; }
  /// The node that makes a tensor; null for inputs and weights.
  const Node* producer(TensorId id) const;
  /// The node that makes a tensor, if it has this role; else null.
  const Node* producer(TensorId id, FusionRole role) const;
  /// The only node that reads a tensor which is no output of the block, and reads it once.
  const Node* only_reader(TensorId id) const;

  /// The node that makes a tensor if its operand has the same elements in the same order; else
  /// null.
  const Node* view(TensorId id) const;
  /// Whether a node only gives its operand another name: a view of the same shape.
  bool is_alias(const Node& node) const;
  TensorId through_alias(TensorId id) const;
  /// Rows [0, rows) of a result, which lie at its beginning: the result itself; else the tensor.
  TensorId through_first_rows(TensorId id) const;
  /// Some columns of a tensor of two dimensions.
  struct Columns {
    TensorId tensor;
    std::int64_t first = 0;
    std::int64_t stride = 0;  ///< columns of the tensor
  };
  /// The tensor that a slice takes columns of, or the tensor itself.
  Columns columns_of(TensorId id) const;

  /// Whether a tensor is one end of the edges.
  bool is_end(TensorId id, EdgeEnd end) const;
  /// The tensor by node whose rows at that end of the edges a node gives; invalid: it does not.
  TensorId gathered_by(const Node& node, EdgeEnd end) const;
  /// The same for a tensor.
  TensorId gathered_from(TensorId id, EdgeEnd end) const;
  /// What a node makes of its last operand, which has a row for each edge, by target: index_add
  /// into zeros, or scatter_reduce into zeros that takes the largest of each column and that only
  /// rows without edges keep. Nothing if it is no aggregation.
  std::optional<Aggregate> aggregate_of(const Node& node) const;

 private:
  bool is_target_of_elements(TensorId id) const;

  const Graph& graph_;
  TensorId edge_index_;
  std::int64_t edges_ = -1;
};

/// Rows that are added up, or the largest of which is taken, over the edges into each node.
struct Aggregation {
  Aggregate aggregate = Aggregate::kSum;
  TensorId rows;         ///< by node if `gathers`, else by edge; invalid: edges are counted
  bool gathers = false;  ///< the rows of the sources
  TensorId factor;       ///< of rows, by edge, with dimensions of 1 at the end; invalid: none
  TensorId total;        ///< what is made of the rows
  TensorId result;       ///< the same, or its quotient with the number of edges, of a mean
};

/// All aggregations of a block, by the node that gives their results. O(nodes).
std::map<NodeId, Aggregation> find_aggregations(const Graph& graph);

}  // namespace npu::gnn

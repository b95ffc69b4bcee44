// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "passes/padding/node_rule.hpp"

namespace npu::padding {

/// What the rules say of all nodes and tensors of a graph.
struct PaddingAnalysis {
  IdVector<TensorId, TensorTails> tails;
  IdVector<NodeId, NodeRule> rules;  ///< those of nodes without a size that varies need nothing
};

/// Walks the nodes once, with their operands' classes as the rules give them. Nodes without a rule
/// are added to `diagnostics`. O(nodes x rule).
PaddingAnalysis infer_tails(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                            Diagnostics& diagnostics);

/// What the results of a node have by its rule, given the classes of its operands.
std::vector<TensorTails> result_tails(const Graph& graph, const Node& node, const NodeRule& rule,
                                      const TensorSizes& shapes,
                                      const IdVector<TensorId, TensorTails>& tails);

/// Inputs of the graph repeat their last valid row; weights do not vary.
TensorTails source_tails(const TensorInfo& tensor);

/// Whether one of the places has one of the classes.
bool is_met(const TailNeed& need, const Node& node, const IdVector<TensorId, TensorTails>& tails);

/// Whether the rows of a tensor have no infinity, wherever they stand; dimensions may be left out.
bool is_finite(const Graph& graph, TensorId id, const TensorSizes& shapes,
               const IdVector<TensorId, TensorTails>& tails,
               const std::vector<std::int32_t>& without = {});
/// The same, minus infinity allowed.
bool is_not_above(const Graph& graph, TensorId id, const TensorSizes& shapes,
                  const IdVector<TensorId, TensorTails>& tails);

}  // namespace npu::padding

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "ops/op_catalogue.hpp"
#include "passes/padding/node_rule.hpp"

namespace npu::padding {

/// One class of ops, and what padding does to its rows.
struct RowRule {
  std::string_view name;  ///< "softmax"
  NodeRule (*apply)(const PaddedNode& node);
};

/// The table: a row for each class of ops that has a rule.
std::span<const RowRule> row_rules();

/// The row of an op, by what the catalogue says of it; null if its class has no rule.
const RowRule* find_row_rule(const OpInfo& op);

/// What the rule of its class says of a node, or a refusal: also where the rule leaves a dimension
/// that varies unexplained.
NodeRule node_rule(const PaddedNode& node, const OpInfo& op);

/// The same for a node as it stands in a graph: also a refusal if the catalogue does not know the
/// op, or its arguments do not suit.
NodeRule rule_of_node(const Graph& graph, const Node& node, const PaddedSizes& sizes,
                      const TensorSizes& shapes, const IdVector<TensorId, TensorTails>& tails);

// The rules, by family. Each explains all dimensions of results that vary.
NodeRule pointwise_rule(const PaddedNode& node);
NodeRule create_rule(const PaddedNode& node);
NodeRule triangle_rule(const PaddedNode& node);
NodeRule product_rule(const PaddedNode& node);
NodeRule attention_rule(const PaddedNode& node);
NodeRule norm_rule(const PaddedNode& node);
NodeRule softmax_rule(const PaddedNode& node);
NodeRule sum_rule(const PaddedNode& node);
NodeRule extreme_rule(const PaddedNode& node);
NodeRule order_rule(const PaddedNode& node);
NodeRule recurrent_rule(const PaddedNode& node);
NodeRule convolution_rule(const PaddedNode& node);
NodeRule pool_rule(const PaddedNode& node);
NodeRule resample_rule(const PaddedNode& node);
NodeRule reshape_rule(const PaddedNode& node);
NodeRule permute_rule(const PaddedNode& node);
NodeRule expand_rule(const PaddedNode& node);
NodeRule slice_rule(const PaddedNode& node);
NodeRule split_rule(const PaddedNode& node);
NodeRule concatenate_rule(const PaddedNode& node);
NodeRule gather_rule(const PaddedNode& node);
NodeRule scatter_rule(const PaddedNode& node);
NodeRule pad_rule(const PaddedNode& node);
NodeRule tail_rule(const PaddedNode& node);

}  // namespace npu::padding

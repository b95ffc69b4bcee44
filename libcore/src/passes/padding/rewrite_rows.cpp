// SPDX-License-Identifier: Apache-2.0
// Ops that depend on the number of rows, in a form that has it as an operand.
//
// Each node is replaced where it stands, and keeps its name and that of its result, so that
// nothing else changes. O(nodes) for a round.
#include "passes/padding/rewrite_rows.hpp"

#include <vector>

#include "ops/op_catalogue.hpp"
#include "passes/padding/rows/rewritings.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {
namespace {

void rewrite(RowWriter& writer, NodeId id, const NodeRule& rule) {
  const Node& node = writer.graph().node(id);
  const BoundNode bound(writer.graph(), node, find_op(node.op_type)->schema);
  switch (rule.rewriting) {
    case Rewriting::kMean:
      return rewrite_mean(writer, id);
    case Rewriting::kVariance:
      return rewrite_variance(writer, id, variance_correction(bound));
    case Rewriting::kLastRow:
      return rewrite_last_row(writer, id, rule);
    case Rewriting::kRowsFromEnd:
      return rewrite_from_end(writer, id, rule.from_end);
    case Rewriting::kLastState:
      return rewrite_last_state(writer, id, bound.boolean("batch_first") ? 1 : 0);
    case Rewriting::kIndices:
      return guard_indices(writer, id, rule);
    case Rewriting::kAttentionMask:
      return add_attention_mask(writer, id, bound);
    case Rewriting::kMovedRows:
      return rewrite_view(writer, id, rule);
    case Rewriting::kReflected:
      return rewrite_reflected(writer, id, bound);
    case Rewriting::kConcatenated:
      return rewrite_concatenated(writer, id, bound);
    case Rewriting::kResampled:
      return rewrite_resampled(writer, id, bound.boolean("align_corners"));
    case Rewriting::kNone:
      return;
  }
}

bool wants_rewriting(const Graph& graph, NodeId id, const PaddingAnalysis& analysis) {
  const NodeRule& rule = analysis.rules[id];
  if (rule.rewriting != Rewriting::kLastRow) return rule.rewriting != Rewriting::kNone;
  return !is_met(rule.needs.back(), graph.node(id), analysis.tails);
}

}  // namespace

bool rewrite_rows(Graph& graph, const PaddingAnalysis& analysis, const PaddedSizes& sizes,
                  const TensorSizes& shapes, AddedSizes& added) {
  std::vector<NodeId> wanted;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (wants_rewriting(graph, id, analysis)) wanted.push_back(id);
  }
  if (wanted.empty()) return false;
  RowWriter writer(graph, sizes, shapes, added);
  for (const NodeId id : wanted) rewrite(writer, id, analysis.rules[id]);
  writer.commit();
  return true;
}

}  // namespace npu::padding

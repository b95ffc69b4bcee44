// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/schema.hpp"
#include "passes/padding/node_rule.hpp"
#include "passes/padding/rows/row_writer.hpp"

/// One for each Rewriting. All put nodes in the place of `id`, the last of which keeps its name.
namespace npu::padding {

void rewrite_mean(RowWriter& writer, NodeId id);
/// By its definition. The mean in it is one for the next round.
void rewrite_variance(RowWriter& writer, NodeId id, double correction);

void rewrite_last_row(RowWriter& writer, NodeId id, const NodeRule& rule);
void rewrite_from_end(RowWriter& writer, NodeId id, const NodeRule::RowsFromEnd& rows);
/// A recurrence gives its state after each step: the last one is the last row along `time`.
void rewrite_last_state(RowWriter& writer, NodeId id, std::int32_t time);

/// What is_valid_row knows again. Nodes come in list order, so the guard of the first reader of an
/// index stands in front of the others.
void guard_indices(RowWriter& writer, NodeId id, const NodeRule& rule);
/// All keys are seen until the mask is masked itself.
void add_attention_mask(RowWriter& writer, NodeId id, const BoundNode& bound);

/// Each element of the result where it stands in a run without padding: its number among the
/// valid ones of the result, and what that is as a place of the operand.
void rewrite_view(RowWriter& writer, NodeId id, const NodeRule& rule);
/// Rows behind the end and in front of the first that repeat those beside them, backwards.
void rewrite_reflected(RowWriter& writer, NodeId id, const BoundNode& bound);
/// Each row of the one operand that has it.
void rewrite_concatenated(RowWriter& writer, NodeId id, const BoundNode& bound);

/// One dimension after the other: the sum of the rows around each place times their weights.
void rewrite_resampled(RowWriter& writer, NodeId id, bool aligns);

}  // namespace npu::padding

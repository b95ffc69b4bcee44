// SPDX-License-Identifier: Apache-2.0
#pragma once

// What ops share that move elements, or only name them anew.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// The result is the operand.
void define_alias(Lowering& lowering);
/// The layout of a tensor of another extent along `dimension` that has the same blocks, if all of
/// it lies in one piece with that dimension outermost; nothing otherwise.
std::optional<Layout> stacked_layout(const Layout& like, std::size_t dimension,
                                     std::int64_t extent);

/// `count` elements of one dimension, as a view.
Value sliced(Lowering& lowering, const Value& value, std::size_t dimension, std::int64_t start,
             std::int64_t count);

/// What start, end and step choose of a dimension: `count` elements, which is not 0.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 1;
};
SliceRange slice_range(const Lowering& lowering, const BoundNode& node, std::int64_t extent);

/// A padding by its arguments: of each dimension a part is kept, and lies somewhere in the result.
struct PadCall {
  Shape result;
  std::vector<std::int64_t> from;    ///< first element that is kept
  std::vector<std::int64_t> extent;  ///< elements that are kept
  std::vector<std::int64_t> begin;   ///< where they begin in the result
  double number = 0;                 ///< around them
};
PadCall read_pad(Lowering& lowering, const BoundNode& node);
/// The result for a source in any layout, channels last or row-major.
Value add_pad(Lowering& lowering, const PadCall& call, const Value& source, float number,
              bool channels_last);

void lower_alias(Lowering& lowering, const BoundNode& node);
void lower_arange(Lowering& lowering, const BoundNode& node);
void lower_cat(Lowering& lowering, const BoundNode& node);
void lower_channel_norm(Lowering& lowering, const BoundNode& node);
void lower_copy(Lowering& lowering, const BoundNode& node);
void lower_dropout(Lowering& lowering, const BoundNode& node);
void lower_embedding(Lowering& lowering, const BoundNode& node);
void lower_expand(Lowering& lowering, const BoundNode& node);
void lower_fill(Lowering& lowering, const BoundNode& node);
void lower_flatten(Lowering& lowering, const BoundNode& node);
void lower_flip(Lowering& lowering, const BoundNode& node);
void lower_gather(Lowering& lowering, const BoundNode& node);
void lower_index(Lowering& lowering, const BoundNode& node);
void lower_index_copy(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_index_put(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_index_select(Lowering& lowering, const BoundNode& node);
void lower_linspace(Lowering& lowering, const BoundNode& node);
void lower_meshgrid(Lowering& lowering, const BoundNode& node);
void lower_move_dimension(Lowering& lowering, const BoundNode& node);
void lower_narrow(Lowering& lowering, const BoundNode& node);
void lower_pad(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_permute(Lowering& lowering, const BoundNode& node);
void lower_repeat(Lowering& lowering, const BoundNode& node);
void lower_repeat_interleave(Lowering& lowering, const BoundNode& node);
void lower_reshape(Lowering& lowering, const BoundNode& node);
void lower_reshape_as(Lowering& lowering, const BoundNode& node);
void lower_roll(Lowering& lowering, const BoundNode& node);
void lower_scatter(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_select(Lowering& lowering, const BoundNode& node);
void lower_select_scatter(Lowering& lowering, const BoundNode& node);
void lower_shuffle(Lowering& lowering, const BoundNode& node);
void lower_slice(Lowering& lowering, const BoundNode& node);
void lower_slice_scatter(Lowering& lowering, const BoundNode& node);
void lower_split(Lowering& lowering, const BoundNode& node);
void lower_squeeze(Lowering& lowering, const BoundNode& node);
void lower_stack(Lowering& lowering, const BoundNode& node);
void lower_to(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_transpose(Lowering& lowering, const BoundNode& node);
void lower_triangle(Lowering& lowering, const BoundNode& node);
/// npu.tail
void lower_tail(Lowering& lowering, const BoundNode& node);
void lower_unbind(Lowering& lowering, const BoundNode& node);
void lower_unflatten(Lowering& lowering, const BoundNode& node);
void lower_unfold(Lowering& lowering, const BoundNode& node);
void lower_unsqueeze(Lowering& lowering, const BoundNode& node);
/// getitem has no schema.
void lower_getitem(Lowering& lowering, const Node& node);

}  // namespace npu::onednn

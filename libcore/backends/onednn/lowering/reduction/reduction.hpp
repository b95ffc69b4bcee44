// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// Which dimensions of a tensor `dim` names, as a space of [outer, count, inner].
struct ReducedSpace {
  std::vector<bool> reduced;  ///< by dimension
  std::size_t first = 0;      ///< of the reduced dimensions
  std::size_t dimensions = 0;
  bool together = true;  ///< reduced dimensions are neighbours; else they are moved to the end
  Shape result;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
};
/// No dimension, or none that is named, stands for all, but for any.dims and all.dims.
ReducedSpace reduced_space(const Lowering& lowering, const BoundNode& node, TensorId self);
/// The operand, row-major, in the order of the space.
Value reduced_operand(Lowering& lowering, const Value& value, const ReducedSpace& space);

void lower_arg_reduction(Lowering& lowering, const BoundNode& node);
void lower_integer_reduction(Lowering& lowering, const BoundNode& node);
void lower_reduction(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_running_sum(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_sort(Lowering& lowering, const BoundNode& node);
void lower_vector_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node);

}  // namespace npu::onednn

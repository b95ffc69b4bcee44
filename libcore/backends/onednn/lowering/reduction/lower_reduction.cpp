// SPDX-License-Identifier: Apache-2.0
// Means, sums, products and extrema over any dimensions. Means over planes of channels are oneDNN's
// pooling, in whatever layout the operand has; the rest is one kernel over [outer, count, inner],
// for which reduced dimensions that are no neighbours are moved to the end.
#include <algorithm>

#include "lowering/reduction/reduction.hpp"
#include "lowering/sampling/sampling.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

ReductionOp reduction_op(std::string_view name) {
  if (name == "mean") return ReductionOp::kMean;
  if (name == "sum") return ReductionOp::kSum;
  if (name == "prod") return ReductionOp::kProduct;
  return name == "amax" || name == "max" ? ReductionOp::kMaximum : ReductionOp::kMinimum;
}

}  // namespace

ReducedSpace reduced_space(const Lowering& lowering, const BoundNode& node, TensorId self) {
  const Shape& shape = lowering.shape(self);
  ReducedSpace space;
  space.reduced.assign(shape.size(), false);
  std::vector<std::int64_t> given;
  if (node.find("dim") != nullptr && !node.is_none("dim")) given = node.integers("dim");
  for (const std::int64_t dimension : given) {
    const std::size_t i = normalize_dimension(lowering, "dim", dimension, shape.size());
    if (i >= shape.size()) continue;
    if (space.reduced[i]) lowering.invalid("argument 'dim': a dimension stands there twice");
    space.reduced[i] = true;
  }
  // Of any.dims and all.dims alone, an empty list stands for none.
  const bool is_of_dims = node.node().op_type.ends_with(".dims") && !node.is_none("dim");
  if (given.empty() && !is_of_dims) space.reduced.assign(shape.size(), true);
  const bool keep = node.find("keepdim") != nullptr && node.boolean("keepdim");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!space.reduced[i]) space.result.push_back(shape[i]);
    if (space.reduced[i] && keep) space.result.push_back(1);
  }
  const auto begin = space.reduced.begin();
  space.first = static_cast<std::size_t>(std::find(begin, space.reduced.end(), true) - begin);
  space.dimensions = static_cast<std::size_t>(std::count(begin, space.reduced.end(), true));
  const auto from = begin + static_cast<std::ptrdiff_t>(space.first);
  space.together = std::all_of(from, from + static_cast<std::ptrdiff_t>(space.dimensions),
                               [](bool each) { return each; });
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool in_front = i < space.first || !space.together;
    (space.reduced[i] ? space.count : in_front ? space.outer : space.inner) *= shape[i];
  }
  return space;
}

Value reduced_operand(Lowering& lowering, const Value& value, const ReducedSpace& space) {
  if (space.together) return lowering.plain(value);
  const std::size_t rank = space.reduced.size();
  std::vector<int> permutation(rank);
  int next_kept = 0;
  int next_reduced = static_cast<int>(rank - space.dimensions);
  for (std::size_t i = 0; i < rank; ++i) {
    permutation[i] = space.reduced[i] ? next_reduced++ : next_kept++;
  }
  Value source = lowering.strided(value);
  source.layout = source.layout.permute_axes(permutation);
  return lowering.plain(source);
}

void lower_reduction(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  if (!is_floating_point(lowering.dtype(input))) return lower_integer_reduction(lowering, node);
  lowering.require_float("self", input);
  if (node.find("dtype") != nullptr && node.dtype("dtype") &&
      *node.dtype("dtype") != lowering.dtype(input)) {
    lowering.refuse("dtype", "a dtype other than the operand's is not supported");
  }
  const ReductionOp op = reduction_op(functional_name(node.node().op_type));
  const ReducedSpace space = reduced_space(lowering, node, input);
  const Shape& output = space.result;
  lowering.check_result(lowering.result(), output, lowering.dtype(input));
  const auto define = [&](const Value& value) {
    lowering.define_computed(context, lowering.result(), output, lowering.dtype(input),
                             lowering.reshaped(value, output));
  };
  Value source = lowering.operand(input, context.compute_type);
  if (op == ReductionOp::kMean && space.first == 2 &&
      space.first + space.dimensions == space.reduced.size()) {
    if (const auto value = add_plane_mean(lowering, source)) return define(*value);
  }
  source = reduced_operand(lowering, source, space);
  const MiddleReduction call{op, source.type, space.outer, space.count, space.inner};
  const Value target = lowering.temporary(source.type, plain_layout(output, source.type));
  lowering.add_kernel({source}, target, call);
  define(target);
}

}  // namespace npu::onednn

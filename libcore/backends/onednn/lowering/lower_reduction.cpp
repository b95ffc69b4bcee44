// SPDX-License-Identifier: Apache-2.0
// Means, sums and extrema over any dimensions. Means over planes of channels are oneDNN's pooling,
// in whatever layout the operand has; the rest is one kernel over [outer, count, inner], for which
// reduced dimensions that are no neighbours are moved to the end.
#include <algorithm>

#include "lowering/lowering.hpp"

namespace npu::onednn {

namespace {

ReductionOp reduction_op(std::string_view name) {
  if (name == "mean") return ReductionOp::kMean;
  if (name == "sum") return ReductionOp::kSum;
  return name == "amax" ? ReductionOp::kMaximum : ReductionOp::kMinimum;
}

}  // namespace

void lower_reduction(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  lowering.require_float("self", input);
  if (node.find("dtype") != nullptr && node.dtype("dtype") &&
      *node.dtype("dtype") != lowering.dtype(input)) {
    lowering.refuse("dtype", "a dtype other than the operand's is not supported");
  }
  const ReductionOp op = reduction_op(base_name(node.node().op_type));
  const Shape& shape = lowering.shape(input);
  std::vector<bool> reduced(shape.size(), false);
  std::vector<std::int64_t> dimensions_given;
  if (node.find("dim") != nullptr && !node.is_none("dim")) dimensions_given = node.integers("dim");
  for (const std::int64_t dimension : dimensions_given) {
    const std::size_t i = normalize_dimension(lowering, "dim", dimension, shape.size());
    if (i >= reduced.size()) continue;
    if (reduced[i]) lowering.invalid("argument 'dim': a dimension stands there twice");
    reduced[i] = true;
  }
  if (dimensions_given.empty()) reduced.assign(shape.size(), true);
  const bool keep = node.find("keepdim") != nullptr && node.boolean("keepdim");
  Shape output;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) output.push_back(shape[i]);
    if (reduced[i] && keep) output.push_back(1);
  }
  lowering.check_result(lowering.result(), output, lowering.dtype(input));
  const auto define = [&](const Value& value) {
    lowering.define_computed(lowering.result(), output, lowering.dtype(input),
                             lowering.reshaped(value, output));
  };

  const auto first =
      static_cast<std::size_t>(std::find(reduced.begin(), reduced.end(), true) - reduced.begin());
  const auto count = static_cast<std::size_t>(std::count(reduced.begin(), reduced.end(), true));
  Value source = lowering.operand(input);
  if (op == ReductionOp::kMean && first == 2 && first + count == shape.size()) {
    if (const auto value = add_plane_mean(lowering, source)) return define(*value);
  }
  const bool together = std::all_of(reduced.begin() + static_cast<std::ptrdiff_t>(first),
                                    reduced.begin() + static_cast<std::ptrdiff_t>(first + count),
                                    [](bool r) { return r; });
  MiddleReduction call;
  call.op = op;
  if (together) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      (i < first ? call.outer : reduced[i] ? call.count : call.inner) *= shape[i];
    }
    source = lowering.plain(source);
  } else {
    std::vector<int> permutation(shape.size());
    int next_kept = 0;
    int next_reduced = static_cast<int>(shape.size() - count);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      permutation[i] = reduced[i] ? next_reduced++ : next_kept++;
      (reduced[i] ? call.count : call.outer) *= shape[i];
    }
    source = lowering.strided(source);
    source.layout = source.layout.permute_axes(permutation);
    source = lowering.plain(source);
  }
  call.type = source.type;
  const Value target = lowering.temporary(source.type, plain_layout(output, source.type));
  lowering.add_kernel({source}, target, call);
  define(target);
}

}  // namespace npu::onednn

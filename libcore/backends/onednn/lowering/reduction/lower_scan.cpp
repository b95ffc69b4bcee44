// SPDX-License-Identifier: Apache-2.0
// Reductions of integers and of truth, places of extrema, running sums and norms: one kernel over
// [outer, count, inner], for which reduced dimensions that are no neighbours are moved to the end.
#include <algorithm>
#include <cmath>

#include "lowering/engine/promotion.hpp"
#include "lowering/reduction/reduction.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

IntegerReduction::Op integer_op(const Lowering& lowering, std::string_view name) {
  using Op = IntegerReduction::Op;
  if (name == "sum") return Op::kSum;
  if (name == "prod") return Op::kProduct;
  if (name == "any") return Op::kAny;
  if (name == "all") return Op::kAll;
  if (name == "amax" || name == "max") return Op::kMaximum;
  if (name == "amin" || name == "min") return Op::kMinimum;
  lowering.refuse("self", "integers are not supported");
}

/// A row-major operand for a kernel on one middle dimension.
struct MiddleDimension {
  Value source;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
};

MiddleDimension middle_of(Lowering& lowering, const Value& value, const Shape& shape,
                          std::size_t dimension) {
  MiddleDimension result;
  result.source = lowering.plain(value);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (i < dimension ? result.outer : i == dimension ? result.count : result.inner) *= shape[i];
  }
  return result;
}

}  // namespace

/// Sums, products and extrema of integers and truth, and tests of anything for truth.
void lower_integer_reduction(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const auto op = integer_op(lowering, functional_name(node.node().op_type));
  const bool tests = op == IntegerReduction::Op::kAny || op == IntegerReduction::Op::kAll;
  const DType dtype = lowering.dtype(self);
  const DType type =
      tests && dtype != DType::kBool ? DType::kBool : arithmetic_type(lowering, dtype);
  if (!tests && is_floating_point(dtype)) lowering.refuse("self", "only integers are supported");
  const ReducedSpace space = reduced_space(lowering, node, self);
  IntegerReduction call{op, type, space.outer, space.count, space.inner};
  DType result = call.result_type() == type && !tests ? dtype : call.result_type();
  if (tests && dtype == DType::kUInt8) result = dtype;
  if (node.find("dtype") != nullptr && node.dtype("dtype").value_or(result) != result) {
    lowering.refuse("dtype", "a dtype other than the op's own is not supported");
  }
  lowering.check_result(lowering.result(), space.result, result);
  const Value source =
      reduced_operand(lowering, cast_value(lowering, lowering.stored(self), type), space);
  Value target =
      lowering.temporary(call.result_type(), plain_layout(space.result, call.result_type()));
  lowering.add_kernel({source}, target, call);
  target = cast_value(lowering, target, result);
  lowering.define_moved(lowering.result(), space.result, result, target);
}

/// argmax and argmin, and max and min along a dimension, which give both.
void lower_arg_reduction(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = lowering.dtype(self);
  const bool is_flat = node.is_none("dim");
  Shape shape = lowering.shape(self);
  const bool keep = node.boolean("keepdim");
  Shape result = shape;
  if (is_flat) {
    result.assign(keep ? shape.size() : 0, 1);
    shape = {element_count(shape)};
  }
  if (shape.empty()) shape = {1};
  const std::size_t d =
      is_flat ? 0 : normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  if (!is_flat && !result.empty()) {
    if (keep) result[d] = 1;
    if (!keep) result.erase(result.begin() + static_cast<std::ptrdiff_t>(d));
  }
  const DType type = arithmetic_type(lowering, dtype);
  if (type != lowering.storage_type(dtype)) lowering.refuse("self", "its dtype is not supported");
  const MiddleDimension middle = middle_of(lowering, lowering.stored(self), shape, d);
  const bool has_values = name == "max" || name == "min";
  const auto& outputs = lowering.node().outputs;
  if (outputs.size() != (has_values ? 2 : 1)) lowering.invalid("it has another number of results");
  const ArgReduction call{middle.source.type, name == "argmax" || name == "max",
                          has_values,         middle.outer,
                          middle.count,       middle.inner};
  // One buffer: the places, then the elements.
  const std::int64_t count = element_count(result);
  const auto size = static_cast<std::int64_t>(dtype_size(type));
  const std::int64_t bytes = count * (8 + (has_values ? size : 0));
  const Value both = lowering.temporary(DType::kUInt8, plain_layout({bytes}, DType::kUInt8));
  lowering.add_kernel({middle.source}, both, call);
  const Value places{DType::kInt64, plain_layout(result, DType::kInt64), both.buffer, 0};
  if (has_values) {
    const Value values{type, plain_layout(result, type), both.buffer, count * 8 / size};
    lowering.define_moved(outputs[0], result, dtype, values);
  }
  lowering.define_moved(outputs.back(), result, DType::kInt64, places);
}

/// sort, argsort and topk, of rows along the last dimension.
void lower_sort(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const std::string_view name = functional_name(node.node().op_type);
  const bool takes_most = name == "topk";
  const DType dtype = lowering.dtype(self);
  const DType type = arithmetic_type(lowering, dtype);
  if (type != lowering.storage_type(dtype)) lowering.refuse("self", "its dtype is not supported");
  const Shape& stated = lowering.shape(self);
  const Shape shape = stated.empty() ? Shape{1} : stated;
  const std::size_t d = normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  SortRows call{.type = type, .rows = element_count(shape) / shape[d], .count = shape[d]};
  call.descending = node.boolean(takes_most ? "largest" : "descending");
  call.kept = takes_most ? node.integer("k") : shape[d];
  call.has_values = name != "argsort";
  if (call.kept < 1 || call.kept > call.count) lowering.refuse("k", "it is not in 1..a row");
  if (call.count > SortRows::kMostElements) lowering.refuse("self", "its rows are too long");
  const auto& outputs = lowering.node().outputs;
  if (outputs.size() != (call.has_values ? 2 : 1))
    lowering.invalid("it has another number of results");

  Value source = lowering.stored(self);
  if (d + 1 != shape.size()) {
    std::vector<int> order;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      order.push_back(static_cast<int>(i < d ? i : i == d ? shape.size() - 1 : i - 1));
    }
    source = lowering.strided(source);
    source.layout = source.layout.permute_axes(order);
  }
  source = lowering.plain(source);
  // One buffer: places of whole rows, then elements that are kept.
  const auto size = static_cast<std::int64_t>(dtype_size(type));
  const std::int64_t places_bytes = call.rows * call.count * 8;
  const std::int64_t bytes = places_bytes + (call.has_values ? call.rows * call.kept * size : 0);
  const Value both = lowering.temporary(DType::kUInt8, plain_layout({bytes}, DType::kUInt8));
  lowering.add_kernel({source}, both, call);
  Shape kept = shape;
  kept[d] = call.kept;
  const auto define = [&](TensorId output, DType as, DType stored, std::int64_t row,
                          std::int64_t offset) {
    std::vector<std::int64_t> strides(kept.size(), 1);
    for (std::size_t i = kept.size(); i-- > 0;) {
      if (i == d) continue;
      strides[i] = row;
      row *= kept[i];
    }
    const Layout layout =
        stated.empty() ? plain_layout({}, stored) : strided_layout(kept, strides, stored);
    lowering.define_moved(output, stated.empty() ? stated : kept, as,
                          Value{stored, layout, both.buffer, offset});
  };
  if (call.has_values) define(outputs[0], dtype, type, call.kept, places_bytes / size);
  define(outputs.back(), DType::kInt64, DType::kInt64, call.count, 0);
}

void lower_running_sum(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const DType dtype = lowering.dtype(self);
  DType result = is_floating_point(dtype) ? dtype : DType::kInt64;
  const Shape& shape = lowering.shape(self);
  if (node.dtype("dtype").value_or(result) != result) {
    lowering.refuse("dtype", "a dtype other than the op's own is not supported");
  }
  lowering.check_result(lowering.result(), shape, result);
  const std::size_t d = normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const DType type = lowering.storage_type(result);
  const MiddleDimension middle =
      middle_of(lowering, cast_value(lowering, lowering.stored(self), type), shape, d);
  if (!has_primitive_type(type) && type != DType::kInt64) {
    lowering.refuse("self", "its dtype is not supported");
  }
  const Value target = lowering.temporary(type, plain_layout(shape, type));
  lowering.add_kernel({middle.source}, target,
                      RunningSum{type, middle.outer, middle.count, middle.inner});
  lowering.define_computed(context, lowering.result(), shape, result, target);
}

/// Norms of order 1, 2 and infinity.
void lower_vector_norm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  lowering.require_float("self", self);
  const std::string_view argument = node.find("ord") != nullptr ? "ord" : "p";
  const double order = node.is_none(argument) ? 2.0 : node.number(argument);
  if (order != 1.0 && order != 2.0) lowering.refuse(argument, "only 1 and 2 are supported");
  if (node.find("dtype") != nullptr && node.dtype("dtype") &&
      *node.dtype("dtype") != lowering.dtype(self)) {
    lowering.refuse("dtype", "a dtype other than the operand's is not supported");
  }
  const ReducedSpace space = reduced_space(lowering, node, self);
  lowering.check_result(lowering.result(), space.result, lowering.dtype(self));
  const Value source =
      reduced_operand(lowering, lowering.operand(self, context.compute_type), space);
  const MiddleReduction call{order == 1.0 ? ReductionOp::kNorm1 : ReductionOp::kNorm2, source.type,
                             space.outer, space.count, space.inner};
  const Value target = lowering.temporary(source.type, plain_layout(space.result, source.type));
  lowering.add_kernel({source}, target, call);
  lowering.define_computed(context, lowering.result(), space.result, lowering.dtype(self), target);
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and the places of extrema.
#include <algorithm>
#include <limits>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

// The axes of a reduction: an attribute, or an operand since 13 (ReduceSum) or 18. None: the
// function of the elements is all that the node computes.
Ints reduced_axes(Op& op, const Value* x) {
  const std::int64_t operand_since = op.node().op_type == "ReduceSum" ? 13 : 18;
  Ints axes = op.integers_since(operand_since, "axes", 1).value_or(Ints{});
  if (axes.empty() && op.integer("noop_with_empty_axes", 0) == 0) {
    for (std::int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  }
  for (std::int64_t& axis : axes) axis = Op::axis_of(axis, x->rank());
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    Op::refuse("an axis stands there twice");
  }
  return axes;
}

// What the largest and the smallest of no elements are: the end of the dtype's range.
Json extremum_of_none(DType dtype, bool is_largest) {
  if (is_floating_point(dtype)) return is_largest ? "-inf" : "inf";
  if (dtype == DType::kBool) return !is_largest;
  if (dtype == DType::kInt64) {
    return is_largest ? std::numeric_limits<std::int64_t>::min()
                      : std::numeric_limits<std::int64_t>::max();
  }
  const auto [low, high] = range_of(dtype);
  return is_largest ? low : high;
}

Value* extremum_of(Op& op, Value* x, const Ints& axes, bool keep, bool is_largest) {
  Value* value = op.reduce(is_largest ? "amax.default" : "amin.default", x, axes, keep);
  if (x->count() != 0) return value;
  return op.filled(value->shape, x->dtype, extremum_of_none(x->dtype, is_largest));
}

// A sum keeps its dtype; PyTorch's would become int64.
Value* sum_of(Op& op, Value* x, const Ints& axes, bool keep) {
  if (axes.empty()) return x;
  if (is_floating_point(x->dtype)) return op.reduce("sum.dim_IntList", x, axes, keep);
  Value* value = op.reduce("sum.dim_IntList", x, axes, keep);
  op.draft().nodes()[static_cast<std::size_t>(value->node)].attrs["dtype"] =
      "torch." + std::string(dtype_name(x->dtype));
  return value;
}

Value* product_of(Op& op, Value* x, const Ints& axes, bool keep) {
  Value* value = x;
  for (std::size_t i = axes.size(); i-- > 0;) {
    Shape shape = value->shape;
    const auto at = static_cast<std::size_t>(axes[i]);
    if (keep) {
      shape[at] = 1;
    } else {
      shape.erase(shape.begin() + axes[i]);
    }
    Json attrs{{"dim", axes[i]}, {"keepdim", keep}};
    if (!is_floating_point(x->dtype)) {
      attrs["dtype"] = "torch." + std::string(dtype_name(x->dtype));
    }
    value = op.emit("aten.prod.dim_int", {value}, std::move(attrs), x->dtype, shape);
  }
  return value;
}

Value* reduced(Op& op, std::string_view name, Value* x, const Ints& axes, bool keep) {
  const auto square = [&] { return op.binary("mul", x, x); };
  if (name == "ReduceSum") return sum_of(op, x, axes, keep);
  if (name == "ReduceProd") return product_of(op, x, axes, keep);
  if (name == "ReduceSumSquare") return sum_of(op, square(), axes, keep);
  if (name == "ReduceL1") return sum_of(op, op.emit_like("aten.abs.default", {x}), axes, keep);
  if (name == "ReduceL2") {
    // Without a sum a root of the square would be lost where the square overflows.
    if (axes.empty()) return op.emit_like("aten.abs.default", {x});
    if (is_floating_point(x->dtype) && x->count() != 0) {
      return op.reduce("linalg_vector_norm.default", x, axes, keep);
    }
    return op.emit_like("aten.sqrt.default", {sum_of(op, square(), axes, keep)});
  }
  if (name == "ReduceLogSum") {
    return op.emit_like("aten.log.default", {sum_of(op, x, axes, keep)});
  }
  if (axes.empty()) return x;
  if (name == "ReduceMean") {
    if (is_floating_point(x->dtype)) return op.reduce("mean.dim", x, axes, keep);
    Value* wide = op.reduce("mean.dim", op.cast(x, DType::kFloat64), axes, keep);
    return op.cast(wide, x->dtype);
  }
  if (name == "ReduceLogSumExp") return op.reduce("logsumexp.default", x, axes, keep);
  return extremum_of(op, x, axes, keep, name == "ReduceMax");
}

}  // namespace

void import_reduce(Op& op) {
  Value* x = op.in(0);
  const Ints axes = reduced_axes(op, x);
  const bool keep = op.integer("keepdims", 1) != 0;
  op.set(0, reduced(op, op.node().op_type, x, axes, keep));
}

void import_arg_extremum(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), x->rank());
  const bool keep = op.integer("keepdims", 1) != 0;
  const bool is_last = op.integer("select_last_index", 0) != 0;
  Shape shape = x->shape;
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  if (extent == 0) {
    Op::refuse("axis " + std::to_string(axis) + " of shape " + shape_text(shape) +
               " has no element whose place could be told");
  }
  if (keep) {
    shape[static_cast<std::size_t>(axis)] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  if (is_last) x = op.emit_like("aten.flip.default", {x}, Json{{"dims", Ints{axis}}});
  Value* value =
      op.emit(op.node().op_type == "ArgMax" ? "aten.argmax.default" : "aten.argmin.default", {x},
              Json{{"dim", axis}, {"keepdim", keep}}, DType::kInt64, shape);
  if (is_last) value = op.emit_like("aten.rsub.Scalar", {value}, Json{{"other", extent - 1}});
  op.set(0, value);
}

}  // namespace npu::onnx

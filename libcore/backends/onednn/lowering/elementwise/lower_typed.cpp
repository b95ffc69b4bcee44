// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers and on operands of several dtypes, comparisons, logic and selection. Every
// op is one kernel over row-major results; operands are converted to the dtype that PyTorch
// computes in first. Arithmetic whose result is float goes the way of all floats.
#include <algorithm>
#include <array>

#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/promotion.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

using Op = TypedBinary::Op;

/// Leading dimensions of 1 up to the rank of `shape`; strides alone say where elements lie.
Value broadcastable(Lowering& lowering, const Value& value, const Shape& shape) {
  Shape own = dimensions(value.layout);
  const std::size_t rank = std::max<std::size_t>(shape.size(), 1);
  if (own.size() < rank) own.insert(own.begin(), rank - own.size(), 1);
  return lowering.strided(lowering.reshaped(value, own));
}

Shape broadcast_of(const Lowering& lowering, const std::vector<MixedOperand>& operands) {
  Shape shape;
  for (const MixedOperand& operand : operands) {
    shape = broadcast_shape(lowering, shape, shape_of(lowering, operand));
  }
  return shape;
}

/// op(a, b) in the type of both, row-major.
Value add_typed(Lowering& lowering, Op op, const Value& left, const Value& right,
                const Shape& shape, std::int64_t alpha = 1) {
  if (!TypedBinary::supports(op, left.type)) {
    lowering.refuse("", "dtype " + std::string(dtype_name(left.type)) + " is not supported");
  }
  const Value a = broadcastable(lowering, left, shape);
  const Value b = broadcastable(lowering, right, shape);
  const DType type = TypedBinary::gives_bool(op) ? DType::kBool : left.type;
  const Value target = lowering.temporary(type, plain_layout(shape, type));
  const Iteration space = iterate(target.layout);
  TypedBinary call;
  call.op = op;
  call.type = left.type;
  call.alpha = alpha;
  call.extents = space.extents;
  call.a_strides = strides_in(space, a.layout);
  call.b_strides = strides_in(space, b.layout);
  call.target_strides = space.strides;
  call.node = node_text(lowering.node());
  call.simplify();
  lowering.add_kernel({a, b}, target, std::move(call));
  return target;
}

/// Sets the result from a value that was computed in the type for its dtype.
void define_in(Lowering& lowering, const GroupContext& context, const Shape& shape, DType dtype,
               const Value& value) {
  lowering.check_result(lowering.result(), shape, dtype);
  const bool is_small = is_integer(dtype) && value.type != dtype;
  lowering.define_computed(context, lowering.result(), shape, dtype,
                           is_small ? cast_value(lowering, value, dtype) : value);
}

struct TypedRow {
  std::string_view name;
  Op op;
};
constexpr auto kTypedRows = std::to_array<TypedRow>({
    {"__and__", Op::kBitAnd},
    {"__or__", Op::kBitOr},
    {"__xor__", Op::kBitXor},
    {"add", Op::kAdd},
    {"bitwise_and", Op::kBitAnd},
    {"bitwise_or", Op::kBitOr},
    {"bitwise_xor", Op::kBitXor},
    {"eq", Op::kEqual},
    {"floor_divide", Op::kFloorDivide},
    {"fmod", Op::kFmod},
    {"ge", Op::kGreaterEqual},
    {"gt", Op::kGreater},
    {"le", Op::kLessEqual},
    {"logical_and", Op::kLogicalAnd},
    {"logical_or", Op::kLogicalOr},
    {"logical_xor", Op::kLogicalXor},
    {"lt", Op::kLess},
    {"maximum", Op::kMaximum},
    {"minimum", Op::kMinimum},
    {"mul", Op::kMultiply},
    {"ne", Op::kNotEqual},
    {"remainder", Op::kRemainder},
    {"rsub", Op::kAdd},
    {"sub", Op::kAdd},
});

Op typed_op(const Lowering& lowering, const BoundNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "div") {
    const std::string mode = node.string("rounding_mode");
    if (mode == "floor") return Op::kFloorDivide;
    if (mode == "trunc") return Op::kTruncateDivide;
    lowering.invalid("argument 'rounding_mode': expected 'floor' or 'trunc', found '" + mode + "'");
  }
  const auto* row = std::find_if(kTypedRows.begin(), kTypedRows.end(),
                                 [&](const TypedRow& each) { return each.name == name; });
  if (row == kTypedRows.end()) lowering.refuse("", "the onednn backend does not run this op");
  return row->op;
}

/// What arithmetic on truth is.
Op logical_form(Op op) {
  if (op == Op::kAdd || op == Op::kMaximum) return Op::kBitOr;
  return op == Op::kMultiply || op == Op::kMinimum ? Op::kBitAnd : op;
}

std::int64_t integer_alpha(const Lowering& lowering, const BoundNode& node) {
  const BoundArgument* alpha = node.find("alpha");
  if (alpha == nullptr || alpha->kind != BoundArgument::Kind::kValue) return 1;
  const auto number = json_number(alpha->value);
  if (!number || *number != static_cast<double>(static_cast<std::int64_t>(*number))) {
    lowering.refuse("alpha", "only an integer is supported for integers");
  }
  return static_cast<std::int64_t>(*number);
}

/// The arithmetic of floats that has a kernel of its own.
std::optional<BinaryOp> float_op(std::string_view name) {
  if (name == "add") return BinaryOp::kAdd;
  if (name == "sub" || name == "rsub") return BinaryOp::kSubtract;
  if (name == "mul") return BinaryOp::kMultiply;
  if (name == "div") return BinaryOp::kDivide;
  if (name == "maximum") return BinaryOp::kMaximum;
  if (name == "minimum") return BinaryOp::kMinimum;
  return std::nullopt;
}

bool rounds_division(const BoundNode& node) {
  return node.find("rounding_mode") != nullptr && !node.is_none("rounding_mode");
}

}  // namespace

bool has_one_float_dtype(const Lowering& lowering, const BoundNode& node) {
  const auto self = node.tensor("self");
  const auto other = node.tensor("other");
  if (rounds_division(node) || !self || !has_primitive_type(lowering.dtype(*self))) return false;
  return !other || lowering.dtype(*other) == lowering.dtype(*self);
}

void lower_typed_binary(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  std::vector<MixedOperand> operands{mixed_argument(lowering, node, "self"),
                                     mixed_argument(lowering, node, "other")};
  const std::string_view name = functional_name(node.node().op_type);
  const Shape shape = broadcast_of(lowering, operands);
  DType dtype = promoted_dtype(lowering, operands);
  if (name == "div" && !rounds_division(node) && !is_floating_point(dtype)) dtype = DType::kFloat32;
  if (name == "rsub") std::swap(operands[0], operands[1]);
  const DType type = arithmetic_type(lowering, dtype);
  const auto a = [&] { return converted(lowering, operands[0], dtype, type); };
  const auto b = [&] { return converted(lowering, operands[1], dtype, type); };
  const auto floats = float_op(name);
  if (floats && is_floating_point(dtype) && !rounds_division(node)) {
    lowering.check_result(lowering.result(), shape, dtype);
    const auto alpha =
        node.find("alpha") != nullptr ? static_cast<float>(node.number("alpha")) : 1.0F;
    const Value value = add_binary(lowering, *floats, a(), b(), alpha);
    return lowering.define_computed(context, lowering.result(), shape, dtype,
                                    lowering.reshaped(value, shape));
  }
  Op op = typed_op(lowering, node);
  if (dtype == DType::kBool) op = logical_form(op);
  const bool is_truth = TypedBinary::gives_bool(op);
  lowering.check_result(lowering.result(), shape, is_truth ? DType::kBool : dtype);
  std::int64_t alpha = integer_alpha(lowering, node);
  if (name == "sub" || name == "rsub")
    alpha = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(alpha));
  const Value value = add_typed(lowering, op, a(), b(), shape, alpha);
  define_in(lowering, context, shape, is_truth ? DType::kBool : dtype, value);
}

/// Of integers or truth, and tests of floats: arithmetic with a number.
void lower_typed_unary(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const std::string_view name = functional_name(node.node().op_type);
  const Shape& shape = lowering.shape(self);
  const DType dtype = lowering.dtype(self);
  const DType type = arithmetic_type(lowering, dtype);
  const Value value = converted(lowering, {self, {}}, dtype, type);
  const auto with_number = [&](Op op, const Json& number) {
    const Value right = converted(lowering, {std::nullopt, number}, dtype, type);
    return add_typed(lowering, op, value, right, shape);
  };
  if (name == "isnan") {
    return define_in(lowering, context, shape, DType::kBool,
                     add_typed(lowering, Op::kNotEqual, value, value, shape));
  }
  if (name == "logical_not" || (name == "bitwise_not" && dtype == DType::kBool)) {
    return define_in(lowering, context, shape, DType::kBool, with_number(Op::kEqual, 0));
  }
  if (!is_integer(dtype)) {
    lowering.refuse("self", "dtype " + std::string(dtype_name(dtype)) + " is not supported");
  }
  lowering.check_result(lowering.result(), shape, dtype);
  if (name == "bitwise_not")
    return define_in(lowering, context, shape, dtype, with_number(Op::kBitXor, -1));
  if (name == "neg")
    return define_in(lowering, context, shape, dtype, with_number(Op::kMultiply, -1));
  if (name == "relu")
    return define_in(lowering, context, shape, dtype, with_number(Op::kMaximum, 0));
  if (name == "abs") {
    return define_in(lowering, context, shape, dtype, with_number(Op::kAbsoluteDifference, 0));
  }
  lowering.refuse("self", "dtype " + std::string(dtype_name(dtype)) + " is not supported");
}

/// Bounds that are integers, of a tensor of integers.
void lower_typed_clamp(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  std::vector<MixedOperand> operands{{self, {}}};
  const Shape& shape = lowering.shape(self);
  const DType dtype = lowering.dtype(self);
  const DType type = arithmetic_type(lowering, dtype);
  Value value = converted(lowering, operands[0], dtype, type);
  for (const std::string_view name : {"min", "max"}) {
    if (node.find(name) == nullptr || node.is_none(name)) continue;
    const MixedOperand bound = mixed_argument(lowering, node, name);
    operands.push_back(bound);
    if (promoted_dtype(lowering, operands) != dtype || broadcast_of(lowering, operands) != shape) {
      lowering.refuse(name, "a bound of another dtype or a larger shape is not supported");
    }
    const Value right = converted(lowering, bound, dtype, type);
    if (has_primitive_type(type)) {
      value = add_binary(lowering, name == "min" ? BinaryOp::kMaximum : BinaryOp::kMinimum, value,
                         right, 1.0F);
    } else {
      value = add_typed(lowering, name == "min" ? Op::kMaximum : Op::kMinimum, value, right, shape);
    }
  }
  define_in(lowering, context, shape, dtype, lowering.reshaped(value, shape));
}

namespace {

/// condition ? a : b, which are kept in one type.
void define_selected(Lowering& lowering, const Value& condition, const Value& left,
                     const Value& right, const Shape& shape, DType dtype) {
  lowering.check_result(lowering.result(), shape, dtype);
  const Value chooser =
      broadcastable(lowering, cast_value(lowering, condition, DType::kBool), shape);
  const Value a = broadcastable(lowering, left, shape);
  const Value b = broadcastable(lowering, right, shape);
  const Value target = lowering.temporary(a.type, plain_layout(shape, a.type));
  const Iteration space = iterate(target.layout);
  Select call;
  call.element_size = dtype_size(a.type);
  if (call.element_size > 8) lowering.refuse("", "complex numbers are not supported");
  call.extents = space.extents;
  call.condition_strides = strides_in(space, chooser.layout);
  call.a_strides = strides_in(space, a.layout);
  call.b_strides = strides_in(space, b.layout);
  call.target_strides = space.strides;
  call.simplify();
  lowering.add_kernel({chooser, a, b}, target, std::move(call));
  lowering.define_moved(lowering.result(), shape, dtype, target);
}

}  // namespace

void lower_where(Lowering& lowering, const BoundNode& node) {
  const TensorId condition = tensor_argument(lowering, node, "condition");
  const std::vector<MixedOperand> operands{mixed_argument(lowering, node, "self"),
                                           mixed_argument(lowering, node, "other")};
  const DType dtype = promoted_dtype(lowering, operands);
  const DType type = lowering.storage_type(dtype);
  const Shape shape =
      broadcast_shape(lowering, lowering.shape(condition), broadcast_of(lowering, operands));
  define_selected(lowering, lowering.stored(condition),
                  converted(lowering, operands[0], dtype, type),
                  converted(lowering, operands[1], dtype, type), shape, dtype);
}

void lower_masked_fill(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const TensorId mask = tensor_argument(lowering, node, "mask");
  const DType dtype = lowering.dtype(self);
  const DType type = lowering.storage_type(dtype);
  const MixedOperand value = mixed_argument(lowering, node, "value");
  if (value.tensor && element_count(lowering.shape(*value.tensor)) != 1) {
    lowering.refuse("value", "only one element is supported");
  }
  const Shape shape = broadcast_shape(lowering, lowering.shape(self), lowering.shape(mask));
  const Value number = lowering.reshaped(converted(lowering, value, dtype, type), {});
  define_selected(lowering, lowering.stored(mask), number,
                  converted(lowering, {self, {}}, dtype, type), shape, dtype);
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Quantized ops in terms of plain ones, as ONNX defines them: it divides by the scale and rounds
// ties to even. Sums of products of integers are exact: in int32 for matrices, in float64, which
// holds all of them, for convolutions, since ATen has none of integers.
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

std::pair<std::int64_t, std::int64_t> range_of(DType dtype) {
  if (dtype == DType::kUInt8) return {0, 255};
  if (dtype == DType::kInt8) return {-128, 127};
  if (dtype == DType::kInt32) return {INT32_MIN, INT32_MAX};
  Op::refuse("quantized to " + std::string(dtype_name(dtype)));
}

// A scale or zero point: one number, or one for each element of an axis.
Value* along(Op& op, Value* value, const Value* x, std::int64_t axis) {
  if (value->count() == 1) return op.view(value, {});
  if (value->rank() != 1) Op::refuse("blocked scales are not imported");
  const std::int64_t at = Op::axis_of(axis, x->rank());
  if (value->count() != x->shape[static_cast<std::size_t>(at)]) {
    Op::refuse("a scale of shape " + shape_text(value->shape) + " does not fit its operand");
  }
  Shape shape(static_cast<std::size_t>(x->rank()), 1);
  shape[static_cast<std::size_t>(at)] = value->count();
  return op.view(value, shape);
}

// x as `wide` numbers minus its zero point, which may be absent.
Value* centred(Op& op, Value* x, Value* zero, std::int64_t axis, DType wide) {
  Value* value = op.cast(x, wide);
  return zero == nullptr ? value : op.binary("sub", value, op.cast(along(op, zero, x, axis), wide));
}

// round(x) + zero, cut to the range of the dtype.
Value* quantized(Op& op, Value* x, Value* zero, DType dtype, std::int64_t axis) {
  const auto [low, high] = range_of(dtype);
  Value* value = op.emit_like("aten.round.default", {x});
  if (zero != nullptr) {
    value = op.binary("add", value, op.cast(along(op, zero, x, axis), value->dtype));
  }
  value = op.emit_like("aten.clamp.default", {value}, Json{{"min", low}, {"max", high}});
  return op.cast(value, dtype);
}

// The product of the scales of two operands over that of the result, in `wide` numbers.
Value* rescaled(Op& op, Value* sum, Value* a, Value* b, Value* y, std::int64_t axis) {
  Value* value = op.cast(sum, DType::kFloat64);
  value = op.binary("mul", value, op.cast(along(op, a, sum, 0), DType::kFloat64));
  value = op.binary("mul", value, op.cast(along(op, b, sum, axis), DType::kFloat64));
  return op.binary("div", value, op.cast(along(op, y, sum, 0), DType::kFloat64));
}

Value* integer_product(Op& op, Value* a, Value* a_zero, Value* b, Value* b_zero) {
  if (a->rank() < 2 || b->rank() < 2) Op::refuse("an operand is no matrix");
  Value* left = centred(op, a, a_zero, a->rank() - 2, DType::kInt32);
  Value* right = centred(op, b, b_zero, b->rank() - 1, DType::kInt32);
  if (left->shape.back() != right->shape[right->shape.size() - 2]) {
    Op::refuse("shapes " + shape_text(a->shape) + " and " + shape_text(b->shape) +
               " do not fit together");
  }
  Shape shape = broadcast(Shape(a->shape.begin(), a->shape.end() - 2),
                          Shape(b->shape.begin(), b->shape.end() - 2));
  shape.push_back(a->shape[a->shape.size() - 2]);
  shape.push_back(b->shape.back());
  return op.emit("aten.matmul.default", {left, right}, Json::object(), DType::kInt32, shape);
}

}  // namespace

void import_quantize(Op& op) {
  Value* x = op.in(0);
  Value* zero = op.maybe_in(2);
  const DType dtype = zero == nullptr ? DType::kUInt8 : zero->dtype;
  const std::int64_t axis = op.integer("axis", 1);
  Value* scale = along(op, op.in(1), x, axis);
  Value* real = is_floating_point(x->dtype) ? x : op.cast(x, scale->dtype);
  op.set(0, quantized(op, op.binary("div", real, op.cast(scale, real->dtype)), zero, dtype, axis));
}

void import_dequantize(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = op.integer("axis", 1);
  Value* scale = along(op, op.in(1), x, axis);
  Value* whole = centred(op, x, op.maybe_in(2), axis, DType::kInt32);
  op.set(0, op.binary("mul", op.cast(whole, scale->dtype), scale));
}

void import_dynamic_quantize(Op& op) {
  Value* x = op.in(0);
  Ints axes;
  for (std::int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  const auto extremum = [&](const char* name, const char* attribute) {
    Value* value = axes.empty() ? x : op.reduce(name, x, axes, false);
    return op.emit_like("aten.clamp.default", {value}, Json{{attribute, 0}});
  };
  Value* high = extremum("amax.default", "min");
  Value* low = extremum("amin.default", "max");
  Value* scale = op.scalar("div", op.binary("sub", high, low), 255);
  Value* zero = op.emit_like("aten.neg.default", {op.binary("div", low, scale)});
  zero = op.emit_like("aten.round.default",
                      {op.emit_like("aten.clamp.default", {zero}, Json{{"min", 0}, {"max", 255}})});
  zero = op.cast(zero, DType::kUInt8);
  op.set(0, quantized(op, op.binary("div", x, scale), zero, DType::kUInt8, 0));
  op.set(1, scale);
  op.set(2, zero);
}

void import_mat_mul_integer(Op& op) {
  op.set(0, integer_product(op, op.in(0), op.maybe_in(2), op.in(1), op.maybe_in(3)));
}

void import_qlinear_mat_mul(Op& op) {
  Value* sum = integer_product(op, op.in(0), op.in(2), op.in(3), op.in(5));
  Value* real = rescaled(op, sum, op.in(1), op.in(4), op.in(6), sum->rank() - 1);
  op.set(0, quantized(op, real, op.in(7), op.in(7)->dtype, 0));
}

void import_conv_integer(Op& op) {
  Value* x = centred(op, op.in(0), op.maybe_in(2), 1, DType::kFloat64);
  Value* w = centred(op, op.in(1), op.maybe_in(3), 0, DType::kFloat64);
  op.set(0, op.cast(convolve(op, x, w, nullptr), DType::kInt32));
}

void import_qlinear_conv(Op& op) {
  Value* x = centred(op, op.in(0), op.in(2), 1, DType::kFloat64);
  Value* w = centred(op, op.in(3), op.in(5), 0, DType::kFloat64);
  Value* bias = op.has_input(8) ? op.cast(op.in(8), DType::kFloat64) : nullptr;
  Value* real = rescaled(op, convolve(op, x, w, bias), op.in(1), op.in(4), op.in(6), 1);
  op.set(0, quantized(op, real, op.in(7), op.in(7)->dtype, 0));
}

}  // namespace npu::onnx

// SPDX-License-Identifier: Apache-2.0
// Quantized ops in terms of plain ones, as ONNX defines them: it divides by the scale and rounds
// ties to even. Sums of products of integers are exact: in int32 for matrices, in float64, which
// holds all of them, for convolutions, since ATen has none of integers.
#include "rules/attention.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

std::pair<std::int64_t, std::int64_t> range_of(DType dtype) {
  if (dtype == DType::kUInt8) return {0, 255};
  if (dtype == DType::kInt8) return {-128, 127};
  if (dtype == DType::kInt16) return {INT16_MIN, INT16_MAX};
  if (dtype == DType::kInt32) return {INT32_MIN, INT32_MAX};
  Op::refuse("quantized to " + std::string(dtype_name(dtype)));
}

// One number for each block of an axis, for each of its elements.
Value* blocked(Op& op, Value* value, const Value* x, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(Op::axis_of(axis, x->rank()));
  const std::int64_t size = op.integer("block_size", 0);
  Shape shape = x->shape;
  if (size < 1 || size > 1 << 24) Op::refuse("a block_size of " + std::to_string(size));
  shape[at] = (shape[at] + size - 1) / size;
  if (value->shape != shape) Op::refuse("blocked scales do not fit their operand");
  Shape wide = shape;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(at) + 1, 1);
  Value* one = op.view(value, wide);
  wide[at + 1] = size;
  shape[at] *= size;
  Value* all = op.view(op.expand(one, wide), shape);
  return op.slice(all, static_cast<std::int64_t>(at), 0, x->shape[at]);
}

// A scale or zero point: one number, or one for each element or block of an axis.
Value* along(Op& op, Value* value, const Value* x, std::int64_t axis) {
  if (value->count() == 1) return op.view(value, {});
  if (value->rank() == x->rank() && value->rank() > 1) return blocked(op, value, x, axis);
  if (value->rank() != 1) Op::refuse("a scale of shape " + shape_text(value->shape));
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
  DType dtype = zero == nullptr ? DType::kUInt8 : zero->dtype;
  if (zero == nullptr && op.integer("output_dtype", 0) != 0) {
    const std::int64_t to = op.integer("output_dtype", 0);
    const auto stated = onnx_dtype(to);
    if (!stated) Op::refuse("to type " + onnx_dtype_text(to) + ", which npu-tools does not have");
    dtype = *stated;
  }
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
  Value* y = op.binary("mul", op.cast(whole, scale->dtype), scale);
  const std::int64_t to = op.integer("output_dtype", 0);
  if (to != 0) {
    const auto stated = onnx_dtype(to);
    if (!stated) Op::refuse("to type " + onnx_dtype_text(to) + ", which npu-tools does not have");
    y = op.cast(y, *stated);
  }
  op.set(0, y);
}

namespace {

struct Dynamic {
  Value* quantized = nullptr;
  Value* scale = nullptr;
  Value* zero = nullptr;
};

Dynamic dynamically_quantized(Op& op, Value* x) {
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
  return {quantized(op, op.binary("div", x, scale), zero, DType::kUInt8, 0), scale, zero};
}

}  // namespace

void import_dynamic_quantize(Op& op) {
  const Dynamic dynamic = dynamically_quantized(op, op.in(0));
  op.set(0, dynamic.quantized);
  op.set(1, dynamic.scale);
  op.set(2, dynamic.zero);
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

namespace {

// What a quantized operand stands for.
Value* real_of(Op& op, Value* x, Value* scale, Value* zero) {
  Value* whole = op.cast(centred(op, x, zero, 0, DType::kInt32), DType::kFloat32);
  return op.binary("mul", whole, along(op, scale, x, 0));
}

void set_quantized(Op& op, Value* real, std::size_t scale, std::size_t zero) {
  Value* whole = op.binary("div", real, along(op, op.in(scale), real, 0));
  Value* shift = op.maybe_in(zero);
  op.set(0, quantized(op, whole, shift, shift == nullptr ? DType::kUInt8 : shift->dtype, 0));
}

}  // namespace

void import_qlinear_arithmetic(Op& op) {
  Value* a = real_of(op, op.in(0), op.in(1), op.maybe_in(2));
  Value* b = real_of(op, op.in(3), op.in(4), op.maybe_in(5));
  set_quantized(op, op.binary(op.node().op_type == "QLinearAdd" ? "add" : "mul", a, b), 6, 7);
}

void import_qlinear_activation(Op& op) {
  Value* x = real_of(op, op.in(0), op.in(1), op.maybe_in(2));
  if (op.node().op_type == "QLinearSigmoid") {
    x = op.emit_like("aten.sigmoid.default", {x});
  } else {
    x = op.emit_like("aten.leaky_relu.default", {x},
                     Json{{"negative_slope", op.real("alpha", from_float(0.01F))}});
  }
  set_quantized(op, x, 3, 4);
}

void import_qlinear_pool(Op& op) {
  Value* x = real_of(op, op.in(0), op.in(1), op.maybe_in(2));
  if (x->rank() < 3) Op::refuse("an operand of rank " + std::to_string(x->rank()));
  const bool is_last = op.integer("channels_last", 0) != 0;
  Ints axes;
  for (std::int64_t i = is_last ? 1 : 2; i < x->rank() - (is_last ? 1 : 0); ++i) axes.push_back(i);
  set_quantized(op, op.reduce("mean.dim", x, axes, true), 3, 4);
}

void import_qlinear_concat(Op& op) {
  std::vector<Value*> parts;
  for (std::size_t i = 2; i + 2 < op.input_count(); i += 3) {
    parts.push_back(real_of(op, op.in(i), op.in(i + 1), op.in(i + 2)));
  }
  if (parts.empty()) Op::refuse("has no operand");
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), parts[0]->rank());
  set_quantized(op, parts.size() == 1 ? parts[0] : concatenated(op, parts, axis), 0, 1);
}

void import_qgemm(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(3);
  if (a->rank() != 2 || b->rank() != 2) Op::refuse("an operand is no matrix");
  if (op.integer("transA", 0) != 0) a = op.permute(a, {1, 0});
  Value* left = centred(op, a, op.maybe_in(2), 0, DType::kInt32);
  Value* right =
      centred(op, b, op.maybe_in(5), op.integer("transB", 0) != 0 ? 0 : 1, DType::kInt32);
  if (op.integer("transB", 0) != 0) right = op.permute(right, {1, 0});
  Value* sum = op.emit("aten.matmul.default", {left, right}, Json::object(), DType::kInt32,
                       matrix_product_shape(left->shape, right->shape));
  if (op.has_input(6)) sum = op.binary("add", sum, op.in(6));
  Value* real = op.cast(sum, DType::kFloat32);
  const double alpha = op.real("alpha", 1);
  if (alpha != 1) real = op.scalar("mul", real, alpha);
  real = op.binary("mul", real, along(op, op.in(1), real, 0));
  real = op.binary("mul", real, along(op, op.in(4), real, 1));
  if (!op.has_input(7)) return op.set(0, real);
  set_quantized(op, real, 7, 8);
}

void import_mat_mul_to_float(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  Value* a_scale = nullptr;
  Value* a_zero = nullptr;
  const bool is_dynamic = op.node().op_type == "DynamicQuantizeMatMul";
  const std::size_t next = is_dynamic ? 2 : 3;
  if (is_dynamic) {
    const Dynamic dynamic = dynamically_quantized(op, a);
    a = dynamic.quantized;
    a_scale = dynamic.scale;
    a_zero = dynamic.zero;
  } else {
    a_scale = op.in(2);
    a_zero = op.maybe_in(4);
  }
  Value* b_zero = op.maybe_in(is_dynamic ? 3 : 5);
  Value* bias = op.maybe_in(is_dynamic ? 4 : 6);
  Value* real = op.cast(integer_product(op, a, a_zero, b, b_zero), DType::kFloat32);
  real = op.binary("mul", real, along(op, a_scale, real, real->rank() - 2));
  real = op.binary("mul", real, along(op, op.in(next), real, real->rank() - 1));
  op.set(0, bias == nullptr ? real : op.binary("add", real, bias));
}

}  // namespace npu::onnx

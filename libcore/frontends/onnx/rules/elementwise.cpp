// SPDX-License-Identifier: Apache-2.0
// Functions of single elements and of two operands with broadcasting.
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "patterns.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

// Before opset 7 the second operand was aligned at an axis, and only if `broadcast` was set.
Value* second_operand(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  if (op.opset() >= 7 || op.integer("broadcast", 0) == 0) return b;
  const std::int64_t axis = op.integer("axis", a->rank() - b->rank());
  const std::int64_t at = axis < 0 ? axis + a->rank() : axis;
  if (at < 0 || at + b->rank() > a->rank()) Op::refuse("axis does not fit its operands");
  Shape shape = b->shape;
  shape.resize(static_cast<std::size_t>(a->rank() - at), 1);
  return op.view(b, shape);
}

Value* minimum_or_maximum(Op& op, const char* name, Value* a, Value* b) {
  return op.emit(name, {a, b}, Json::object(), a->dtype, broadcast(a->shape, b->shape));
}

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

}  // namespace

void import_unary(Op& op) {
  static const std::map<std::string_view, const char*> names{{"Abs", "abs"},
                                                             {"Acos", "acos"},
                                                             {"Acosh", "acosh"},
                                                             {"Asin", "asin"},
                                                             {"Asinh", "asinh"},
                                                             {"Atan", "atan"},
                                                             {"Atanh", "atanh"},
                                                             {"Ceil", "ceil"},
                                                             {"Cos", "cos"},
                                                             {"Cosh", "cosh"},
                                                             {"Erf", "erf"},
                                                             {"Exp", "exp"},
                                                             {"Floor", "floor"},
                                                             {"IsNaN", "isnan"},
                                                             {"Log", "log"},
                                                             {"Neg", "neg"},
                                                             {"Not", "logical_not"},
                                                             {"Reciprocal", "reciprocal"},
                                                             {"Round", "round"},
                                                             {"Sign", "sign"},
                                                             {"Sin", "sin"},
                                                             {"Sinh", "sinh"},
                                                             {"Sqrt", "sqrt"},
                                                             {"Tan", "tan"},
                                                             {"BitwiseNot", "bitwise_not"}};
  const char* name = names.at(op.node().op_type);
  Value* x = op.in(0);
  const bool is_truth = op.node().op_type == "Not" || op.node().op_type == "IsNaN";
  op.set(0, op.emit("aten." + std::string(name) + ".default", {x}, Json::object(),
                    is_truth ? DType::kBool : x->dtype, x->shape));
}

void import_arithmetic(Op& op) {
  const std::string_view name = op.node().op_type;
  Value* a = op.in(0);
  Value* b = second_operand(op);
  if (a->dtype != b->dtype) Op::refuse("operands of two types");
  if (name == "Add") {
    Value* found = match_sum(op, a, b);
    return op.set(0, found != nullptr ? found : op.binary("add", a, b));
  }
  if (name == "Mul") {
    Value* found = match_product(op, a, b);
    for (int turn = 0; turn < 2 && found == nullptr; ++turn, std::swap(a, b)) {
      if (const auto factor = op.single(b)) found = match_scaled(op, a, *factor);
    }
    return op.set(0, found != nullptr ? found : op.binary("mul", a, b));
  }
  if (name == "Sub") {
    if (const auto number = op.single(a); number && a->rank() <= b->rank()) {
      return op.set(0, op.emit_like("aten.rsub.Scalar", {b},
                                    Json{{"other", json_number_of(*number, b->dtype)}}));
    }
    return op.set(0, op.binary("sub", a, b));
  }
  if (Value* found = match_quotient(op, a, b)) return op.set(0, found);
  if (is_floating_point(a->dtype) || is_complex(a->dtype)) {
    return op.set(0, op.binary("div", a, b));
  }
  op.set(0, op.emit("aten.div.Tensor_mode", {a, b}, Json{{"rounding_mode", "trunc"}}, a->dtype,
                    broadcast(a->shape, b->shape)));
}

void import_logical(Op& op) {
  static const std::map<std::string_view, const char*> names{
      {"And", "logical_and.default"},     {"Or", "logical_or.default"},
      {"Xor", "logical_xor.default"},     {"BitwiseAnd", "bitwise_and.Tensor"},
      {"BitwiseOr", "bitwise_or.Tensor"}, {"BitwiseXor", "bitwise_xor.Tensor"}};
  Value* a = op.in(0);
  Value* b = second_operand(op);
  op.set(0, op.emit("aten." + std::string(names.at(op.node().op_type)), {a, b}, Json::object(),
                    a->dtype, broadcast(a->shape, b->shape)));
}

void import_comparison(Op& op) {
  static const std::map<std::string_view, const char*> names{{"Equal", "eq"},
                                                             {"Greater", "gt"},
                                                             {"GreaterOrEqual", "ge"},
                                                             {"Less", "lt"},
                                                             {"LessOrEqual", "le"}};
  op.set(0, op.compare(names.at(op.node().op_type), op.in(0), second_operand(op)));
}

void import_variadic(Op& op) {
  const std::string_view name = op.node().op_type;
  Value* value = op.in(0);
  for (std::size_t i = 1; i < op.input_count(); ++i) {
    if (name == "Max") {
      value = minimum_or_maximum(op, "aten.maximum.default", value, op.in(i));
    } else if (name == "Min") {
      value = minimum_or_maximum(op, "aten.minimum.default", value, op.in(i));
    } else {
      value = op.binary("add", value, op.in(i));
    }
  }
  if (name == "Mean") value = op.scalar("div", value, static_cast<double>(op.input_count()));
  op.set(0, value);
}

void import_pow(Op& op) {
  Value* base = op.in(0);
  Value* exponent = second_operand(op);
  const DType dtype = base->dtype;
  if (const auto number = op.single(exponent); number && exponent->rank() <= base->rank()) {
    const bool is_whole = *number == std::floor(*number) && std::abs(*number) < 1e9;
    if (is_floating_point(dtype) || (is_whole && *number >= 0)) {
      Json value = *number;
      if (is_whole) value = static_cast<std::int64_t>(*number);
      return op.set(0, op.emit_like("aten.pow.Tensor_Scalar", {base}, Json{{"exponent", value}}));
    }
  }
  const bool is_real = is_floating_point(exponent->dtype) || is_floating_point(dtype);
  const DType wide = is_real && !is_floating_point(dtype) ? exponent->dtype : dtype;
  Value* power = op.emit("aten.pow.Tensor_Tensor", {op.cast(base, wide), op.cast(exponent, wide)},
                         Json::object(), wide, broadcast(base->shape, exponent->shape));
  op.set(0, op.cast(power, dtype));
}

void import_mod(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  const bool is_fmod = op.integer("fmod", 0) != 0;
  if (!is_fmod && is_floating_point(a->dtype)) Op::refuse("floats need fmod=1");
  op.set(0, op.emit(is_fmod ? "aten.fmod.Tensor" : "aten.remainder.Tensor", {a, b}, Json::object(),
                    a->dtype, broadcast(a->shape, b->shape)));
}

void import_bit_shift(Op& op) {
  const std::string direction = op.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    Op::refuse("direction is neither LEFT nor RIGHT");
  Value* a = op.in(0);
  Value* b = op.in(1);
  op.set(0, op.emit(direction == "LEFT" ? "aten.bitwise_left_shift.Tensor"
                                        : "aten.bitwise_right_shift.Tensor",
                    {a, b}, Json::object(), a->dtype, broadcast(a->shape, b->shape)));
}

void import_where(Op& op) {
  Value* a = op.in(1);
  Value* b = op.in(2);
  if (a->dtype != b->dtype) Op::refuse("operands of two types");
  Value* condition = op.in(0);
  const Shape shape = broadcast(condition->shape, broadcast(a->shape, b->shape));
  // A number beside a tensor is one, so that patterns know it.
  const auto number = [&](Value* one, Value* other) {
    const bool may_be = is_floating_point(one->dtype) && !other->is_constant() &&
                        broadcast(condition->shape, other->shape) == shape;
    return may_be ? op.single(one) : std::nullopt;
  };
  const auto emit = [&](const char* form, std::initializer_list<Value*> operands, Json attrs) {
    op.set(0, op.emit(form, operands, std::move(attrs), a->dtype, shape));
  };
  if (const auto self = number(a, b)) {
    return emit("aten.where.ScalarSelf", {condition, b},
                Json{{"self", json_number_of(*self, a->dtype)}});
  }
  if (const auto other = number(b, a)) {
    return emit("aten.where.ScalarOther", {condition, a},
                Json{{"other", json_number_of(*other, b->dtype)}});
  }
  emit("aten.where.self", {condition, a, b}, Json::object());
}

void import_clip(Op& op) {
  Value* x = op.in(0);
  std::optional<double> low;
  std::optional<double> high;
  Value* low_value = op.opset() < 11 ? nullptr : op.maybe_in(1);
  Value* high_value = op.opset() < 11 ? nullptr : op.maybe_in(2);
  if (op.opset() < 11) {
    if (op.attribute("min") != nullptr) low = op.real("min", 0);
    if (op.attribute("max") != nullptr) high = op.real("max", 0);
  } else {
    if (low_value != nullptr) low = op.single(low_value);
    if (high_value != nullptr) high = op.single(high_value);
  }
  if ((low_value != nullptr && !low) || (high_value != nullptr && !high)) {
    Value* value = x;
    if (low_value != nullptr)
      value = minimum_or_maximum(op, "aten.maximum.default", value, low_value);
    if (high_value != nullptr) {
      value = minimum_or_maximum(op, "aten.minimum.default", value, high_value);
    }
    return op.set(0, value);
  }
  // Exporters of old opsets state the ends of float32 for "no bound".
  constexpr double kEnd = from_float(std::numeric_limits<float>::max());
  if (is_floating_point(x->dtype) && low && *low <= -kEnd && x->dtype == DType::kFloat32)
    low.reset();
  if (is_floating_point(x->dtype) && high && *high >= kEnd && x->dtype == DType::kFloat32)
    high.reset();
  if (!low && !high) return op.set(0, x);
  if (low && high && *low <= *high && is_floating_point(x->dtype)) {
    return op.set(
        0, op.emit_like("aten.hardtanh.default", {x}, Json{{"min_val", *low}, {"max_val", *high}}));
  }
  Json attrs = Json::object();
  if (low) attrs["min"] = json_number_of(*low, x->dtype);
  if (high) attrs["max"] = json_number_of(*high, x->dtype);
  op.set(0, op.emit_like("aten.clamp.default", {x}, std::move(attrs)));
}

void import_prelu(Op& op) {
  Value* x = op.in(0);
  Value* slope = op.in(1);
  const bool is_single = slope->count() == 1;
  bool is_channel = x->rank() >= 2 && slope->is_constant();
  // Which axes of x the slope's stand for: before opset 7 a vector stood for the channels.
  Shape aligned = slope->shape;
  if (op.opset() < 7 && slope->rank() == 1 && x->rank() > 2) {
    aligned.resize(static_cast<std::size_t>(x->rank() - 1), 1);
  }
  if (broadcast(x->shape, aligned) != x->shape) Op::refuse("the slope does not fit its operand");
  const std::size_t skip = x->shape.size() - aligned.size();
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    is_channel = is_channel && (aligned[i] == 1 || i + skip == 1);
  }
  if (slope->is_constant() && (is_single || is_channel)) {
    Value* weight = op.view(slope, {slope->count()});
    return op.set(0, op.emit_like("aten.prelu.default", {x, weight}));
  }
  Value* zero = op.constant_value(Tensor(x->dtype, {}));
  Value* scaled = op.binary("mul", x, op.view(slope, aligned));
  Value* negative = op.compare("lt", x, zero);
  op.set(0, op.emit("aten.where.self", {negative, scaled, x}, Json::object(), x->dtype, x->shape));
}

void import_shrink(Op& op) {
  Value* x = op.in(0);
  const double lambda = op.real("lambd", 0.5);
  const double bias = op.real("bias", 0);
  const auto threshold = [&](const char* name, double bound) {
    return op.emit("aten." + std::string(name) + ".Scalar", {x},
                   Json{{"other", json_number_of(bound, DType::kFloat32)}}, DType::kBool, x->shape);
  };
  Value* zero = op.constant_value(Tensor(x->dtype, {}));
  Value* above =
      op.emit("aten.where.self", {threshold("gt", lambda), op.scalar("sub", x, bias), zero},
              Json::object(), x->dtype, x->shape);
  op.set(0, op.emit("aten.where.self", {threshold("lt", -lambda), op.scalar("add", x, bias), above},
                    Json::object(), x->dtype, x->shape));
}

void import_is_inf(Op& op) {
  Value* x = op.in(0);
  const bool positive = op.integer("detect_positive", 1) != 0;
  const bool negative = op.integer("detect_negative", 1) != 0;
  if (positive && negative) {
    return op.set(0, op.emit("aten.isinf.default", {x}, Json::object(), DType::kBool, x->shape));
  }
  if (!positive && !negative) {
    return op.set(0, op.emit("aten.zeros_like.default", {x}, Json{{"dtype", "torch.bool"}},
                             DType::kBool, x->shape));
  }
  op.set(0, op.emit("aten.eq.Scalar", {x}, Json{{"other", positive ? "inf" : "-inf"}}, DType::kBool,
                    x->shape));
}

namespace {

// Before opset 6 types had names; those of ONNX's enumeration.
std::int64_t type_of_name(const std::string& name) {
  constexpr const char* kNames[] = {"FLOAT",  "UINT8",  "INT8",   "UINT16",    "INT16",
                                    "INT32",  "INT64",  "STRING", "BOOL",      "FLOAT16",
                                    "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<std::int64_t>(i) + 1;
  }
  Op::refuse("to type '" + name + "', which ONNX does not have");
}

// Before opset 19 ONNX did not say how bfloat16 is rounded, and its own results are cut off.
Value* cut_to_bfloat16(Op& op, Value* x) {
  Value* bits = op.emit("aten.view.dtype", {op.cast(x, DType::kFloat32)},
                        Json{{"dtype", "torch.int32"}}, DType::kInt32, x->shape);
  bits = op.emit_like("aten.bitwise_and.Scalar", {bits}, Json{{"other", -65536}});
  Value* cut = op.emit("aten.view.dtype", {bits}, Json{{"dtype", "torch.float32"}}, DType::kFloat32,
                       x->shape);
  return op.cast(cut, DType::kBFloat16);
}

}  // namespace

void import_cast(Op& op) {
  DType wanted = DType::kFloat32;
  if (op.node().op_type == "CastLike") {
    wanted = op.in(1)->dtype;
  } else {
    const std::int64_t to = op.opset() < 6 ? type_of_name(op.text("to", "")) : op.integer("to", 0);
    const auto dtype = onnx_dtype(to);
    if (!dtype) Op::refuse("to type " + onnx_dtype_text(to) + ", which npu-tools does not have");
    wanted = *dtype;
  }
  Value* x = op.in(0);
  const bool is_wider = x->dtype == DType::kFloat32 || x->dtype == DType::kFloat64;
  op.set(0, wanted == DType::kBFloat16 && op.opset() < 19 && is_wider ? cut_to_bfloat16(op, x)
                                                                      : op.cast(x, wanted));
}

void import_bit_cast(Op& op) {
  Value* x = op.in(0);
  const std::int64_t to = op.integer("to", 0);
  const auto dtype = onnx_dtype(to);
  if (!dtype) Op::refuse("to type " + onnx_dtype_text(to) + ", which npu-tools does not have");
  if (dtype_size(*dtype) != dtype_size(x->dtype) || *dtype == DType::kBool ||
      x->dtype == DType::kBool) {
    Op::refuse("types of different sizes");
  }
  if (*dtype == x->dtype) return op.set(0, x);
  op.set(0, op.emit("aten.view.dtype", {x},
                    Json{{"dtype", "torch." + std::string(dtype_name(*dtype))}}, *dtype, x->shape));
}

void import_identity(Op& op) { op.set(0, op.in(0)); }

void import_dropout(Op& op) {
  if (op.opset() < 7 && op.integer("is_test", 0) == 0)
    Op::refuse("is_test is 0: drops in training");
  if (op.has_input(2) && op.number(2, "training_mode") != 0 &&
      (!op.has_input(1) || op.number(1, "the ratio of a dropout in training") != 0)) {
    Op::refuse("drops in training mode");
  }
  Value* x = op.in(0);
  op.set(0, x);
  if (op.wants(1)) {
    op.set(1, op.emit("aten.ones_like.default", {x}, Json{{"dtype", "torch.bool"}}, DType::kBool,
                      x->shape));
  }
}

}  // namespace npu::onnx

// SPDX-License-Identifier: Apache-2.0
// Quantized ops in terms of PyTorch's quantized_decomposed ones.
//
// ONNX divides by the scale where PyTorch multiplies with its reciprocal, which differs at ties;
// divide_by_scale says so. Ops that compute with quantized operands become dequantize, op,
// quantize, the pattern that kernels of integers are found by. In between numbers are float64: the
// sum of a convolution is exact there for what 8 bits can give, as is (q - z) * s, so that the
// result is that of the definition. MatMulInteger and ConvInteger, whose results are sums, stay
// plain integers.
#include <algorithm>
#include <utility>

#include "rules/rules.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

constexpr std::string_view kLibrary = "quantized_decomposed.";

std::string torch_name(DType dtype) { return "torch." + std::string(dtype_name(dtype)); }

Json range_attrs(DType dtype) {
  const auto [low, high] = range_of(dtype);
  if (low == high) Op::refuse("quantized to " + std::string(dtype_name(dtype)));
  return Json{{"quant_min", low}, {"quant_max", high}, {"dtype", torch_name(dtype)}};
}

/// What a quantized tensor means.
struct Quantization {
  Value* scale = nullptr;
  Value* zero = nullptr;  ///< null: zero
  std::int64_t axis = 1;  ///< of scales that are several
  std::int64_t block = 0;
};

// A known constant of float64 or int64 with the numbers of another one; null if they are unknown.
Value* known_as(Op& op, Value* value, DType dtype) {
  const Tensor* tensor = op.importer().known(value);
  if (tensor == nullptr || value->rank() > 8) return nullptr;
  Tensor wide(dtype, value->shape);
  for (std::int64_t i = 0; i < wide.element_count(); ++i) {
    const double number = tensor->value_as_double(i);
    if (dtype == DType::kFloat64) {
      wide.as_mutable<double>()[i] = number;
    } else {
      wide.as_mutable<std::int64_t>()[i] = static_cast<std::int64_t>(number);
    }
  }
  return op.constant_value(std::move(wide));
}

Value* widened(Op& op, Value* value, DType dtype) {
  if (value->dtype == dtype) return value;
  if (Value* known = known_as(op, value, dtype)) return known;
  return op.cast(value, dtype);
}

Value* zeros(Op& op, const Shape& shape) { return op.constant_value(Tensor(DType::kInt64, shape)); }

// A number for each of `count` channels, where there may be one for all.
Value* of_channels(Op& op, Value* value, std::int64_t count) {
  if (value->rank() == 1 && value->shape[0] == count) return value;
  return op.expand(op.view(value, {1}), {count});
}

bool is_integer_of(DType dtype, bool with_int32) {
  return dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16 ||
         (with_int32 && dtype == DType::kInt32);
}

// Emits NAME_per_tensor or NAME_per_channel for one scale, or one for each element of an axis.
Value* emit_scaled(Op& op, const char* name, Value* x, const Quantization& by, Json attrs,
                   DType result) {
  Value* scale = by.scale;
  Value* zero = by.zero;
  const bool is_one = scale->count() == 1 && (zero == nullptr || zero->count() == 1);
  const std::string prefix = std::string(kLibrary) + name;
  if (is_one) {
    const auto number = op.single(scale);
    const auto shift = zero == nullptr ? std::optional<double>(0) : op.single(zero);
    if (number && shift) {
      Json all{{"scale", json_number_of(*number, DType::kFloat64)},
               {"zero_point", static_cast<std::int64_t>(*shift)}};
      all.update(attrs);
      return op.emit(prefix + "_per_tensor.default", {x}, std::move(all), result, x->shape);
    }
    return op.emit(prefix + "_per_tensor.tensor",
                   {x, scale, zero == nullptr ? zeros(op, {}) : zero}, std::move(attrs), result,
                   x->shape);
  }
  const std::int64_t axis = Op::axis_of(by.axis, x->rank());
  const std::int64_t count = x->shape[static_cast<std::size_t>(axis)];
  for (const Value* numbers : {scale, zero}) {
    if (numbers == nullptr || numbers->count() == 1) continue;
    if (numbers->rank() != 1 || numbers->shape[0] != count) {
      Op::refuse("a scale or zero point of shape " + shape_text(numbers->shape) +
                 " does not fit axis " + std::to_string(axis) + " of shape " +
                 shape_text(x->shape));
    }
  }
  zero = zero == nullptr ? zeros(op, {count})
                         : of_channels(op, widened(op, zero, DType::kInt64), count);
  Json all{{"axis", axis}};
  all.update(attrs);
  return op.emit(prefix + "_per_channel.default", {x, of_channels(op, scale, count), zero},
                 std::move(all), result, x->shape);
}

// The same for one scale for each block of an axis: each block becomes a channel.
Value* emit_blocks(Op& op, const char* name, Value* x, const Quantization& by, const Json& attrs,
                   DType result) {
  const std::int64_t axis = Op::axis_of(by.axis, x->rank());
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t extent = x->shape[at];
  if (by.block < 1) Op::refuse("a block_size of " + std::to_string(by.block));
  const std::int64_t block = std::min(by.block, std::max<std::int64_t>(extent, 1));
  const std::int64_t blocks = extent / block + (extent % block != 0 ? 1 : 0);
  Shape shape = x->shape;
  shape[at] = blocks;
  if (by.scale->shape != shape || (by.zero != nullptr && by.zero->shape != shape)) {
    Op::refuse("scales of shape " + shape_text(by.scale->shape) + " do not fit blocks of " +
               std::to_string(by.block) + " of shape " + shape_text(x->shape));
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(x->shape.size(), {0, 0});
  pads[at].second = blocks * block - extent;
  Shape parts = shape;
  parts.insert(parts.begin() + axis + 1, block);
  Ints last;  // the elements of a block last
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != at + 1) last.push_back(static_cast<std::int64_t>(i));
  }
  last.push_back(axis + 1);
  Ints back(last.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    back[static_cast<std::size_t>(last[i])] = static_cast<std::int64_t>(i);
  }
  const std::int64_t count = product(shape, 0, shape.size());
  product({count, block}, 0, 2);
  Value* rows = op.permute(op.view(op.pad(x, pads, 0), parts), last);
  const Shape turned = rows->shape;
  rows = op.view(rows, {count, block});
  const Quantization by_row{op.view(by.scale, {count}),
                            by.zero == nullptr ? nullptr : op.view(by.zero, {count}), 0, 0};
  Value* y = op.view(emit_scaled(op, name, rows, by_row, attrs, result), turned);
  shape[at] = blocks * block;
  return op.slice(op.view(op.permute(y, back), shape), axis, 0, extent);
}

Value* emit_any(Op& op, const char* name, Value* x, const Quantization& by, const Json& attrs,
                DType result) {
  if (by.zero != nullptr && by.zero->count() > 1 && by.scale->count() > 1 &&
      by.zero->shape != by.scale->shape) {
    Op::refuse("scales of shape " + shape_text(by.scale->shape) + " and zero points of shape " +
               shape_text(by.zero->shape));
  }
  const bool is_blocked = by.scale->rank() == x->rank() && (by.scale->rank() > 1 || by.block > 0) &&
                          by.scale->count() > 1;
  if (is_blocked) return emit_blocks(op, name, x, by, attrs, result);
  return emit_scaled(op, name, x, by, attrs, result);
}

Value* quantize(Op& op, Value* x, const Quantization& by, DType dtype) {
  if (!is_integer_of(dtype, false)) Op::refuse("quantized to " + std::string(dtype_name(dtype)));
  Json attrs = range_attrs(dtype);
  attrs["divide_by_scale"] = true;
  return emit_any(op, "quantize", x, by, attrs, dtype);
}

Value* dequantize(Op& op, Value* x, Quantization by, DType dtype) {
  if (!is_integer_of(x->dtype, true)) {
    Op::refuse("quantized numbers of type " + std::string(dtype_name(x->dtype)));
  }
  if (by.zero != nullptr && by.zero->dtype != x->dtype) {
    Op::refuse("numbers of type " + std::string(dtype_name(x->dtype)) +
               " with zero points of type " + std::string(dtype_name(by.zero->dtype)));
  }
  Json attrs = range_attrs(x->dtype);
  if (dtype == DType::kFloat64) by.scale = widened(op, by.scale, dtype);
  if (dtype != DType::kFloat32) attrs["out_dtype"] = torch_name(dtype);
  return emit_any(op, "dequantize", x, by, attrs, dtype);
}

DType stated_dtype(std::int64_t type) {
  const auto stated = onnx_dtype(type);
  if (!stated) Op::refuse("to type " + onnx_dtype_text(type) + ", which npu-tools does not have");
  return *stated;
}

// ---- Ops that compute with quantized operands ----

// What a quantized operand stands for, exactly.
Value* exact(Op& op, Value* x, Value* scale, Value* zero, std::int64_t axis = 1) {
  // A matrix may have a scale for each row or column in all of its dimensions.
  std::int64_t block = 0;
  if (scale->count() > 1 && scale->rank() == x->rank() && scale->rank() > 1) {
    axis = Op::axis_of(axis, x->rank()) == x->rank() - 1 ? -2 : -1;
    block = x->shape[x->shape.size() - (axis == -2 ? 2U : 1U)];
  }
  return dequantize(op, x, {scale, zero, axis, block}, DType::kFloat64);
}

// The result with the scale and the zero point of two operands; the latter may be absent.
void set_quantized(Op& op, Value* real, std::size_t scale, std::size_t zero, std::int64_t axis) {
  Value* shift = op.maybe_in(zero);
  const DType dtype = shift == nullptr ? DType::kUInt8 : shift->dtype;
  op.set(0, quantize(op, real, {op.in(scale), shift, axis, 0}, dtype));
}

// The scale of a sum of products, and of the bias.
Value* product_of_scales(Op& op, Value* a, Value* b, double factor = 1) {
  Value* one = widened(op, a, DType::kFloat64);
  Value* other = widened(op, b, DType::kFloat64);
  if (one->count() != 1) std::swap(one, other);
  if (one->count() != 1) Op::refuse("a bias beside two operands of several scales each");
  one = op.view(one, {});
  const Tensor* left = op.importer().known(one);
  const Tensor* right = op.importer().known(other);
  if (left == nullptr || right == nullptr) {
    Value* scale = op.binary("mul", other, one);
    return factor == 1 ? scale : op.scalar("mul", scale, factor);
  }
  Tensor scale(DType::kFloat64, other->shape);
  for (std::int64_t i = 0; i < scale.element_count(); ++i) {
    scale.as_mutable<double>()[i] = right->value_as_double(i) * left->value_as_double(0) * factor;
  }
  return op.constant_value(std::move(scale));
}

Value* matrix_product(Op& op, Value* a, Value* b, DType dtype) {
  if (a->rank() < 2 || b->rank() < 2) Op::refuse("an operand is no matrix");
  return op.emit("aten.matmul.default", {a, b}, Json::object(), dtype,
                 matrix_product_shape(a->shape, b->shape));
}

// x as `wide` numbers minus its zero point, which may be absent.
Value* centred(Op& op, Value* x, Value* zero, std::int64_t axis, DType wide) {
  Value* value = op.cast(x, wide);
  if (zero == nullptr) return value;
  if (zero->count() == 1) return op.binary("sub", value, op.cast(op.view(zero, {}), wide));
  const std::int64_t at = Op::axis_of(axis, x->rank());
  Shape shape(static_cast<std::size_t>(x->rank()), 1);
  shape[static_cast<std::size_t>(at)] = zero->count();
  if (zero->rank() == 1) zero = op.view(zero, shape);
  if (broadcast(x->shape, zero->shape) != x->shape) {
    Op::refuse("a zero point of shape " + shape_text(zero->shape) + " does not fit its operand");
  }
  return op.binary("sub", value, op.cast(zero, wide));
}

// The bias of a sum of quantized products, whose int32 numbers are constants: as floats, since
// kernels take a bias as it is, and no kernel computes with int32 of a scale. Null for others.
Value* known_bias(Op& op, Value* x, const Quantization& by) {
  if (x->dtype != DType::kInt32 || x->rank() != 1 || by.scale->dtype != DType::kFloat32 ||
      by.block != 0 || (by.scale->count() != 1 && by.scale->shape != x->shape) ||
      (by.zero != nullptr && by.zero->count() != 1 && by.zero->shape != x->shape)) {
    return nullptr;
  }
  const Tensor* numbers = op.importer().known(x);
  const Tensor* scales = op.importer().known(by.scale);
  const Tensor* zeros = op.importer().known(by.zero);
  if (numbers == nullptr || scales == nullptr || (by.zero != nullptr && zeros == nullptr)) {
    return nullptr;
  }
  if (by.scale->count() > 1) Op::axis_of(by.axis, x->rank());  // which refuses another axis
  const auto of = [](const Tensor& tensor, std::int64_t i) {
    return tensor.value_as_double(tensor.element_count() == 1 ? 0 : i);
  };
  Tensor bias(DType::kFloat32, x->shape);
  for (std::int64_t i = 0; i < bias.element_count(); ++i) {
    const double number = of(*numbers, i) - (zeros == nullptr ? 0.0 : of(*zeros, i));
    bias.as_mutable<float>()[i] = static_cast<float>(number) * static_cast<float>(of(*scales, i));
  }
  return op.constant_value(std::move(bias));
}

}  // namespace

void import_quantize(Op& op) {
  Value* x = op.in(0);
  Value* zero = op.maybe_in(2);
  DType dtype = zero == nullptr ? DType::kUInt8 : zero->dtype;
  const std::int64_t to = op.integer("output_dtype", 0);
  if (to != 0) {
    const DType stated = stated_dtype(to);
    if (zero != nullptr && stated != dtype) {
      Op::refuse("output_dtype " + std::string(dtype_name(stated)) + " with zero points of type " +
                 std::string(dtype_name(dtype)));
    }
    dtype = stated;
  }
  const std::int64_t precision = op.integer("precision", 0);
  const DType type = precision != 0 ? stated_dtype(precision) : op.in(1)->dtype;
  if (!is_floating_point(type)) Op::refuse("scales of type " + std::string(dtype_name(type)));
  const Quantization by{op.cast(op.in(1), type), zero, op.integer("axis", 1),
                        op.integer("block_size", 0)};
  op.set(0, quantize(op, op.cast(x, type), by, dtype));
}

void import_dequantize(Op& op) {
  Value* x = op.in(0);
  Quantization by{op.in(1), op.maybe_in(2), op.integer("axis", 1), op.integer("block_size", 0)};
  const DType type = by.scale->dtype;
  if (!is_floating_point(type)) Op::refuse("scales of type " + std::string(dtype_name(type)));
  // Halves do not hold all numbers of 16 bits.
  const bool is_short = x->dtype == DType::kUInt8 || x->dtype == DType::kInt8;
  const DType compute = is_short || type == DType::kFloat64 ? type : DType::kFloat32;
  by.scale = op.cast(by.scale, compute);
  Value* bias = known_bias(op, x, by);
  Value* y = op.cast(bias != nullptr ? bias : dequantize(op, x, by, compute), type);
  const std::int64_t to = op.integer("output_dtype", 0);
  op.set(0, to == 0 ? y : op.cast(y, stated_dtype(to)));
}

namespace {

struct Dynamic {
  Value* quantized = nullptr;
  Value* scale = nullptr;
  Value* zero = nullptr;
};

Dynamic dynamically_quantized(Op& op, Value* x) {
  if (x->count() == 0) Op::refuse("an operand without elements");
  Ints axes;
  for (std::int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  const auto extremum = [&](const char* name, const char* attribute) {
    Value* value = axes.empty() ? x : op.reduce(name, x, axes, false);
    return op.emit_like("aten.clamp.default", {value}, Json{{attribute, 0}});
  };
  Value* high = extremum("amax.default", "min");
  Value* low = extremum("amin.default", "max");
  Value* scale = op.scalar("div", op.binary("sub", high, low), 255);
  // Where all is zero any scale will do, and ONNX says 1.
  Value* is_empty =
      op.emit("aten.eq.Scalar", {scale}, Json{{"other", 0}}, DType::kBool, scale->shape);
  scale = op.emit_like("aten.masked_fill.Scalar", {scale, is_empty}, Json{{"value", 1}});
  Value* zero = op.emit_like("aten.neg.default", {op.binary("div", low, scale)});
  zero = op.emit_like("aten.round.default",
                      {op.emit_like("aten.clamp.default", {zero}, Json{{"min", 0}, {"max", 255}})});
  zero = op.cast(zero, DType::kUInt8);
  return {quantize(op, x, {scale, zero, 0, 0}, DType::kUInt8), scale, zero};
}

}  // namespace

void import_dynamic_quantize(Op& op) {
  const Dynamic dynamic = dynamically_quantized(op, op.in(0));
  op.set(0, dynamic.quantized);
  op.set(1, dynamic.scale);
  op.set(2, dynamic.zero);
}

void import_mat_mul_integer(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  if (a->rank() < 2 || b->rank() < 2) Op::refuse("an operand is no matrix");
  a = centred(op, a, op.maybe_in(2), -2, DType::kInt32);
  b = centred(op, b, op.maybe_in(3), -1, DType::kInt32);
  op.set(0, matrix_product(op, a, b, DType::kInt32));
}

void import_conv_integer(Op& op) {
  // ATen has no convolution of integers with dilation.
  const Ints dilations = op.list("dilations").value_or(Ints{});
  const bool dilates =
      std::any_of(dilations.begin(), dilations.end(), [](auto d) { return d != 1; });
  const DType wide = dilates ? DType::kFloat64 : DType::kInt32;
  Value* x = centred(op, op.in(0), op.maybe_in(2), 1, wide);
  Value* w = centred(op, op.in(1), op.maybe_in(3), 0, wide);
  op.set(0, op.cast(convolve(op, x, w, nullptr), DType::kInt32));
}

void import_qlinear_mat_mul(Op& op) {
  if (op.in(0)->rank() < 2 || op.in(3)->rank() < 2) Op::refuse("an operand is no matrix");
  Value* a = exact(op, op.in(0), op.in(1), op.in(2), -2);
  Value* b = exact(op, op.in(3), op.in(4), op.in(5), -1);
  set_quantized(op, matrix_product(op, a, b, a->dtype), 6, 7, -2);
}

void import_qlinear_conv(Op& op) {
  Value* x = exact(op, op.in(0), op.in(1), op.in(2));
  Value* w = exact(op, op.in(3), op.in(4), op.in(5), 0);
  Value* bias = op.maybe_in(8);
  if (bias != nullptr) {
    bias = exact(op, bias, product_of_scales(op, op.in(1), op.in(4)), nullptr, 0);
  }
  set_quantized(op, convolve(op, x, w, bias), 6, 7, 1);
}

void import_qlinear_arithmetic(Op& op) {
  Value* a = exact(op, op.in(0), op.in(1), op.maybe_in(2));
  Value* b = exact(op, op.in(3), op.in(4), op.maybe_in(5));
  set_quantized(op, op.binary(op.node().op_type == "QLinearAdd" ? "add" : "mul", a, b), 6, 7, 0);
}

void import_qlinear_activation(Op& op) {
  Value* x = exact(op, op.in(0), op.in(1), op.maybe_in(2));
  const bool is_sigmoid = op.node().op_type == "QLinearSigmoid";
  x = is_sigmoid ? activated(op, "Sigmoid", x)
                 : activated(op, "LeakyRelu", x, op.real("alpha", from_float(0.01F)));
  set_quantized(op, x, 3, 4, 0);
}

void import_qlinear_pool(Op& op) {
  Value* x = exact(op, op.in(0), op.in(1), op.maybe_in(2));
  if (x->rank() < 3) Op::refuse("an operand of rank " + std::to_string(x->rank()));
  const bool is_last = op.integer("channels_last", 0) != 0;
  if (op.node().op_type == "QLinearAveragePool") {
    Ints first{0, x->rank() - 1};
    Ints last{0};
    for (std::int64_t i = 1; i + 1 < x->rank(); ++i) first.push_back(i);
    for (std::int64_t i = 2; i < x->rank(); ++i) last.push_back(i);
    last.push_back(1);
    Value* y = average_pool(op, is_last ? op.permute(x, first) : x);
    return set_quantized(op, is_last ? op.permute(y, last) : y, 3, 4, 0);
  }
  Ints axes;
  for (std::int64_t i = is_last ? 1 : 2; i < x->rank() - (is_last ? 1 : 0); ++i) axes.push_back(i);
  set_quantized(op, op.reduce("mean.dim", x, axes, true), 3, 4, 0);
}

void import_qlinear_concat(Op& op) {
  std::vector<Value*> parts;
  for (std::size_t i = 2; i + 1 < op.input_count(); i += 3) {
    parts.push_back(exact(op, op.in(i), op.in(i + 1), op.maybe_in(i + 2)));
  }
  if (parts.empty()) Op::refuse("has no operand");
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), parts[0]->rank());
  set_quantized(op, concatenated(op, parts, axis), 0, 1, 0);
}

void import_qgemm(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(3);
  if (a->rank() != 2 || b->rank() != 2) Op::refuse("an operand is no matrix");
  const bool is_turned = op.integer("transB", 0) != 0;
  a = exact(op, a, op.in(1), op.maybe_in(2), op.integer("transA", 0) != 0 ? 1 : 0);
  if (op.integer("transA", 0) != 0) a = op.permute(a, {1, 0});
  b = exact(op, b, op.in(4), op.maybe_in(5), is_turned ? 0 : 1);
  const double alpha = op.real("alpha", 1);
  Value* bias = op.maybe_in(6);
  if (bias != nullptr) {
    bias = exact(op, bias, product_of_scales(op, op.in(1), op.in(4), alpha), nullptr, -1);
  }
  Value* real = nullptr;
  if (is_turned) {
    const Shape shape = matrix_product_shape(a->shape, {b->shape[1], b->shape[0]});
    std::vector<Value*> operands{a, b};
    if (alpha == 1 && bias != nullptr && bias->rank() == 1 && bias->shape[0] == shape[1]) {
      operands.push_back(std::exchange(bias, nullptr));
    }
    real = op.emit("aten.linear.default", operands, Json::object(), a->dtype, shape);
  } else {
    real = matrix_product(op, a, b, a->dtype);
  }
  if (alpha != 1) real = op.scalar("mul", real, alpha);
  if (bias != nullptr) real = op.binary("add", real, bias);
  if (!op.has_input(7)) return op.set(0, op.cast(real, DType::kFloat32));
  set_quantized(op, real, 7, 8, 1);
}

void import_mat_mul_to_float(Op& op) {
  Value* a = op.in(0);
  Value* a_scale = nullptr;
  Value* a_zero = nullptr;
  const bool is_dynamic = op.node().op_type == "DynamicQuantizeMatMul";
  if (is_dynamic) {
    const Dynamic dynamic = dynamically_quantized(op, a);
    a = dynamic.quantized;
    a_scale = dynamic.scale;
    a_zero = dynamic.zero;
  } else {
    a_scale = op.in(2);
    a_zero = op.maybe_in(4);
  }
  Value* b = exact(op, op.in(1), op.in(is_dynamic ? 2 : 3), op.maybe_in(is_dynamic ? 3 : 5), -1);
  Value* bias = op.maybe_in(is_dynamic ? 4 : 6);
  Value* sum = matrix_product(op, exact(op, a, a_scale, a_zero, -2), b, b->dtype);
  Value* real = op.cast(sum, DType::kFloat32);
  op.set(0, bias == nullptr ? real : op.binary("add", real, bias));
}

}  // namespace npu::onnx

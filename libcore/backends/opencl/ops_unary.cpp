// SPDX-License-Identifier: Apache-2.0
// Functions of one element, casts, and norms whose statistics are weights.
#include <array>
#include <cmath>
#include <limits>

#include "npu/ops/op_name.hpp"
#include "op_table.hpp"

namespace npu::opencl {
namespace {

/// A formula; {x} stands for the operand, {T} for its C type.
struct UnaryFormula {
  std::string_view name;
  std::string_view text;
};

constexpr auto kFormulas = std::to_array<UnaryFormula>({
    {"abs", "({x} < 0 ? -{x} : {x})"},
    {"acos", "acos({x})"},
    {"asin", "asin({x})"},
    {"atan", "atan({x})"},
    {"ceil", "ceil({x})"},
    {"cos", "cos({x})"},
    {"cosh", "cosh({x})"},
    {"erf", "erf({x})"},
    {"exp", "exp({x})"},
    {"expm1", "expm1({x})"},
    {"floor", "floor({x})"},
    {"hardsigmoid", "(({T})clamp({x} + 3, ({T})0, ({T})6) / 6)"},
    {"hardswish", "({x} * clamp({x} + 3, ({T})0, ({T})6) / 6)"},
    {"log", "log({x})"},
    {"log10", "log10({x})"},
    {"log1p", "log1p({x})"},
    {"log2", "log2({x})"},
    {"log_sigmoid", "(fmin({x}, ({T})0) - log1p(exp(-fabs({x}))))"},
    {"mish", "({x} * tanh({x} > 20 ? {x} : log1p(exp({x}))))"},
    {"neg", "(-{x})"},
    {"reciprocal", "(1 / {x})"},
    {"relu", "({x} < 0 ? ({T})0 : {x})"},
    {"relu6", "({x} < 0 ? ({T})0 : {x} > 6 ? ({T})6 : {x})"},
    {"round", "rint({x})"},
    {"rsqrt", "(1 / sqrt({x}))"},
    {"sigmoid", "(1 / (1 + exp(-{x})))"},
    {"sign", "(({x} > 0) - ({x} < 0))"},
    {"silu", "({x} / (1 + exp(-{x})))"},
    {"sin", "sin({x})"},
    {"sinh", "sinh({x})"},
    {"sqrt", "sqrt({x})"},
    {"square", "({x} * {x})"},
    {"tan", "tan({x})"},
    {"tanh", "tanh({x})"},
    {"trunc", "trunc({x})"},
});

std::string filled_in(std::string_view text, const std::string& x, const std::string& type) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "{x}") {
      result += x;
      i += 2;
    } else if (text.substr(i, 3) == "{T}") {
      result += type;
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Those that leave integers as they are.
bool rounds(std::string_view name) {
  return name == "ceil" || name == "floor" || name == "round" || name == "trunc";
}

/// The largest number of a dtype; the lowest is its negative.
double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

std::string nan_to_num(const BoundNode& node, const std::string& x, DType dtype) {
  const auto stated = [&](const char* argument, double otherwise) {
    return literal(node.is_none(argument) ? otherwise : node.number(argument), dtype);
  };
  const std::string infinity = literal(INFINITY, dtype);
  return "(" + x + " != " + x + " ? " + stated("nan", 0) + " : " + x + " == " + infinity + " ? " +
         stated("posinf", largest(dtype)) + " : " + x + " == -" + infinity + " ? " +
         stated("neginf", -largest(dtype)) + " : " + x + ")";
}

/// Functions with arguments of their own; empty for others.
std::string with_arguments(const BoundNode& node, std::string_view name, const std::string& x,
                           DType dtype) {
  const auto number = [&](std::string_view argument) {
    return literal(node.number(argument), dtype);
  };
  const std::string zero = literal(0.0, dtype);
  if (name == "nan_to_num") return nan_to_num(node, x, dtype);
  if (name == "leaky_relu") {
    return "(" + x + " < 0 ? " + x + " * " + number("negative_slope") + " : " + x + ")";
  }
  if (name == "elu" || name == "celu" || name == "selu") {
    double alpha = 1.6732632423543772;
    double scale = 1.0507009873554805;
    double input_scale = 1;
    if (name != "selu") {
      alpha = node.number("alpha");
      scale = name == "elu" ? node.number("scale") : 1;
      input_scale = name == "elu" ? node.number("input_scale") : 1 / alpha;
    }
    return "(" + x + " > 0 ? " + x + " * " + literal(scale, dtype) + " : expm1(" + x + " * " +
           literal(input_scale, dtype) + ") * " + literal(alpha * scale, dtype) + ")";
  }
  if (name == "softplus") {
    return "(" + x + " * " + number("beta") + " > " + number("threshold") + " ? " + x +
           " : log1p(exp(" + x + " * " + number("beta") + ")) / " + number("beta") + ")";
  }
  if (name == "gelu" && node.string("approximate") == "tanh") {
    return "(" + literal(0.5, dtype) + " * " + x + " * (1 + tanh(" +
           literal(0.7978845608028654, dtype) + " * (" + x + " + " + literal(0.044715, dtype) +
           " * " + x + " * " + x + " * " + x + "))))";
  }
  if (name == "gelu") {
    return "(" + literal(0.5, dtype) + " * " + x + " * (1 + erf(" + x + " * " +
           literal(0.7071067811865476, dtype) + ")))";
  }
  return {};
}

}  // namespace

std::string unary_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const std::string_view name = functional_name(node.node().op_type);
  std::string x = emitter.element_as(self, index, dtype);
  if (name == "logical_not") {
    return "(uchar)(" + emitter.element(self, index) + " == 0)";
  }
  if (name == "isnan") {
    const std::string value = emitter.element(self, index);
    return "(uchar)(" + value + " != " + value + ")";
  }
  if (name == "isinf" || name == "isfinite") {
    const DType of = emitter.dtype(self);
    if (!is_floating_point(of)) return name == "isinf" ? "(uchar)0" : "(uchar)1";
    const std::string value = emitter.define(of, "fabs(" + emitter.element(self, index) + ")");
    const std::string sign = name == "isinf" ? " == " : " < ";
    return "(uchar)(" + value + sign + literal(INFINITY, of) + ")";
  }
  if (name == "bitwise_not") return dtype == DType::kBool ? "(uchar)(!" + x + ")" : "(~" + x + ")";
  if (!is_floating_point(dtype)) {
    const bool is_plain = name == "abs" || name == "neg" || name == "relu" || name == "sign" ||
                          name == "square" || name == "relu6";
    if (rounds(name) || name == "nan_to_num") return x;
    if (!is_plain || dtype == DType::kBool) emitter.refuse(node.node(), "it needs floats");
  }
  // The operand is written several times.
  const std::string once = emitter.define(dtype, x);
  for (const UnaryFormula& each : kFormulas) {
    if (each.name == name) return filled_in(each.text, once, value_type(dtype));
  }
  std::string text = with_arguments(node, name, once, dtype);
  if (text.empty()) emitter.refuse(node.node(), "it is not supported");
  return text;
}

std::string clamp_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const bool is_hardtanh = functional_name(node.node().op_type) == "hardtanh";
  std::string value =
      emitter.define(dtype, emitter.element_as(tensor_of(emitter, node, "self"), index, dtype));
  const auto bound_by = [&](const char* argument, const char* comparison) {
    if (node.find(argument) == nullptr || node.is_none(argument)) return;
    const std::string limit = emitter.define(dtype, operand(emitter, node, argument, index, dtype));
    // A NaN of either stays.
    const std::string is_nan = is_floating_point(dtype) ? " || " + limit + " != " + limit : "";
    value = emitter.define(dtype, "(" + value + " " + comparison + " " + limit + is_nan + " ? " +
                                      limit + " : " + value + ")");
  };
  bound_by(is_hardtanh ? "min_val" : "min", "<");
  bound_by(is_hardtanh ? "max_val" : "max", ">");
  return value;
}

std::string identity_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  if (node.node().inputs.empty()) emitter.refuse(node.node(), "a tensor is needed");
  if (node.find("train") != nullptr && node.boolean("train") && node.number("p") != 0) {
    emitter.refuse(node.node(), "it is in training mode");
  }
  return emitter.element(node.node().inputs[0], index);
}

std::string cast_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  if (node.node().inputs.empty()) emitter.refuse(node.node(), "a tensor is needed");
  const DType to = emitter.dtype(node.node().outputs[0]);
  if (node.find("dtype") != nullptr) {
    const auto wanted = node.dtype("dtype");
    emitter.expect_dtype(node.node(), 0, wanted ? *wanted : emitter.dtype(node.node().inputs[0]));
  } else if (const auto other =
                 node.node().inputs.size() == 2 ? node.tensor("other") : std::nullopt) {
    emitter.expect_dtype(node.node(), 0, emitter.dtype(*other));
  }
  emitter.expect_shape(node.node(), 0, emitter.shape(node.node().inputs[0]));
  return emitter.element_as(node.node().inputs[0], index, to);
}

std::string batch_norm_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId input = tensor_of(emitter, node, "input");
  const auto mean = node.tensor("running_mean");
  const auto variance = node.tensor("running_var");
  const bool trains =
      node.find("training") != nullptr ? node.boolean("training") : node.boolean("use_input_stats");
  if (trains || !mean || !variance || emitter.shape(input).size() < 2) {
    emitter.refuse(node.node(), "it needs running statistics");
  }
  const DType dtype = emitter.dtype(input);
  if (!is_floating_point(dtype)) emitter.refuse(node.node(), "it needs floats");
  const auto of_channel = [&](TensorId tensor) {
    if (emitter.shape(tensor) != Shape{emitter.shape(input)[1]}) {
      emitter.refuse(node.node(), "an operand has not one element for each channel");
    }
    return emitter.element_as(tensor, {index[1]}, dtype);
  };
  const std::string x = emitter.element(input, index);
  std::string factor = emitter.define(dtype, "1 / sqrt(" + of_channel(*variance) + " + " +
                                                 literal(node.number("eps"), dtype) + ")");
  std::string value = "(" + x + " - " + of_channel(*mean) + ")";
  if (const auto weight = node.tensor("weight")) {
    factor = "(" + factor + " * " + of_channel(*weight) + ")";
  }
  value = "(" + value + " * " + factor + ")";
  if (const auto bias = node.tensor("bias")) value = "(" + value + " + " + of_channel(*bias) + ")";
  return value;
}

}  // namespace npu::opencl

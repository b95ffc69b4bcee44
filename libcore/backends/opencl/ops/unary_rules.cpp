// SPDX-License-Identifier: Apache-2.0
// Functions of one element, casts, and norms whose statistics are weights.
#include <array>
#include <cmath>
#include <limits>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

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
    {"hardswish", "({x} * (clamp({x} + 3, ({T})0, ({T})6) / 6))"},
    {"log", "log({x})"},
    {"log10", "log10({x})"},
    {"log1p", "log1p({x})"},
    {"log2", "log2({x})"},
    {"neg", "(-{x})"},
    {"reciprocal", "(1 / {x})"},
    {"relu", "({x} < 0 ? ({T})0 : {x})"},
    {"relu6", "({x} < 0 ? ({T})0 : {x} > 6 ? ({T})6 : {x})"},
    {"round", "rint({x})"},
    {"rsqrt", "rsqrt({x})"},
    {"sign", "(({x} > 0) - ({x} < 0))"},
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

/// x P(X < x) for a normal variable X, with all places where it is small. What the argument of erfc
/// is rounded by counts many times over there, so that it is taken from the result again.
std::string gelu(Emitter& emitter, const std::string& x, DType dtype) {
  const auto number = [&](double value) { return literal(value, dtype); };
  constexpr double kRoot = 0.70710678118654752;
  const bool is_double = dtype == DType::kFloat64;
  const double first = is_double ? kRoot : double{0.70710678F};
  const std::string z = emitter.define(dtype, x + " * " + number(-first));
  if (is_double) return "(" + number(0.5) + " * " + x + " * erfc(" + z + "))";
  const std::string lost = emitter.define(dtype, "fma(" + x + ", " + number(-first) + ", -" + z +
                                                     ") - " + x + " * " + number(kRoot - first));
  return "(" + x + " > 6 ? " + x + " : " + number(0.5) + " * " + x + " * (erfc(" + z + ") - " +
         lost + " * " + number(1.1283791670955126) + " * exp(-" + z + " * " + z + ")))";
}

/// x / (1 + exp(-sqrt(8 / pi) (x + 0.044715 x^3))), where the exponent is t + lost: two numbers,
/// for the same reason. Products are never added to without fma: a compiler may or may not fuse
/// them.
std::string gelu_tanh(Emitter& emitter, const std::string& x, DType dtype) {
  const auto define = [&](const std::string& text) { return emitter.define(dtype, text); };
  const auto fma = [](const std::string& a, const std::string& b, const std::string& c) {
    return "fma(" + a + ", " + b + ", " + c + ")";
  };
  constexpr double kLinear = 1.5957691216057307;
  constexpr double kCubic = 0.071354816272600249;
  const bool is_double = dtype == DType::kFloat64;
  const auto first = [&](double value) {
    return is_double ? value : static_cast<double>(static_cast<float>(value));
  };
  const std::string linear = literal(first(kLinear), dtype);
  const std::string cubic = literal(first(kCubic), dtype);
  const std::string square = define(x + " * " + x);
  const std::string sum = define(fma(cubic, square, linear));
  const std::string part = define(sum + " - " + linear);
  std::string rest = define(fma(cubic, square, "-" + part));
  rest = define(rest + " + (" + linear + " - (" + sum + " - " + part + "))");
  rest = define(fma(cubic, fma(x, x, "-" + square), rest));
  rest = define(fma(literal(kCubic - first(kCubic), dtype), square, rest));
  rest = define(rest + " + " + literal(kLinear - first(kLinear), dtype));
  const std::string t = define(x + " * " + sum);
  const std::string lost = define(fma(x, rest, fma(x, sum, "-" + t)));
  const std::string e = define("exp(-fabs(" + t + "))");
  const std::string gate = define(fma(e, "(" + x + " < 0 ? " + lost + " : -" + lost + ")", e));
  // Beyond the bound the exponent overflows, and nothing is left of the result or of the quotient.
  return "(fabs(" + x + ") > 12 ? (" + x + " < 0 ? " + x + " * 0 : " + x + ") : (" + x + " < 0 ? " +
         x + " * " + gate + " : " + x + ") / (1 + " + gate + "))";
}

/// Functions of exp(-|x|), which neither overflows nor leaves digits behind; empty for others.
std::string of_exponential(Emitter& emitter, const BoundNode& node, std::string_view name,
                           const std::string& x, DType dtype) {
  const std::string zero = literal(0.0, dtype);
  const std::string one = literal(1.0, dtype);
  const auto exponential = [&](const std::string& of) {
    return emitter.define(dtype, "exp(-fabs(" + of + "))");
  };
  if (name == "sigmoid") {
    const std::string e = exponential(x);
    return "((" + x + " < 0 ? " + e + " : " + one + ") / (1 + " + e + "))";
  }
  if (name == "silu") {
    const std::string e = exponential(x);
    return "((" + x + " < 0 ? " + x + " * " + e + " : " + x + ") / (1 + " + e + "))";
  }
  if (name == "log_sigmoid") {
    return "(fmin(" + x + ", " + zero + ") - log1p(" + exponential(x) + "))";
  }
  if (name == "softplus") {
    const std::string beta = literal(node.number("beta"), dtype);
    const std::string scaled = emitter.define(dtype, x + " * " + beta);
    return "(" + scaled + " > " + literal(node.number("threshold"), dtype) + " ? " + x +
           " : (fmax(" + scaled + ", " + zero + ") + log1p(" + exponential(scaled) + ")) / " +
           beta + ")";
  }
  if (name == "mish") {
    const std::string e =
        emitter.define(dtype, "exp(fmin(" + x + ", " + literal(30.0, dtype) + "))");
    const std::string w = emitter.define(dtype, e + " * (" + e + " + 2)");
    return "(" + x + " > 30 ? " + x + " : " + x + " * " + w + " / (" + w + " + 2))";
  }
  return {};
}

/// Functions with arguments of their own; empty for others.
std::string with_arguments(Emitter& emitter, const BoundNode& node, std::string_view name,
                           const std::string& x, DType dtype) {
  const auto number = [&](std::string_view argument) {
    return literal(node.number(argument), dtype);
  };
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
  if (name == "gelu") {
    return node.string("approximate") == "tanh" ? gelu_tanh(emitter, x, dtype)
                                                : gelu(emitter, x, dtype);
  }
  return of_exponential(emitter, node, name, x, dtype);
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
  std::string text = with_arguments(emitter, node, name, once, dtype);
  if (text.empty()) emitter.refuse(node.node(), "it is not supported");
  return text;
}

std::string clamp_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const bool is_hardtanh = functional_name(node.node().op_type) == "hardtanh";
  std::string value = emitter.define(dtype, operand(emitter, node, "self", index, dtype));
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
    if (emitter.model().count(tensor) != emitter.shape(input)[1]) {
      emitter.refuse(node.node(), "an operand has not one element for each channel");
    }
    return emitter.element_as(tensor, index_of_place(index[1], emitter.shape(tensor)), dtype);
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

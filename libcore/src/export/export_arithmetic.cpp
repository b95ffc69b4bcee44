// SPDX-License-Identifier: Apache-2.0
// Logic, whole quotients and remainders, functions of more than one ONNX op, and tensors of one
// value. Rounding is PyTorch's: floor_divide and remainder follow the divisor's sign, for integers
// as well, whose Div in ONNX truncates.
#include <array>
#include <limits>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

/// a - b * floor(a / b), with the divisor's sign.
std::string emit_remainder(NodeExport& node, const std::string& left, const std::string& right,
                           DType dtype) {
  if (is_integer(dtype)) return node.emit("Mod", {left, right});
  const std::string rest = node.emit("Mod", {left, right}, {{"fmod", std::int64_t{1}}});
  const std::string zero = node.scalar(0, dtype);
  const std::string differs =
      node.emit("Xor", {node.emit("Less", {rest, zero}), node.emit("Less", {right, zero})});
  const std::string is_whole = node.emit("Equal", {rest, zero});
  const std::string corrected =
      node.emit("Where", {differs, node.emit("Add", {rest, right}), rest});
  return node.emit("Where", {is_whole, rest, corrected});
}

std::string emit_truncated(NodeExport& node, const std::string& value) {
  return node.emit("Mul",
                   {node.emit("Sign", {value}), node.emit("Floor", {node.emit("Abs", {value})})});
}

/// A factor in front of a term; nothing for 1.
std::string emit_times(NodeExport& node, const std::string& value, double factor, DType dtype) {
  return factor == 1 ? value : node.emit("Mul", {value, node.scalar(factor, dtype)});
}

// log(1 + x) loses what 1 + x rounds off; a factor that has the same error takes it out again
// (Kahan). Where nothing is rounded off the factor is 1, for infinity as well, and where all of x
// is, x is the result.
std::string emit_log1p(NodeExport& node, const std::string& value, DType dtype) {
  const std::string one = node.scalar(1, dtype);
  const std::string sum = node.emit("Add", {value, one});
  const std::string added = node.emit("Sub", {sum, one});
  const std::string log = node.emit("Log", {sum});
  const std::string corrected = node.emit("Mul", {log, node.emit("Div", {value, added})});
  const std::string otherwise =
      node.emit("Where", {node.emit("Equal", {added, value}), log, corrected});
  return node.emit("Where", {node.emit("Equal", {sum, one}), value, otherwise});
}

// exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), without a difference.
std::string emit_expm1(NodeExport& node, const std::string& value, DType dtype) {
  const std::string half = node.emit("Tanh", {node.emit("Mul", {value, node.scalar(0.5, dtype)})});
  const std::string sum = node.emit("Add", {node.emit("Exp", {value}), node.scalar(1, dtype)});
  return node.emit("Mul", {half, sum});
}

// For x from 0.5, where 1 - erf(x) would lose digits: t * exp(-x^2) * p(t) with t = 1 / (1 + x/2),
// where p is the Chebyshev interpolant of exp(x^2) * erfc(x) / t for x in 0.5..11.5, with an error
// of 2e-7. What x^2 rounds off is given back by splitting it at a multiple of 1/16. From 11 on the
// result is 0 in float32.
std::string emit_tail(NodeExport& node, const std::string& value) {
  constexpr std::array kCoefficients{0.0643073045338, -0.140624526809, -0.0212862448146,
                                     0.127972853358,  0.154013709427,  0.252189425067,
                                     0.281459051545,  0.282124558822};
  const auto number = [&](double each) { return node.scalar(each, DType::kFloat32); };
  const auto product = [&](const std::string& a, const std::string& b) {
    return node.emit("Mul", {a, b});
  };
  const std::string x = node.emit("Clip", {value, number(0.5), number(11)});
  const std::string t =
      node.emit("Reciprocal", {node.emit("Add", {product(x, number(0.5)), number(1)})});
  std::string sum = number(kCoefficients.front());
  for (std::size_t i = 1; i < kCoefficients.size(); ++i) {
    sum = node.emit("Add", {product(sum, t), number(kCoefficients[i])});
  }
  const std::string grid = product(node.emit("Floor", {product(x, number(16))}), number(1.0 / 16));
  const std::string large = node.emit("Exp", {node.emit("Neg", {product(grid, grid)})});
  const std::string rest = product(node.emit("Sub", {grid, x}), node.emit("Add", {grid, x}));
  return product(product(large, node.emit("Exp", {rest})), product(t, sum));
}

std::string emit_erfc(NodeExport& node, const std::string& value, DType dtype) {
  const bool is_double = dtype == DType::kFloat64;  // for which the tail has too few digits
  const DType type = is_double ? dtype : DType::kFloat32;
  const std::string x = dtype == type ? value : node.emit_cast(value, type);
  std::string result = node.emit("Sub", {node.scalar(1, type), node.emit("Erf", {x})});
  if (!is_double) {
    const std::string is_tail = node.emit("GreaterOrEqual", {x, node.scalar(0.5, type)});
    result = node.emit("Where", {is_tail, emit_tail(node, x), result});
  }
  return dtype == type ? result : node.emit_cast(result, dtype);
}

}  // namespace

void export_logic(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const bool is_bool = node.result().dtype == DType::kBool;
  if (name == "bitwise_not") {
    return node.finish(is_bool ? "Not" : "BitwiseNot", {node.value("self")});
  }
  const std::string op = name.find("xor") != std::string_view::npos  ? "Xor"
                         : name.find("or") != std::string_view::npos ? "Or"
                                                                     : "And";
  if (name.starts_with("logical_")) {
    return node.finish(op,
                       {node.value_as("self", DType::kBool), node.value_as("other", DType::kBool)});
  }
  const DType dtype = node.result().dtype;
  std::string other;
  if (is_bool && !node.args.tensor("other")) {
    other = node.emit_cast(node.scalar(node.args.number("other"), DType::kInt64), DType::kBool);
  } else {
    other = node.value_as("other", dtype);
  }
  node.finish((is_bool ? "" : "Bitwise") + op, {node.value_as("self", dtype), std::move(other)});
}

void export_quotient(NodeExport& node) {
  const DType dtype = node.result().dtype;
  const bool has_mode = node.args.find("rounding_mode") != nullptr;
  const std::string left = node.value_as("self", dtype);
  const std::string right = node.value_as("other", dtype);
  if (has_mode && node.args.is_none("rounding_mode")) return node.finish("Div", {left, right});
  const bool truncates = has_mode && node.args.string("rounding_mode") == "trunc";
  if (is_integer(dtype)) {
    if (truncates) return node.finish("Div", {left, right});
    const std::string rest = node.emit("Mod", {left, right});
    return node.finish("Div", {node.emit("Sub", {left, rest}), right});
  }
  const std::string quotient = node.emit("Div", {left, right});
  if (truncates) return node.finish_as(emit_truncated(node, quotient));
  // As PyTorch rounds it, from the remainder: 1 // 0.1 is 9, though the quotient rounds to 10.
  const std::string rest = emit_remainder(node, left, right, dtype);
  const std::string whole = node.emit("Div", {node.emit("Sub", {left, rest}), right});
  const std::string by_zero = node.emit("Equal", {right, node.scalar(0, dtype)});
  node.finish("Where", {by_zero, quotient, node.emit("Round", {whole})});
}

void export_remainder(NodeExport& node) {
  const DType dtype = node.result().dtype;
  if (dtype == DType::kBool) NodeExport::refuse("arithmetic of bools");
  const std::string left = node.value_as("self", dtype);
  const std::string right = node.value_as("other", dtype);
  if (functional_name(node.node().op_type) == "fmod") {
    return node.finish("Mod", {left, right}, {{"fmod", std::int64_t{1}}});
  }
  node.finish_as(emit_remainder(node, left, right, dtype));
}

void export_composed(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = node.result().dtype;
  const std::string value = node.value_as(node.first(), dtype);
  if (name == "expm1") return node.finish_as(emit_expm1(node, value, dtype));
  if (name == "log1p") return node.finish_as(emit_log1p(node, value, dtype));
  if (name == "exp2") return node.finish("Pow", {node.scalar(2, dtype), value});
  if (name == "log2" || name == "log10") {
    constexpr double kLog2 = 0.69314718055994530942;
    constexpr double kLog10 = 2.30258509299404568402;
    const double factor = 1 / (name == "log2" ? kLog2 : kLog10);
    return node.finish("Mul", {node.emit("Log", {value}), node.scalar(factor, dtype)});
  }
  if (name == "erfc") return node.finish_as(emit_erfc(node, value, dtype));
  if (name == "trunc") return node.finish_as(emit_truncated(node, value));
  if (name == "frac") return node.finish("Sub", {value, emit_truncated(node, value)});
  if (name == "log_sigmoid") {
    return node.finish("Neg", {node.emit("Softplus", {node.emit("Neg", {value})})});
  }
  NodeExport::refuse("no ops of ONNX for " + std::string(name));
}

void export_softplus(NodeExport& node) {
  // Above the threshold PyTorch returns the operand, from which log(1 + exp(x)) differs by less
  // than 1e-8.
  if (node.args.number("threshold") < 20) NodeExport::refuse("a low threshold");
  const DType dtype = node.result().dtype;
  const double beta = node.args.number("beta");
  const std::string scaled = emit_times(node, node.value("self"), beta, dtype);
  const std::string result = node.emit("Softplus", {scaled});
  node.finish_as(emit_times(node, result, 1 / beta, dtype));
}

void export_shrink(NodeExport& node) {
  const auto bound = static_cast<float>(node.args.number("lambd"));
  const std::string value = node.value("self");
  if (functional_name(node.node().op_type) == "softshrink") {
    return node.finish("Shrink", {value}, {{"bias", bound}, {"lambd", bound}});
  }
  // Shrink makes 0 of NaN, which here stays.
  const DType dtype = node.result().dtype;
  const std::string is_small =
      node.emit("LessOrEqual", {node.emit("Abs", {value}), node.scalar(bound, dtype)});
  node.finish("Where", {is_small, node.scalar(0, dtype), value});
}

void export_prelu(NodeExport& node) {
  const std::size_t rank = node.first_info().shape.size();
  std::string slope = node.value("weight");
  const Shape& shape = node.info("weight").shape;
  if (rank > 2 && shape.size() == 1 && shape.front() != 1) {
    Shape column(rank - 1, 1);
    column.front() = shape.front();
    slope = node.emit_reshape(slope, column);
  }
  node.finish("PRelu", {node.value("self"), std::move(slope)});
}

void export_clamp_side(NodeExport& node) {
  const bool is_least = functional_name(node.node().op_type) == "clamp_min";
  const DType dtype = node.result().dtype;
  node.finish(is_least ? "Max" : "Min",
              {node.value_as(node.first(), dtype), node.value_as(is_least ? "min" : "max", dtype)});
}

void export_nan_to_num(NodeExport& node) {
  const DType dtype = node.result().dtype;
  std::string value = node.value("self");
  if (!is_floating_point(dtype)) return node.finish_as(value);
  if (dtype != DType::kFloat32) NodeExport::refuse("numbers of other than 32 bits");
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto number = [&](std::string_view argument, double otherwise) {
    return node.scalar(node.args.is_none(argument) ? otherwise : node.args.number(argument), dtype);
  };
  const auto replace = [&](const std::string& where, const std::string& with) {
    value = node.emit("Where", {where, with, value});
  };
  const auto side = [&](std::int64_t negative) {
    return node.emit("IsInf", {value},
                     {{"detect_negative", negative}, {"detect_positive", 1 - negative}});
  };
  const std::string is_high = side(0);
  const std::string is_low = side(1);
  replace(node.emit("IsNaN", {value}), number("nan", 0));
  replace(is_high, number("posinf", kMost));
  replace(is_low, number("neginf", -kMost));
  node.finish_as(value);
}

void export_finite(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::string value = node.value("self");
  if (!is_floating_point(node.first_info().dtype)) NodeExport::refuse("an operand of integers");
  if (name == "isnan") return node.finish("IsNaN", {value});
  if (name == "isinf") return node.finish("IsInf", {value});
  node.finish("Not", {node.emit("Or", {node.emit("IsNaN", {value}), node.emit("IsInf", {value})})});
}

void export_fill(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = node.result().dtype;
  std::string value;
  if (node.args.find("value") != nullptr) {
    value = node.value_as("value", dtype);
  } else if (node.args.find("fill_value") != nullptr) {
    value = node.scalar(node.args.number("fill_value"), dtype);
  } else {
    value = node.scalar(name.find("ones") != std::string_view::npos ? 1 : 0, dtype);
  }
  node.finish("Expand", {std::move(value), node.onnx.integers(node.result().shape)});
}

void export_copy(NodeExport& node) {
  const std::string source = node.value_as("src", node.result().dtype);
  if (node.info("src").shape == node.result().shape) return node.finish_as(source);
  node.finish("Expand", {source, node.onnx.integers(node.result().shape)});
}

void export_baddbmm(NodeExport& node) {
  const DType dtype = node.result().dtype;
  const std::string product = node.emit("MatMul", {node.value("batch1"), node.value("batch2")});
  const std::string scaled = emit_times(node, product, node.args.number("alpha"), dtype);
  const double beta = node.args.number("beta");
  if (beta == 0) return node.finish_as(scaled);  // PyTorch does not look at it then
  node.finish("Add", {emit_times(node, node.value("self"), beta, dtype), scaled});
}

void export_add_product(NodeExport& node) {
  const DType dtype = node.result().dtype;
  const bool divides = functional_name(node.node().op_type) == "addcdiv";
  const std::string product = node.emit(
      divides ? "Div" : "Mul", {node.value_as("tensor1", dtype), node.value_as("tensor2", dtype)});
  node.finish("Add", {node.value_as("self", dtype),
                      emit_times(node, product, node.args.number("value"), dtype)});
}

void export_glu(NodeExport& node) {
  const Shape& shape = node.first_info().shape;
  const std::int64_t axis = NodeExport::axis_of(node.args.integer("dim"), shape.size());
  const std::int64_t half = shape.at(static_cast<std::size_t>(axis)) / 2;
  const std::vector<std::string> halves = node.emit_several(
      "Split", {node.value("self"), node.onnx.integers({half, half})}, {{"axis", axis}}, 2);
  node.finish("Mul", {halves[0], node.emit("Sigmoid", {halves[1]})});
}

}  // namespace npu::onnx_export

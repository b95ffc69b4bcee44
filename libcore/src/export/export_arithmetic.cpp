// SPDX-License-Identifier: Apache-2.0
// Logic, whole quotients and remainders, functions of more than one ONNX op, and tensors of one
// value. Rounding is PyTorch's: floor_divide and remainder follow the divisor's sign, for integers
// as well, whose Div in ONNX truncates.
#include <array>
#include <limits>
#include <utility>

#include "export/export_rules.hpp"
#include "npu/ops/op_name.hpp"

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
  const auto one = [&] { return node.scalar(1, dtype); };
  if (name == "expm1") return node.finish("Sub", {node.emit("Exp", {value}), one()});
  if (name == "log1p") return node.finish("Log", {node.emit("Add", {value, one()})});
  if (name == "exp2") return node.finish("Pow", {node.scalar(2, dtype), value});
  if (name == "log2" || name == "log10") {
    constexpr double kLog2 = 0.69314718055994530942;
    constexpr double kLog10 = 2.30258509299404568402;
    const double factor = 1 / (name == "log2" ? kLog2 : kLog10);
    return node.finish("Mul", {node.emit("Log", {value}), node.scalar(factor, dtype)});
  }
  if (name == "erfc") return node.finish("Sub", {one(), node.emit("Erf", {value})});
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
  const bool is_soft = functional_name(node.node().op_type) == "softshrink";
  node.finish("Shrink", {node.value("self")}, {{"bias", is_soft ? bound : 0.0F}, {"lambd", bound}});
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

// SPDX-License-Identifier: Apache-2.0
// Ops on single elements as ONNX has them. PyTorch promotes types, ONNX does not: operands become
// elements of the result's type first.
#include <array>
#include <string_view>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

/// ONNX's op for an ATen op without arguments but its operands.
constexpr std::array kNames{
    NamePair{"abs", "Abs"},         NamePair{"add", "Add"},
    NamePair{"ceil", "Ceil"},       NamePair{"cos", "Cos"},
    NamePair{"div", "Div"},         NamePair{"eq", "Equal"},
    NamePair{"erf", "Erf"},         NamePair{"exp", "Exp"},
    NamePair{"floor", "Floor"},     NamePair{"ge", "GreaterOrEqual"},
    NamePair{"gt", "Greater"},      NamePair{"hardswish", "HardSwish"},
    NamePair{"le", "LessOrEqual"},  NamePair{"log", "Log"},
    NamePair{"logical_not", "Not"}, NamePair{"lt", "Less"},
    NamePair{"maximum", "Max"},     NamePair{"minimum", "Min"},
    NamePair{"mish", "Mish"},       NamePair{"mul", "Mul"},
    NamePair{"neg", "Neg"},         NamePair{"reciprocal", "Reciprocal"},
    NamePair{"relu", "Relu"},       NamePair{"round", "Round"},
    NamePair{"rsub", "Sub"},        NamePair{"sigmoid", "Sigmoid"},
    NamePair{"sign", "Sign"},       NamePair{"sin", "Sin"},
    NamePair{"sqrt", "Sqrt"},       NamePair{"sub", "Sub"},
    NamePair{"tanh", "Tanh"},       NamePair{"tan", "Tan"},
    NamePair{"asin", "Asin"},       NamePair{"acos", "Acos"},
    NamePair{"atan", "Atan"},       NamePair{"sinh", "Sinh"},
    NamePair{"cosh", "Cosh"},
};

std::string onnx_name(const NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  for (const auto& [aten, onnx] : kNames) {
    if (aten == name) return std::string(onnx);
  }
  NodeExport::refuse("no op of ONNX for " + std::string(name));
}

float number_of(const NodeExport& node, std::string_view argument) {
  return static_cast<float>(node.args.number(argument));
}

/// The type that both operands of a comparison have, or that the tensor has whose number is the
/// other.
DType compared_dtype(const NodeExport& node) {
  const DType dtype = node.first_info().dtype;
  const auto other = node.args.tensor("other");
  if (other && node.graph.tensor(*other).dtype != dtype) {
    NodeExport::refuse("it compares tensors of two types");
  }
  return dtype;
}

}  // namespace

void export_unary(NodeExport& node) {
  node.finish(onnx_name(node), {node.value_as(node.first(), node.result().dtype)});
}

void export_binary(NodeExport& node) {
  const DType dtype = node.result().dtype;
  if (dtype == DType::kBool) NodeExport::refuse("arithmetic of bools");
  std::string left = node.value_as("self", dtype);
  std::string right = node.value_as("other", dtype);
  const bool has_alpha = node.args.find("alpha") != nullptr;
  const bool is_reversed = functional_name(node.node().op_type) == "rsub";
  if (has_alpha && node.args.number("alpha") != 1) {
    std::string& scaled = is_reversed ? left : right;
    scaled = node.emit("Mul", {scaled, node.scalar(node.args.number("alpha"), dtype)});
  }
  if (is_reversed) std::swap(left, right);
  node.finish(onnx_name(node), {std::move(left), std::move(right)});
}

void export_comparison(NodeExport& node) {
  const DType dtype = compared_dtype(node);
  std::vector<std::string> inputs{node.value_as("self", dtype), node.value_as("other", dtype)};
  if (functional_name(node.node().op_type) != "ne") {
    return node.finish(onnx_name(node), std::move(inputs));
  }
  node.finish("Not", {node.emit("Equal", std::move(inputs))});
}

void export_clip(NodeExport& node) {
  const bool is_hardtanh = functional_name(node.node().op_type) == "hardtanh";
  const bool is_relu6 = functional_name(node.node().op_type) == "relu6";
  const DType dtype = node.result().dtype;
  const auto bound = [&](std::string_view argument) {
    if (node.args.tensor(argument)) NodeExport::refuse("bounds that are tensors");
    return node.args.is_none(argument) ? std::string()
                                       : node.scalar(node.args.number(argument), dtype);
  };
  const std::string low = is_relu6 ? node.scalar(0, dtype) : bound(is_hardtanh ? "min_val" : "min");
  const std::string high =
      is_relu6 ? node.scalar(6, dtype) : bound(is_hardtanh ? "max_val" : "max");
  node.finish("Clip", {node.value_as(node.first(), dtype), low, high});
}

void export_leaky(NodeExport& node) {
  const bool is_elu = functional_name(node.node().op_type) == "elu";
  if (is_elu && (node.args.number("scale") != 1 || node.args.number("input_scale") != 1)) {
    NodeExport::refuse("scales other than 1");
  }
  node.finish(is_elu ? "Elu" : "LeakyRelu", {node.value(node.first())},
              {{"alpha", number_of(node, is_elu ? "alpha" : "negative_slope")}});
}

void export_silu(NodeExport& node) {
  const std::string operand = node.value(node.first());
  node.finish("Mul", {operand, node.emit("Sigmoid", {operand})});
}

void export_hard_sigmoid(NodeExport& node) {
  node.finish("HardSigmoid", {node.value(node.first())}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
}

void export_gelu(NodeExport& node) {
  node.finish("Gelu", {node.value(node.first())},
              {{"approximate", node.args.string("approximate")}});
}

void export_power(NodeExport& node) {
  const DType dtype = node.result().dtype;
  if (functional_name(node.node().op_type) == "rsqrt") {
    return node.finish("Reciprocal", {node.emit("Sqrt", {node.value_as(node.first(), dtype)})});
  }
  if (functional_name(node.node().op_type) == "square") {
    const std::string operand = node.value(node.first());
    return node.finish("Mul", {operand, operand});
  }
  node.finish("Pow", {node.value_as("self", dtype), node.value_as("exponent", dtype)});
}

void export_cast(NodeExport& node) {
  if (node.first_info().dtype == node.result().dtype) return export_identity(node);
  node.finish_as(node.value_as(node.first(), node.result().dtype));
}

void export_identity(NodeExport& node) {
  if (node.args.find("train") != nullptr && node.args.boolean("train") &&
      node.args.number("p") != 0) {
    NodeExport::refuse("a dropout in training");
  }
  node.finish_as(node.value(node.first()));
}

void export_where(NodeExport& node) {
  const DType dtype = node.result().dtype;
  node.finish("Where", {node.value("condition"), node.value_as("self", dtype),
                        node.value_as("other", dtype)});
}

void export_masked_fill(NodeExport& node) {
  const DType dtype = node.result().dtype;
  node.finish("Where",
              {node.value("mask"), node.value_as("value", dtype), node.value_as("self", dtype)});
}

}  // namespace npu::onnx_export

// SPDX-License-Identifier: Apache-2.0
// The activations of ONNX, which are ops of their own, functions of recurrent nets and parts of
// fused ops, by one table: ATen's op and the names there of their numbers, or none if they take
// several nodes.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

// The names of ATen's arguments are empty for functions that are composed.
constexpr ActivationRow kActivations[] = {
    {"Affine", "", {"", 1}, {"", 0}},
    {"Celu", "celu", {"alpha", 1}, {}},
    {"Clip", "hardtanh", {"min_val", -3.4e38}, {"max_val", 3.4e38}},
    {"Elu", "elu", {"alpha", 1}, {}},
    {"HardSigmoid", "", {"", from_float(0.2F)}, {"", 0.5}},
    {"HardSwish", "hardswish", {}, {}},
    {"LeakyRelu", "leaky_relu", {"negative_slope", from_float(0.01F)}, {}},
    {"Mish", "mish", {}, {}},
    {"Relu", "relu", {}, {}},
    {"ScaledTanh", "", {"", 1}, {"", 1}},
    {"Selu", "elu", {"alpha", 1.67326319217681884765625}, {"scale", 1.05070102214813232421875}},
    {"Sigmoid", "sigmoid", {}, {}},
    {"Softplus", "softplus", {}, {}},
    {"Softsign", "", {}, {}},
    {"Swish", "", {"", 1}, {}},
    {"Tanh", "tanh", {}, {}},
    {"ThresholdedRelu", "threshold", {"threshold", 1}, {}},
};

Value* composed(Op& op, std::string_view name, Value* x, double alpha, double beta) {
  if (name == "Affine") return op.scalar("add", op.scalar("mul", x, alpha), beta);
  if (name == "ScaledTanh") {
    Value* inner = op.scalar("mul", x, beta);
    return op.scalar("mul", op.emit_like("aten.tanh.default", {inner}), alpha);
  }
  if (name == "HardSigmoid") {
    if (std::abs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5) {
      return op.emit_like("aten.hardsigmoid.default", {x});
    }
    Value* line = op.scalar("add", op.scalar("mul", x, alpha), beta);
    return op.emit_like("aten.clamp.default", {line}, Json{{"min", 0}, {"max", 1}});
  }
  if (name == "Swish") {
    if (alpha == 1) return op.emit_like("aten.silu.default", {x});
    Value* gate = op.emit_like("aten.sigmoid.default", {op.scalar("mul", x, alpha)});
    return op.binary("mul", x, gate);
  }
  // Softsign: x / (1 + |x|)
  return op.binary("div", x, op.scalar("add", op.emit_like("aten.abs.default", {x}), 1));
}

}  // namespace

const ActivationRow* find_activation(std::string_view name) {
  const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                 [&](const ActivationRow& known) { return known.name == name; });
  return row == std::end(kActivations) ? nullptr : row;
}

Value* activated(Op& op, std::string_view name, Value* x, std::optional<double> alpha,
                 std::optional<double> beta) {
  const ActivationRow* row = find_activation(name);
  if (row == nullptr) Op::refuse("activation '" + std::string(name) + "'");
  const double first = alpha.value_or(row->alpha.absent.value_or(0));
  const double second = beta.value_or(row->beta.absent.value_or(0));
  if (row->aten.empty()) return composed(op, name, x, first, second);
  Json attrs = Json::object();
  if (row->alpha.absent) attrs[std::string(row->alpha.name)] = first;
  if (row->beta.absent) attrs[std::string(row->beta.name)] = second;
  if (name == "ThresholdedRelu") attrs["value"] = 0;
  return op.emit_like("aten." + std::string(row->aten) + ".default", {x}, std::move(attrs));
}

void import_activation(Op& op) {
  const std::string_view name = op.node().op_type;
  if (name == "Gelu") {
    Json attrs = Json::object();
    const std::string approximate = op.text("approximate", "none");
    if (approximate != "none" && approximate != "tanh") {
      Op::refuse("approximate '" + approximate + "'");
    }
    if (approximate == "tanh") attrs["approximate"] = "tanh";
    return op.set(0, op.emit_like("aten.gelu.default", {op.in(0)}, std::move(attrs)));
  }
  const ActivationRow* row = find_activation(name);
  const auto number = [&](const char* key, const ActivationRow::Number& function) {
    const bool is_given = row != nullptr && function.absent && op.attribute(key) != nullptr;
    return is_given ? std::optional(op.real(key, 0)) : std::nullopt;
  };
  op.set(0, activated(op, name, op.in(0), number("alpha", row->alpha),
                      number(name == "Selu" ? "gamma" : "beta", row->beta)));
}

}  // namespace npu::onnx

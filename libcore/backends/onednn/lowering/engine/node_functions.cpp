// SPDX-License-Identifier: Apache-2.0
// Which function an op of one operand is, by name, and what numbers it has. O(1).
#include "lowering/engine/node_functions.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

using dnnl::algorithm;

/// What an op name maps to; some ops need two primitives.
struct UnaryRow {
  std::string_view name;
  std::vector<Eltwise> (*make)(const Lowering& lowering, const BoundNode& node);
};

std::vector<Eltwise> clip(const Lowering& lowering, float low, float high) {
  // PyTorch gives the maximum if the bounds are reversed; oneDNN's clip does not promise that.
  if (!(low <= high)) lowering.refuse("", "the lower bound is above the upper bound");
  return {{algorithm::eltwise_clip, low, high}};
}

std::vector<Eltwise> make_clamp(const Lowering& lowering, const BoundNode& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return clip(lowering, node.is_none("min") ? -kInfinity : number_argument(lowering, node, "min"),
              node.is_none("max") ? kInfinity : number_argument(lowering, node, "max"));
}

using Function = Elementwise::Function;

std::vector<Eltwise> make_elu(const Lowering& lowering, const BoundNode& node) {
  for (const std::string_view argument : {"scale", "input_scale"}) {
    if (node.number(argument) != 1.0) lowering.refuse(argument, "only 1 is supported");
  }
  return {{algorithm::eltwise_elu, number_argument(lowering, node, "alpha"), 0.0F, Function::kElu}};
}

std::vector<Eltwise> make_gelu(const Lowering& lowering, const BoundNode& node) {
  const std::string mode = node.string("approximate");
  if (mode == "none") return {{algorithm::eltwise_gelu_erf, 0.0F, 0.0F, Function::kGelu}};
  if (mode == "tanh") return {{algorithm::eltwise_gelu_tanh, 0.0F, 0.0F, Function::kGeluTanh}};
  lowering.invalid("argument 'approximate': expected 'none' or 'tanh', found '" + mode + "'");
}

std::vector<Eltwise> make_celu(const Lowering& lowering, const BoundNode& node) {
  const float alpha = number_argument(lowering, node, "alpha");
  if (!(alpha >= 1e-30F && alpha <= 1e30F)) {
    lowering.refuse("alpha", "only a number from 1e-30 to 1e30 is supported");
  }
  return {{algorithm::undef, alpha, 0.0F, Function::kCelu}};
}

std::vector<Eltwise> make_softplus(const Lowering& lowering, const BoundNode& node) {
  if (node.number("beta") != 1.0) lowering.refuse("beta", "only 1 is supported");
  if (node.number("threshold") < 20.0) lowering.refuse("threshold", "20 or more is needed");
  return {{algorithm::eltwise_soft_relu, 0.0F, 0.0F, Function::kSoftplus}};
}

/// A function without numbers that oneDNN computes.
template <algorithm kAlgorithm>
std::vector<Eltwise> make_plain(const Lowering& /*lowering*/, const BoundNode& /*node*/) {
  return {{kAlgorithm}};
}

/// One that one of our kernels computes; oneDNN may have it as well.
template <Function kFunction, algorithm kAlgorithm = algorithm::undef>
std::vector<Eltwise> make_own(const Lowering& /*lowering*/, const BoundNode& /*node*/) {
  return {{kAlgorithm, 0.0F, 0.0F, kFunction}};
}

constexpr std::array kUnaryRows = std::to_array<UnaryRow>({
    {"abs", make_plain<algorithm::eltwise_abs>},
    {"ceil", make_own<Function::kCeil>},
    {"celu", make_celu},
    {"clamp", make_clamp},
    {"clamp_max",
     [](const Lowering& lowering, const BoundNode& node) {
       return clip(lowering, -std::numeric_limits<float>::infinity(),
                   number_argument(lowering, node, "max"));
     }},
    {"clamp_min",
     [](const Lowering& lowering, const BoundNode& node) {
       return clip(lowering, number_argument(lowering, node, "min"), std::numeric_limits<float>::infinity());
     }},
    {"cos", make_own<Function::kCosine>},
    {"elu", make_elu},
    {"erf", make_own<Function::kErf>},
    {"exp", make_own<Function::kExp, algorithm::eltwise_exp>},
    {"floor", make_own<Function::kFloor>},
    {"gelu", make_gelu},
    {"hardsigmoid", make_own<Function::kHardSigmoid>},
    {"hardswish", make_plain<algorithm::eltwise_hardswish>},
    {"hardtanh",
     [](const Lowering& lowering, const BoundNode& node) {
       return clip(lowering, number_argument(lowering, node, "min_val"), number_argument(lowering, node, "max_val"));
     }},
    {"leaky_relu",
     [](const Lowering& lowering, const BoundNode& node) {
       return std::vector<Eltwise>{
           {algorithm::eltwise_relu, number_argument(lowering, node, "negative_slope")}};
     }},
    {"log", make_own<Function::kLog, algorithm::eltwise_log>},
    {"log_sigmoid", make_own<Function::kLogSigmoid, algorithm::eltwise_logsigmoid>},
    {"mish", make_own<Function::kMish, algorithm::eltwise_mish>},
    {"neg",
     [](const Lowering&, const BoundNode&) {
       return std::vector<Eltwise>{{algorithm::eltwise_linear, -1.0F, 0.0F}};
     }},
    {"reciprocal", make_own<Function::kReciprocal>},
    {"relu", make_plain<algorithm::eltwise_relu>},
    {"relu6",
     [](const Lowering&, const BoundNode&) {
       return std::vector<Eltwise>{{algorithm::eltwise_clip, 0.0F, 6.0F}};
     }},
    {"round", make_own<Function::kRound>},
    {"rsqrt", make_own<Function::kReciprocalRoot>},
    {"selu", make_own<Function::kSelu>},
    {"sigmoid", make_own<Function::kSigmoid, algorithm::eltwise_logistic>},
    {"sign", make_own<Function::kSign>},
    {"silu",
     [](const Lowering&, const BoundNode&) {
       return std::vector<Eltwise>{{algorithm::eltwise_swish, 1.0F, 0.0F, Function::kSwish}};
     }},
    {"sin", make_own<Function::kSine>},
    {"softplus", make_softplus},
    {"sqrt", make_plain<algorithm::eltwise_sqrt>},
    {"square", make_plain<algorithm::eltwise_square>},
    {"tanh", make_own<Function::kTanh, algorithm::eltwise_tanh>},
    {"trunc", make_own<Function::kTruncate>},
});

}  // namespace

float number_argument(const Lowering& lowering, const BoundNode& node, std::string_view name) {
  if (node.tensor(name)) lowering.refuse(name, "only a number is supported here");
  return static_cast<float>(node.number(name));
}

BinaryOp binary_op(std::string_view name) {
  if (name == "add") return BinaryOp::kAdd;
  if (name == "sub" || name == "rsub") return BinaryOp::kSubtract;
  if (name == "mul") return BinaryOp::kMultiply;
  if (name == "div") return BinaryOp::kDivide;
  if (name == "pow") return BinaryOp::kPower;
  return name == "maximum" ? BinaryOp::kMaximum : BinaryOp::kMinimum;
}

std::vector<Eltwise> unary_functions(const Lowering& lowering, const BoundNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const auto row = std::find_if(kUnaryRows.begin(), kUnaryRows.end(),
                                [&](const UnaryRow& candidate) { return candidate.name == name; });
  if (row == kUnaryRows.end()) lowering.refuse("", "the onednn backend does not run this op");
  return row->make(lowering, node);
}

Eltwise number_function(const Lowering& lowering, const BoundNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const float alpha =
      node.find("alpha") != nullptr ? number_argument(lowering, node, "alpha") : 1.0F;
  const auto number = static_cast<float>(node.number("other"));
  if (name == "rsub") return {algorithm::eltwise_linear, -alpha, number};
  switch (binary_op(name)) {
    case BinaryOp::kAdd:
      return {algorithm::eltwise_linear, 1.0F, alpha * number};
    case BinaryOp::kSubtract:
      return {algorithm::eltwise_linear, 1.0F, -alpha * number};
    case BinaryOp::kMultiply:
      return {algorithm::eltwise_linear, number, 0.0F};
    default:
      lowering.refuse("other", "a number is not supported here");
  }
}

}  // namespace npu::onednn

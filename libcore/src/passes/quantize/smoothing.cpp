// SPDX-License-Identifier: Apache-2.0
// Decides which activations get even channels before they become integers.
//
// Calibration says by which factors the channels of an activation may be divided. The division is
// free if the op that makes the activation is proportional to constants, which take it in: the
// weights of a norm, or weight and bias of a product, directly in front or through ReLUs and pools,
// which commute with positive factors. Then all readers have to be products, whose weights are
// multiplied. Otherwise a multiplication in front of the int8 products can do it, which costs time,
// so it has to gain more.
#include "passes/quantize/smoothing.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "quant/product_errors.hpp"
#include "quant/weight_operand.hpp"

namespace npu::quantize {
namespace {

constexpr std::array<std::string_view, 9> kPools{
    "max_pool1d", "max_pool2d",          "max_pool3d",          "avg_pool1d",         "avg_pool2d",
    "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};

/// max(0, x), and windows within a channel, of one operand.
bool commutes_with_factors(const Node& node, std::int32_t axis) {
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  if (fusion_role(node.op_type) == FusionRole::kRelu) return true;
  const std::string_view name = functional_name(node.op_type);
  return axis == 1 && std::find(kPools.begin(), kPools.end(), name) != kPools.end();
}

bool is_float_weight(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kWeight && tensor.dtype == DType::kFloat32;
}

/// The operand that is bound to an argument; nothing if it is None.
std::optional<std::size_t> bound_operand(const BoundNode& node, std::string_view argument) {
  const BoundArgument* bound = node.find(argument);
  if (bound == nullptr || bound->kind != BoundArgument::Kind::kTensor) return std::nullopt;
  return index_of(bound->inputs.front());
}

std::optional<BoundNode> bind(const Graph& graph, const Node& node) {
  const OpInfo* op = find_op(node.op_type);
  BindError error;
  return op == nullptr ? std::nullopt : BoundNode::try_bind(graph, node, op->schema, error);
}

class SmoothingPlanner {
 public:
  SmoothingPlanner(const Graph& graph, const PrecisionProblem& problem,
                   const std::vector<char>& int8, const TensorRanges& ranges)
      : graph_(graph), problem_(problem), int8_(int8), ranges_(ranges) {
    plan_ = no_smoothing(problem);
    is_output_.assign(graph.tensors().size(), 0);
    for (const TensorId id : graph.graph_outputs()) is_output_[index_of(id)] = 1;
  }

  Smoothing run(double multiplication_gain) {
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      const Value& value = problem_.values[v];
      const TensorRange* range = range_of(static_cast<std::int32_t>(v));
      if (range == nullptr || range->factors.empty() || !value.why_not.empty()) continue;
      SmoothedValue smoothed{static_cast<std::int32_t>(v), range, {}, {}, {}};
      const bool by_products_alone = find_products(value, smoothed);
      const bool is_int8 = std::any_of(smoothed.products.begin(), smoothed.products.end(),
                                       [&](NodeId node) { return is_int8_product(node); });
      if (!is_int8) continue;
      if (!by_products_alone || !find_source(value, smoothed)) {
        if (range->gain < multiplication_gain) continue;
        smoothed.into = {};
        smoothed.passed.clear();
        std::erase_if(smoothed.products, [&](NodeId node) { return !is_int8_product(node); });
      }
      add(std::move(smoothed));
    }
    return std::move(plan_);
  }

 private:
  /// Null if it has none, or one of other channels.
  const TensorRange* range_of(std::int32_t value) const {
    const TensorInfo& tensor = graph_.tensor(problem_.values[index_of(value)].tensor);
    const TensorRange* range = ranges_.find(tensor.name);
    if (range == nullptr || range->shape != tensor.shape || range->channels.axis < 0) {
      return nullptr;
    }
    return range;
  }

  bool is_int8_product(NodeId node) const {
    const std::size_t unit = index_of(problem_.unit_of[index_of(node)]);
    return int8_[unit] != 0 && problem_.units[unit].kind == UnitKind::kWeighted;
  }

  /// Lists the products with a weight that can be multiplied; true if nothing else reads the value.
  bool find_products(const Value& value, SmoothedValue& smoothed) const {
    bool is_all = is_output_[index_of(value.tensor)] == 0;
    for (const NodeId reader : graph_.tensor(value.tensor).consumers) {
      if (can_multiply(value.tensor, reader, *smoothed.range)) {
        smoothed.products.push_back(reader);
      } else {
        is_all = false;
      }
    }
    return is_all;
  }

  bool can_multiply(TensorId tensor, NodeId reader, const TensorRange& range) const {
    const Node& node = graph_.node(reader);
    const auto weight = weight_operand(graph_, node);
    if (!weight || std::count(node.inputs.begin(), node.inputs.end(), tensor) != 1 ||
        node.inputs[weight->data()] != tensor) {
      return false;
    }
    const auto geometry = product_weight(graph_, node, range.shape, range.channels.axis);
    if (!geometry || geometry->channels() != static_cast<std::int64_t>(range.factors.size())) {
      return false;
    }
    const ProductRange* product = ranges_.find_product(node.name);
    const auto outputs = index_of(graph_.tensor(weight->tensor).shape[index_of(weight->axis)]);
    // What calibration knows of the weight, it knows for these factors.
    return product != nullptr && product->factored_low.size() == outputs &&
           product->factored_correction.size() == outputs &&
           range.factors.size() == index_of(range.shape[index_of(range.channels.axis)]);
  }

  /// Finds the op that takes the division in; false if there is none.
  bool find_source(const Value& value, SmoothedValue& smoothed) const {
    const auto channels = static_cast<std::int64_t>(smoothed.range->factors.size());
    const std::int32_t axis = smoothed.range->channels.axis;
    TensorId tensor = value.tensor;
    while (true) {
      const TensorInfo& info = graph_.tensor(tensor);
      if (info.kind != TensorKind::kResult || is_output_[index_of(tensor)] != 0) return false;
      if (tensor != value.tensor) {
        if (info.consumers.size() != 1) return false;
        const std::int32_t passed = problem_.value_of[index_of(tensor)];
        if (passed >= 0) {
          const TensorRange* range = range_of(passed);
          if (range == nullptr || range->channels.axis != axis ||
              range->shape[index_of(axis)] != channels) {
            return false;
          }
          smoothed.passed.push_back(passed);
        }
      }
      const Node& node = graph_.node(info.producer);
      if (node.outputs.size() != 1) return false;
      if (!commutes_with_factors(node, axis)) {
        smoothed.into = info.producer;
        const bool is_at_end = axis + 1 == static_cast<std::int32_t>(info.shape.size());
        return takes_factors(node, channels, axis, is_at_end);
      }
      tensor = node.inputs.front();
    }
  }

  bool takes_factors(const Node& node, std::int64_t channels, std::int32_t axis,
                     bool is_at_end) const {
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr || proportional_operands(graph_, node, channels).empty()) return false;
    const std::string_view name = functional_name(node.op_type);
    const bool is_in_front =
        op->role == FusionRole::kConv || op->role == FusionRole::kBatchNorm || name == "group_norm";
    return is_in_front ? axis == 1 : is_at_end;
  }

  void add(SmoothedValue smoothed) {
    const std::size_t place = plan_.values.size();
    for (const NodeId node : smoothed.products) plan_.of_product[node] = place;
    if (smoothed.into.valid()) {
      plan_.of_source[smoothed.into] = place;
      plan_.of_value[index_of(smoothed.value)] = static_cast<std::int32_t>(place);
      for (const std::int32_t value : smoothed.passed) {
        plan_.of_value[index_of(value)] = static_cast<std::int32_t>(place);
      }
    }
    plan_.values.push_back(std::move(smoothed));
  }

  const Graph& graph_;
  const PrecisionProblem& problem_;
  const std::vector<char>& int8_;
  const TensorRanges& ranges_;
  std::vector<char> is_output_;
  Smoothing plan_;
};

}  // namespace

Smoothing no_smoothing(const PrecisionProblem& problem) {
  Smoothing none;
  none.of_value.assign(problem.values.size(), -1);
  return none;
}

Smoothing plan_smoothing(const Graph& graph, const PrecisionProblem& problem,
                         const std::vector<char>& int8, const TensorRanges& ranges,
                         double multiplication_gain) {
  return SmoothingPlanner(graph, problem, int8, ranges).run(multiplication_gain);
}

NumberRange divided_range(const TensorRange& range, const std::vector<float>& factors) {
  NumberRange result;
  for (std::size_t c = 0; c < factors.size(); ++c) {
    const double by = factors[c];
    result.low = std::min(result.low, double{range.channels.low[c]} / by);
    result.high = std::max(result.high, double{range.channels.high[c]} / by);
  }
  return result;
}

std::optional<std::size_t> bias_operand(const Graph& graph, const Node& product) {
  if (functional_name(product.op_type) == "addmm") return 0;
  const auto bound = bind(graph, product);
  return bound ? bound_operand(*bound, "bias") : std::nullopt;
}

std::vector<std::pair<std::size_t, std::int32_t>> proportional_operands(const Graph& graph,
                                                                        const Node& node,
                                                                        std::int64_t channels) {
  std::vector<std::pair<std::size_t, std::int32_t>> operands;
  const auto is_vector = [&](std::size_t operand) {
    const TensorId id = node.inputs[operand];
    return is_float_weight(graph, id) && graph.tensor(id).shape == Shape{channels};
  };
  if (const auto weight = weight_operand(graph, node)) {
    const TensorInfo& tensor = graph.tensor(weight->tensor);
    if (tensor.shape[index_of(weight->axis)] != channels) return {};
    operands.emplace_back(weight->operand, weight->axis);
    const auto bias = bias_operand(graph, node);
    if (bias && !is_vector(*bias)) return {};
    if (bias) operands.emplace_back(*bias, 0);
    return operands;
  }
  const std::string_view name = functional_name(node.op_type);
  if (name != "batch_norm" && name != "layer_norm" && name != "group_norm" && name != "rms_norm") {
    return {};
  }
  const auto bound = bind(graph, node);
  if (!bound) return {};
  const auto weight = bound_operand(*bound, "weight");
  if (!weight || !is_vector(*weight)) return {};
  operands.emplace_back(*weight, 0);
  const auto bias = bound_operand(*bound, "bias");
  if (bias && !is_vector(*bias)) return {};
  if (bias) operands.emplace_back(*bias, 0);
  return operands;
}

}  // namespace npu::quantize

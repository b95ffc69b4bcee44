// SPDX-License-Identifier: Apache-2.0
// Traces values per edge back to values per node: norms are products of one at the source and one
// at the target, attention weights a softmax over the edges of a target. O(nodes).
#include "gnn/block/edge_factors.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "gnn/model/aggregations.hpp"

namespace npu::gnn {
namespace {

using Kind = EdgeStep::Kind;

class Tracer {
 public:
  Tracer(const Graph& graph, TensorId factor)
      : graph_(graph), matcher_(graph), edges_(matcher_.edges()) {
    std::int64_t count = 1;
    for (const std::int64_t extent : graph.tensor(factor).shape) count *= extent;
    heads_ = edges_ > 0 ? count / edges_ : 0;
  }

  std::vector<EdgeFactor> trace(TensorId factor) {
    if (heads_ == 0 || !value_of(factor)) steps_.clear();
    return std::move(steps_);
  }

 private:
  using Step = std::optional<std::size_t>;

  Step value_of(TensorId id) {
    const auto known = known_.find(id.value);
    if (known != known_.end()) return known->second;
    const Step step = new_value(id);
    if (step) known_[id.value] = *step;
    return step;
  }

  Step new_value(TensorId id) {
    const Node* node = matcher_.producer(id);
    const TensorInfo& tensor = graph_.tensor(id);
    if (node == nullptr || tensor.dtype != DType::kFloat32 || !has_values(tensor, edges_)) {
      return std::nullopt;
    }
    switch (fusion_role(node->op_type)) {
      case FusionRole::kSameOrder:
        return matcher_.view(id) == nullptr ? std::nullopt : value_of(node->inputs.front());
      case FusionRole::kGather:
        return end_of(*node);
      case FusionRole::kAdd:
        return binary(Kind::kAdd, *node);
      case FusionRole::kSub:
        return binary(Kind::kSubtract, *node);
      case FusionRole::kMul:
        return binary(Kind::kMultiply, *node);
      case FusionRole::kDiv:
        return binary(Kind::kDivide, *node);
      case FusionRole::kExp:
        return unary({.kind = Kind::kExp}, *node);
      case FusionRole::kLeakyRelu:
        return unary({.kind = Kind::kLeakyRelu, .first = number(*node, "negative_slope", 0.01F)},
                     *node);
      case FusionRole::kClip:
        return clamped(*node);
      default:
        return std::nullopt;
    }
  }

  // [count, heads], or with dimensions of 1.
  bool has_values(const TensorInfo& tensor, std::int64_t count) const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    return !tensor.shape.empty() && tensor.shape[0] == count && elements == count * heads_;
  }

  static float number(const Node& node, const char* name, float otherwise) {
    const Json* value = find_member(node.attrs(), name);
    return value != nullptr && value->is_number() ? value->get<float>() : otherwise;
  }

  Step add(EdgeStep step, TensorId node = {}) {
    steps_.push_back({step, node});
    return steps_.size() - 1;
  }

  Step unary(EdgeStep step, const Node& node) {
    if (node.inputs.size() != 1) return std::nullopt;
    const Step left = value_of(node.inputs[0]);
    if (!left) return std::nullopt;
    step.left = step.right = *left;
    return add(step);
  }

  Step binary(Kind kind, const Node& node) {
    if (node.inputs.size() != 2 || find_member(node.attrs(), "alpha") != nullptr ||
        find_member(node.attrs(), "rounding_mode") != nullptr) {
      return std::nullopt;
    }
    const Step left = value_of(node.inputs[0]);
    const Step right = left ? value_of(node.inputs[1]) : std::nullopt;
    if (!right) return std::nullopt;
    return add({.kind = kind, .left = *left, .right = *right});
  }

  Step clamped(const Node& node) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    // Other ops of the role have their limits elsewhere.
    if (find_member(node.attrs(), "min") == nullptr &&
        find_member(node.attrs(), "max") == nullptr) {
      return std::nullopt;
    }
    return unary({.kind = Kind::kClamp,
                  .first = number(node, "min", -kInfinity),
                  .second = number(node, "max", kInfinity)},
                 node);
  }

  // values[source] or values[target], of values per node or of the sum or the largest over the
  // edges of a target.
  Step end_of(const Node& node) {
    if (node.inputs.size() != 2) return std::nullopt;
    const TensorInfo& values = graph_.tensor(node.inputs[0]);
    if (values.dtype != DType::kFloat32 || values.shape.empty() ||
        !has_values(values, values.shape[0])) {
      return std::nullopt;
    }
    if (matcher_.gathered_by(node, EdgeEnd::kSource).valid()) {
      return add({.kind = Kind::kSource}, node.inputs[0]);
    }
    if (!matcher_.gathered_by(node, EdgeEnd::kTarget).valid()) return std::nullopt;
    const Node* maker = matcher_.producer(node.inputs[0]);
    const auto aggregate = maker == nullptr ? std::nullopt : matcher_.aggregate_of(*maker);
    if (!aggregate) return add({.kind = Kind::kTarget}, node.inputs[0]);
    const Step left = value_of(maker->inputs[2]);
    if (!left) return std::nullopt;
    const Kind kind = *aggregate == Aggregate::kSum ? Kind::kRowSum : Kind::kRowMax;
    return add({.kind = kind, .left = *left, .right = *left});
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  std::int64_t edges_;
  std::int64_t heads_ = 0;
  std::map<std::int32_t, std::size_t> known_;
  std::vector<EdgeFactor> steps_;
};

}  // namespace

std::vector<EdgeFactor> find_edge_factors(const Graph& graph, TensorId factor) {
  return Tracer(graph, factor).trace(factor);
}

}  // namespace npu::gnn

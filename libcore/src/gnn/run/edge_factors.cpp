// SPDX-License-Identifier: Apache-2.0
// Traces values per edge back to values per node: norms are products of one at the source and one
// at the target, attention weights a softmax over the edges of a target. O(nodes).
#include "gnn/run/edge_factors.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "gnn/run/gnn_matcher.hpp"

namespace npu::gnn {
namespace {

using Kind = EdgeStep::Kind;

class Tracer {
 public:
  Tracer(const Graph& graph, TensorId factor, std::int64_t edges)
      : graph_(graph), matcher_(graph), edges_(edges) {
    std::int64_t count = 1;
    for (const std::int64_t extent : graph.tensor(factor).shape) count *= extent;
    heads_ = edges > 0 ? count / edges : 0;
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
    const std::string& op = node->op_type;
    if (op == "aten.alias.default" || op == "aten.unsqueeze.default") {
      return value_of(node->inputs.front());
    }
    if (op == "aten.index_select.default") return end_of(*node);
    if (op == "aten.add.Tensor") return binary(Kind::kAdd, *node);
    if (op == "aten.sub.Tensor") return binary(Kind::kSubtract, *node);
    if (op == "aten.mul.Tensor") return binary(Kind::kMultiply, *node);
    if (op == "aten.div.Tensor") return binary(Kind::kDivide, *node);
    if (op == "aten.exp.default") return unary({.kind = Kind::kExp}, *node);
    if (op == "aten.leaky_relu.default") {
      return unary({.kind = Kind::kLeakyRelu, .first = number(*node, "negative_slope", 0.01F)},
                   *node);
    }
    if (op == "aten.clamp.default") {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      return unary({.kind = Kind::kClamp,
                    .first = number(*node, "min", -kInfinity),
                    .second = number(*node, "max", kInfinity)},
                   *node);
    }
    return std::nullopt;
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

  // values[source] or values[target], of values per node or of the sum or the largest over the
  // edges of a target.
  Step end_of(const Node& node) {
    const Json* dim = find_member(node.attrs(), "dim");
    if (node.inputs.size() != 2 || dim == nullptr || *dim != 0) return std::nullopt;
    const TensorInfo& values = graph_.tensor(node.inputs[0]);
    if (values.dtype != DType::kFloat32 || values.shape.empty() ||
        !has_values(values, values.shape[0])) {
      return std::nullopt;
    }
    if (matcher_.is_end(node.inputs[1], 0)) return add({.kind = Kind::kSource}, node.inputs[0]);
    if (!matcher_.is_end(node.inputs[1], 1)) return std::nullopt;
    const Node* maker = matcher_.producer(node.inputs[0]);
    const bool is_sum = maker != nullptr && matcher_.is_sum_by_target(*maker);
    if (!is_sum && (maker == nullptr || !matcher_.is_largest_by_target(*maker))) {
      return add({.kind = Kind::kTarget}, node.inputs[0]);
    }
    const Step left = value_of(maker->inputs[2]);
    if (!left) return std::nullopt;
    return add({.kind = is_sum ? Kind::kRowSum : Kind::kRowMax, .left = *left, .right = *left});
  }

  const Graph& graph_;
  const GnnMatcher matcher_;
  std::int64_t edges_;
  std::int64_t heads_ = 0;
  std::map<std::int32_t, std::size_t> known_;
  std::vector<EdgeFactor> steps_;
};

}  // namespace

std::vector<EdgeFactor> find_edge_factors(const Graph& graph, TensorId factor, std::int64_t edges) {
  return Tracer(graph, factor, edges).trace(factor);
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
// Finds squeeze and excitation: a tensor times a gate that is computed from the tensor's channel
// means by two convolutions of one by one. Starts at each product and walks up along single
// consumers; O(nodes).
#include <algorithm>
#include <array>
#include <string_view>

#include "fusion/fusion.hpp"

namespace npu::onednn {

namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool is_gate(std::string_view op) {
  return is_one_of(op, {"aten.sigmoid.default", "aten.sigmoid_.default", "aten.hardsigmoid.default",
                        "aten.hardsigmoid_.default"});
}

bool is_activation(std::string_view op) {
  return is_one_of(op, {"aten.relu.default", "aten.relu_.default", "aten.silu.default",
                        "aten.silu_.default", "aten.hardswish.default", "aten.hardswish_.default"});
}

class SqueezeExciteMatch {
 public:
  SqueezeExciteMatch(const Graph& graph, const FusionPlan& plan) : graph_(graph), plan_(plan) {}

  /// The nodes in order, the product last.
  bool find(NodeId product) {
    const Node& node = graph_.node(product);
    if (!is_one_of(node.op_type, {"aten.mul.Tensor", "aten.mul_.Tensor"}) ||
        node.inputs.size() != 2 || node.outputs.size() != 1) {
      return false;
    }
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      nodes_ = {product};
      if (find_gate(node.inputs[side], node.inputs[1 - side])) return true;
    }
    return false;
  }

  std::vector<NodeId> take() { return std::move(nodes_); }

 private:
  bool find_gate(TensorId gate, TensorId source) {
    const Shape& shape = graph_.tensor(source).shape;
    if (shape.size() != 4) return false;
    const Shape squeezed{shape[0], shape[1], 1, 1};
    TensorId value = gate;
    const auto step = [&](auto matches) {
      const NodeId producer = graph_.tensor(value).producer;
      if (!producer.valid() || plan_.group_of[static_cast<std::size_t>(producer.value)] >= 0 ||
          !only_consumer(graph_, plan_, value).valid() || !matches(graph_.node(producer))) {
        return false;
      }
      nodes_.insert(nodes_.begin(), producer);
      value = graph_.node(producer).inputs.front();
      return true;
    };
    const auto is_layer = [&](const Node& node) { return is_convolution(node); };
    return graph_.tensor(gate).shape == squeezed &&
           step([](const Node& node) { return is_gate(node.op_type) && is_unary(node); }) &&
           step(is_layer) &&
           step([](const Node& node) { return is_activation(node.op_type) && is_unary(node); }) &&
           step(is_layer) && graph_.tensor(value).shape == squeezed &&
           step([&](const Node& node) { return is_mean(node); }) && value == source &&
           std::is_sorted(nodes_.begin(), nodes_.end(),
                          [](NodeId a, NodeId b) { return a.value < b.value; });
  }

  static bool is_unary(const Node& node) {
    return node.inputs.size() == 1 && node.outputs.size() == 1;
  }

  bool is_convolution(const Node& node) const {
    if (!is_one_of(node.op_type, {"aten.conv2d.default", "aten.convolution.default"}) ||
        node.inputs.size() < 2) {
      return false;
    }
    const TensorInfo& weight = graph_.tensor(node.inputs[1]);
    return weight.kind == TensorKind::kWeight && weight.shape.size() == 4 && weight.shape[2] == 1 &&
           weight.shape[3] == 1;
  }

  bool is_mean(const Node& node) const {
    if (!is_unary(node)) return false;
    if (node.op_type == "aten.adaptive_avg_pool2d.default") return true;  // by its result's shape
    const Json* dims = find_member(node.attrs(), "dim");
    const Json* keeps = find_member(node.attrs(), "keepdim");
    return node.op_type == "aten.mean.dim" && keeps != nullptr && *keeps == true &&
           dims != nullptr &&
           (*dims == Json{2, 3} || *dims == Json{-2, -1} || *dims == Json{-1, -2});
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  std::vector<NodeId> nodes_;
};

}  // namespace

void match_squeeze_excite(const Graph& graph, FusionPlan& plan) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (plan.dead[i] || plan.group_of[i] >= 0) continue;
    SqueezeExciteMatch match(graph, plan);
    if (!match.find(NodeId{static_cast<std::int32_t>(i)})) continue;
    FusionGroup group{FusionGroup::Kind::kSqueezeExcite, match.take(), {}};
    for (const NodeId id : group.nodes) {
      plan.group_of[static_cast<std::size_t>(id.value)] =
          static_cast<std::int32_t>(plan.groups.size());
    }
    plan.groups.push_back(std::move(group));
  }
}

}  // namespace npu::onednn

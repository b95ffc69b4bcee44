// SPDX-License-Identifier: Apache-2.0
// Finds attention that is written out: product of queries and transposed keys, a factor before or
// behind it, a mask, softmax over the last dimension, product with the values. Starts at each
// softmax and walks up and down along single consumers; O(nodes).
#include <algorithm>
#include <string_view>

#include "fusion/fusion.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/ops/schema.hpp"

namespace npu::onednn {

namespace {

bool is_product(std::string_view op) {
  return op == "aten.bmm.default" || op == "aten.matmul.default";
}

/// Multiplication or division by a number.
bool is_factor(const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         find_member(node.attrs(), "rounding_mode") == nullptr &&
         (node.op_type == "aten.mul.Tensor" || node.op_type == "aten.div.Tensor" ||
          node.op_type == "aten.mul.Scalar" || node.op_type == "aten.div.Scalar");
}

bool is_softmax_of_rows(const Graph& graph, const Node& node) {
  if (node.op_type != "aten.softmax.int" && node.op_type != "aten._softmax.default") return false;
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
  const TensorInfo& input = graph.tensor(node.inputs[0]);
  const TensorInfo& result = graph.tensor(node.outputs[0]);
  const Json* dimension = find_member(node.attrs(), "dim");
  if (dimension == nullptr || !dimension->is_number_integer()) return false;
  const auto rank = static_cast<std::int64_t>(input.shape.size());
  const auto last = dimension->get<std::int64_t>();
  const Json* half = find_member(node.attrs(), "half_to_float");
  return rank >= 3 && (last == -1 || last == rank - 1) && input.shape == result.shape &&
         input.dtype == result.dtype && (half == nullptr || *half == false);
}

Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

/// [.., L, D] times [.., D, S], of equal batch dimensions and dtypes.
bool is_batched_product(const Graph& graph, const Node& node) {
  if (!is_product(node.op_type) || node.inputs.size() != 2 || node.outputs.size() != 1) {
    return false;
  }
  const TensorInfo& a = graph.tensor(node.inputs[0]);
  const TensorInfo& b = graph.tensor(node.inputs[1]);
  const TensorInfo& c = graph.tensor(node.outputs[0]);
  const std::size_t rank = a.shape.size();
  if (rank < 3 || b.shape.size() != rank || c.shape.size() != rank) return false;
  return batch_of(a.shape) == batch_of(b.shape) && batch_of(a.shape) == batch_of(c.shape) &&
         a.shape[rank - 1] == b.shape[rank - 2] && c.shape[rank - 2] == a.shape[rank - 2] &&
         c.shape[rank - 1] == b.shape[rank - 1] && a.dtype == b.dtype && a.dtype == c.dtype &&
         (a.dtype == DType::kFloat32 || a.dtype == DType::kBFloat16);
}

class AttentionMatch {
 public:
  AttentionMatch(const Graph& graph, FusionPlan& plan) : graph_(graph), plan_(plan) {}

  bool find(NodeId softmax) {
    if (!is_softmax_of_rows(graph_, graph_.node(softmax))) return false;
    nodes_ = {softmax};
    NodeId up = sole_producer(graph_.node(softmax).inputs[0]);
    while (up.valid() && !is_product(graph_.node(up).op_type)) {
      const Node& node = graph_.node(up);
      const bool joins = is_factor(node) || (!has_mask_ && is_mask(node));
      if (!joins || !same_shape(node)) return false;
      has_mask_ = has_mask_ || node.inputs.size() == 2;
      nodes_.insert(nodes_.begin(), up);
      up = sole_producer(node.inputs[0]);
    }
    if (!up.valid() || !is_batched_product(graph_, graph_.node(up))) return false;
    nodes_.insert(nodes_.begin(), up);
    // A factor on the queries or keys.
    for (const TensorId operand : graph_.node(up).inputs) {
      const NodeId producer = sole_producer(operand);
      if (producer.valid() && is_factor(graph_.node(producer)) &&
          same_shape(graph_.node(producer))) {
        nodes_.insert(nodes_.begin(), producer);
      }
    }
    return find_below(softmax);
  }

  std::vector<NodeId> take() { return std::move(nodes_); }

 private:
  bool find_below(NodeId softmax) {
    TensorId value = graph_.node(softmax).outputs[0];
    for (;;) {
      const NodeId next = only_consumer(graph_, plan_, value);
      if (!next.valid() || is_taken(next)) return false;
      const Node& node = graph_.node(next);
      if (is_product(node.op_type)) {
        if (!is_batched_product(graph_, node) || node.inputs[0] != value) return false;
        nodes_.push_back(next);
        return true;
      }
      const Json* train = find_member(node.attrs(), "train");
      if (!keeps_row_major(graph_, node) || !same_shape(node) ||
          (train != nullptr && *train != false)) {
        return false;
      }
      nodes_.push_back(next);
      value = node.outputs[0];
    }
  }

  bool is_taken(NodeId id) const { return plan_.group_of[static_cast<std::size_t>(id.value)] >= 0; }

  /// The producer of a tensor that nothing else reads.
  NodeId sole_producer(TensorId tensor) const {
    const NodeId producer = graph_.tensor(tensor).producer;
    if (!producer.valid() || is_taken(producer) || !only_consumer(graph_, plan_, tensor).valid()) {
      return {};
    }
    return producer;
  }

  bool same_shape(const Node& node) const {
    const TensorInfo& from = graph_.tensor(node.inputs[0]);
    const TensorInfo& to = graph_.tensor(node.outputs[0]);
    return from.shape == to.shape && from.dtype == to.dtype;
  }

  bool is_mask(const Node& node) const {
    if (!node.op_type.starts_with("aten.add") || node.inputs.size() != 2 ||
        node.outputs.size() != 1 || find_member(node.attrs(), "alpha") != nullptr) {
      return false;
    }
    const TensorInfo& scores = graph_.tensor(node.inputs[0]);
    const TensorInfo& mask = graph_.tensor(node.inputs[1]);
    return mask.dtype == scores.dtype && mask.shape.size() <= scores.shape.size();
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  std::vector<NodeId> nodes_;
  bool has_mask_ = false;
};

}  // namespace

void match_attention(const Graph& graph, FusionPlan& plan) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (plan.dead[i] || plan.group_of[i] >= 0) continue;
    AttentionMatch match(graph, plan);
    if (!match.find(NodeId{static_cast<std::int32_t>(i)})) continue;
    FusionGroup group{FusionGroup::Kind::kAttention, match.take(), {}};
    for (const NodeId id : group.nodes) {
      plan.group_of[static_cast<std::size_t>(id.value)] =
          static_cast<std::int32_t>(plan.groups.size());
    }
    plan.groups.push_back(std::move(group));
  }
}

}  // namespace npu::onednn

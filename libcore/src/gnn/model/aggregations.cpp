// SPDX-License-Identifier: Apache-2.0
// The one place that knows what an aggregation over edges is, by roles of ops and by structure.
//
// An index_add of messages by target, or a scatter_reduce that takes the largest of them, is traced
// back through aliases, a factor per edge and a gather; a division of a sum that nothing else reads
// by the clamped number of edges makes it a mean. O(nodes).
#include "gnn/model/aggregations.hpp"

#include <algorithm>
#include <vector>

#include "gnn/model/staged_model.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

class AggregationFinder {
 public:
  explicit AggregationFinder(const Graph& graph) : graph_(graph), matcher_(graph) {}

  std::map<NodeId, Aggregation> find() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      const std::optional<Aggregate> aggregate = matcher_.aggregate_of(node);
      if (!aggregate || graph_.tensor(node.outputs[0]).dtype != DType::kFloat32) continue;
      if (auto found = trace(node, *aggregate)) found_[id] = *found;
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) make_mean(id);
    return std::move(found_);
  }

 private:
  std::optional<Aggregation> trace(const Node& node, Aggregate aggregate) const {
    Aggregation result;
    result.aggregate = aggregate;
    result.total = result.result = node.outputs[0];
    TensorId message = matcher_.through_alias(node.inputs[2]);
    const Shape& shape = graph_.tensor(message).shape;
    if (aggregate == Aggregate::kSum && shape.size() == 1 &&
        matcher_.producer(message, FusionRole::kOnes) != nullptr) {
      return result;  // the number of edges
    }
    message = without_factor(message, shape, result);
    if (const TensorId source = matcher_.gathered_from(message, EdgeEnd::kSource); source.valid()) {
      result.rows = source;
      result.gathers = true;
      return result;
    }
    const TensorInfo& rows = graph_.tensor(message);
    if (rows.shape.empty() || rows.shape[0] != matcher_.edges() || rows.dtype != DType::kFloat32) {
      return std::nullopt;
    }
    result.rows = message;
    return result;
  }

  // The message without a factor for each edge, [m, 1] of [m, C] or [m, H, 1] of [m, H, C].
  TensorId without_factor(TensorId message, const Shape& shape, Aggregation& result) const {
    const Node* product = matcher_.producer(message, FusionRole::kMul);
    if (product == nullptr || product->inputs.size() != 2) return message;
    Shape column = shape;
    if (!column.empty()) column.back() = 1;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const TensorId other = product->inputs[1 - side];
      if (graph_.tensor(product->inputs[side]).shape != column ||
          graph_.tensor(other).shape != shape) {
        continue;
      }
      result.factor = product->inputs[side];
      return matcher_.through_alias(other);
    }
    return message;
  }

  const Aggregation* at(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    const auto found =
        tensor.kind == TensorKind::kResult ? found_.find(tensor.producer) : found_.end();
    return found == found_.end() ? nullptr : &found->second;
  }

  // sum / unsqueeze(clamp(count of edges, 1)), where nothing else reads the sum.
  void make_mean(NodeId id) {
    const Node& node = graph_.node(id);
    if (fusion_role(node.op_type) != FusionRole::kDiv || node.inputs.size() != 2) return;
    const TensorId total = node.inputs[0];
    const Aggregation* sum = at(total);
    if (sum == nullptr || !sum->rows.valid() || sum->aggregate != Aggregate::kSum ||
        sum->result != total || matcher_.only_reader(total) == nullptr ||
        !is_edge_count(node.inputs[1], graph_.tensor(total).shape.size())) {
      return;
    }
    Aggregation mean = *sum;
    mean.aggregate = Aggregate::kMean;
    mean.result = node.outputs[0];
    found_.erase(graph_.tensor(total).producer);
    found_[id] = mean;
  }

  bool is_edge_count(TensorId id, std::size_t rank) const {
    const Node* column = matcher_.view(id);
    if (column == nullptr || graph_.tensor(id).shape.size() != rank) return false;
    const Node* clamp = matcher_.producer(column->inputs[0], FusionRole::kClip);
    if (clamp == nullptr || clamp->inputs.size() != 1) return false;
    const Aggregation* count = at(clamp->inputs[0]);
    const Json* most = find_member(clamp->attrs(), "max");
    return count != nullptr && !count->rows.valid() && member_double(clamp->attrs(), "min") == 1 &&
           (most == nullptr || most->is_null());
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  std::map<NodeId, Aggregation> found_;
};

}  // namespace

EdgeMatcher::EdgeMatcher(const Graph& graph)
    : graph_(graph), edge_index_(graph.find_tensor(kEdgeInput)) {
  if (!edge_index_.valid()) return;
  const TensorInfo& tensor = graph.tensor(edge_index_);
  if (tensor.kind == TensorKind::kGraphInput && tensor.shape.size() == 2) edges_ = tensor.shape[1];
}

const Node* EdgeMatcher::producer(TensorId id) const {
  const TensorInfo& tensor = graph_.tensor(id);
  return tensor.kind == TensorKind::kResult ? &graph_.node(tensor.producer) : nullptr;
}

const Node* EdgeMatcher::producer(TensorId id, FusionRole role) const {
  const Node* node = producer(id);
  return node != nullptr && fusion_role(node->op_type) == role ? node : nullptr;
}

const Node* EdgeMatcher::only_reader(TensorId id) const {
  const TensorInfo& tensor = graph_.tensor(id);
  const auto& outputs = graph_.graph_outputs();
  if (tensor.consumers.size() != 1 ||
      std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
    return nullptr;
  }
  const Node& node = graph_.node(tensor.consumers.front());
  return std::count(node.inputs.begin(), node.inputs.end(), id) == 1 ? &node : nullptr;
}

const Node* EdgeMatcher::view(TensorId id) const {
  const Node* node = producer(id, FusionRole::kSameOrder);
  return node != nullptr && is_alias_node(graph_, *node) ? node : nullptr;
}

bool EdgeMatcher::is_alias(const Node& node) const {
  return view(node.outputs[0]) != nullptr &&
         graph_.tensor(node.inputs[0]).shape == graph_.tensor(node.outputs[0]).shape;
}

TensorId EdgeMatcher::through_alias(TensorId id) const {
  for (const Node* node = view(id); node != nullptr && is_alias(*node); node = view(id)) {
    id = node->inputs.front();
  }
  return id;
}

TensorId EdgeMatcher::through_first_rows(TensorId id) const {
  const Node* node = producer(id, FusionRole::kSlice);
  if (node == nullptr) return id;
  const bool is_first = member_integer(node->attrs(), "dim") == 0 &&
                        member_integer(node->attrs(), "start") == 0 &&
                        find_member(node->attrs(), "step") == nullptr;
  return is_first && producer(node->inputs[0]) != nullptr ? node->inputs[0] : id;
}

EdgeMatcher::Columns EdgeMatcher::columns_of(TensorId id) const {
  const Shape& shape = graph_.tensor(id).shape;
  const Columns all{id, 0, shape.size() == 2 ? shape[1] : 0};
  const Node* node = producer(id, FusionRole::kSlice);
  if (node == nullptr || shape.size() != 2) return all;
  const Shape& whole = graph_.tensor(node->inputs[0]).shape;
  const std::int64_t first = member_integer(node->attrs(), "start").value_or(-1);
  if (member_integer(node->attrs(), "dim") != 1 || first < 0 ||
      find_member(node->attrs(), "step") != nullptr || whole.size() != 2 ||
      first > whole[1] - shape[1]) {
    return all;
  }
  return {node->inputs[0], first, whole[1]};
}

bool EdgeMatcher::is_end(TensorId id, EdgeEnd end) const {
  const Node* node = producer(id, FusionRole::kSelect);
  return node != nullptr && edges_ >= 0 && node->inputs.front() == edge_index_ &&
         member_integer(node->attrs(), "dim") == 0 &&
         member_integer(node->attrs(), "index") == (end == EdgeEnd::kSource ? 0 : 1);
}

TensorId EdgeMatcher::gathered_by(const Node& node, EdgeEnd end) const {
  if (fusion_role(node.op_type) != FusionRole::kGather || node.inputs.size() != 2 ||
      !is_end(node.inputs[1], end)) {
    return {};
  }
  // An embedding has no dimension to choose.
  return member_integer(node.attrs(), "dim").value_or(0) == 0 ? node.inputs[0] : TensorId{};
}

TensorId EdgeMatcher::gathered_from(TensorId id, EdgeEnd end) const {
  const Node* node = producer(id);
  return node == nullptr ? TensorId{} : gathered_by(*node, end);
}

std::optional<Aggregate> EdgeMatcher::aggregate_of(const Node& node) const {
  const FusionRole role = fusion_role(node.op_type);
  if ((role != FusionRole::kIndexAdd && role != FusionRole::kScatterReduce) ||
      node.inputs.size() != 3 || member_integer(node.attrs(), "dim") != 0 ||
      producer(node.inputs[0], FusionRole::kZeros) == nullptr) {
    return std::nullopt;
  }
  if (role == FusionRole::kIndexAdd) {
    const bool is_sum =
        find_member(node.attrs(), "alpha") == nullptr && is_end(node.inputs[1], EdgeEnd::kTarget);
    return is_sum ? std::optional(Aggregate::kSum) : std::nullopt;
  }
  const Shape& rows = graph_.tensor(node.inputs[2]).shape;
  const Shape& result = graph_.tensor(node.inputs[0]).shape;
  const std::string* reduce = member_text(node.attrs(), "reduce");
  const bool is_largest =
      reduce != nullptr && *reduce == "amax" &&
      member_flag(node.attrs(), "include_self") == false && is_target_of_elements(node.inputs[1]) &&
      graph_.tensor(node.inputs[1]).shape == rows && rows.size() == result.size() &&
      std::equal(rows.begin() + 1, rows.end(), result.begin() + 1);
  return is_largest ? std::optional(Aggregate::kLargest) : std::nullopt;
}

// Targets of the edges, [edges], or the same for each element of an edge's row.
bool EdgeMatcher::is_target_of_elements(TensorId id) const {
  const Node* node = producer(id);
  if (node != nullptr && fusion_role(node->op_type) == FusionRole::kExpand &&
      graph_.tensor(node->inputs[0]).shape.size() == graph_.tensor(id).shape.size()) {
    id = node->inputs[0];
  }
  // Behind the edges there are dimensions of 1.
  for (node = view(id); node != nullptr; node = view(id)) {
    if (graph_.tensor(id).shape.front() != edges_) return false;
    id = node->inputs[0];
  }
  return is_end(id, EdgeEnd::kTarget);
}

std::map<NodeId, Aggregation> find_aggregations(const Graph& graph) {
  return AggregationFinder(graph).find();
}

}  // namespace npu::gnn

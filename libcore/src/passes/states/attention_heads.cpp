// SPDX-License-Identifier: Apache-2.0
// Heads of keys and values that several heads of a query share are repeated by exporters:
// unsqueeze, expand, reshape. An attention with enable_gqa does the same without copies. O(1) for a
// node.
#include "passes/states/attention_heads.hpp"

#include <optional>
#include <span>
#include <string_view>

#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

/// The node of one of some names that gives a tensor; null for others.
const Node* producer(const Graph& graph, TensorId id, std::span<const std::string_view> names) {
  const TensorInfo& tensor = graph.tensor(id);
  if (!tensor.producer.valid()) return nullptr;
  const Node& node = graph.node(tensor.producer);
  for (const std::string_view name : names) {
    if (functional_name(node.op_type) == name) return &node;
  }
  return nullptr;
}

constexpr std::string_view kViews[] = {"reshape", "view", "_unsafe_view", "unsqueeze"};
constexpr std::string_view kRepeats[] = {"expand", "broadcast_to"};

/// [1, heads, rows, width], if `id` is that with each head repeated.
std::optional<TensorId> repeated(const PastModel& model, TensorId id) {
  const Graph& graph = model.graph();
  const Node* joined = producer(graph, id, kViews);
  if (joined == nullptr) return std::nullopt;
  const Node* spread = producer(graph, joined->inputs[0], kRepeats);
  if (spread == nullptr) return std::nullopt;
  const Node* apart = producer(graph, spread->inputs[0], kViews);
  if (apart == nullptr) return std::nullopt;
  const SizeShape& from = model.shape(apart->inputs[0]);
  const SizeShape& seen = model.shape(apart->outputs[0]);
  const SizeShape& group = model.shape(spread->outputs[0]);
  const SizeShape& to = model.shape(id);
  const SizeExpression one(1);
  if (from.size() != 4 || seen.size() != 5 || group.size() != 5 || to.size() != 4) {
    return std::nullopt;
  }
  const bool is_repeated = seen == SizeShape{from[0], from[1], one, from[2], from[3]} &&
                           group == SizeShape{from[0], from[1], group[2], from[2], from[3]} &&
                           to == SizeShape{from[0], from[1] * group[2], from[2], from[3]};
  if (!is_repeated) return std::nullopt;
  return apart->inputs[0];
}

}  // namespace

Json attention_node(const PastModel& model, const CacheAttention& attention, const Json& mask,
                    Json node, const std::function<Json(TensorId)>& mention_of) {
  const auto key = repeated(model, attention.key);
  const auto value = repeated(model, attention.value);
  const bool is_shared = key && value;
  Json inputs = Json::array();
  inputs.push_back(mention_of(attention.query));
  inputs.push_back(mention_of(is_shared ? *key : attention.key));
  inputs.push_back(mention_of(is_shared ? *value : attention.value));
  inputs.push_back(mask);
  Json attrs = Json::object();
  if (attention.scale) attrs["scale"] = *attention.scale;
  if (is_shared || attention.shares_heads) attrs["enable_gqa"] = true;
  set_member(node, "op_type", "aten.scaled_dot_product_attention.default");
  set_member(node, "inputs", std::move(inputs));
  set_member(node, "attrs", std::move(attrs));
  return node;
}

}  // namespace npu::states

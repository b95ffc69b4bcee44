// SPDX-License-Identifier: Apache-2.0
// The memory that every step of a topological order touches.
//
// A storage is the memory of a tensor and of all views of it. Inside a fused node nothing is
// stored; a view touches memory when its reader does. The order takes each fused node as early in
// the node list as possible, since related nodes are mostly adjacent there.
// O((fused nodes + edges) log fused nodes).
#include "partition/strategies/memory_timeline.hpp"

#include <functional>
#include <queue>
#include <utility>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

/// Topological, each fused node as early in the node list as it can come.
std::vector<std::int32_t> list_order(const FusedGraph& fused) {
  std::vector<std::int32_t> waiting = fused.predecessor_count;
  using Entry = std::pair<NodeId, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](std::int32_t fused_node) {
    ready.emplace(fused.members[index_of(fused_node)].back(), fused_node);
  };
  for (const std::int32_t fused_node : fused.order) {
    if (waiting[index_of(fused_node)] == 0) push(fused_node);
  }
  std::vector<std::int32_t> order;
  while (!ready.empty()) {
    const std::int32_t fused_node = ready.top().second;
    ready.pop();
    order.push_back(fused_node);
    for (const std::int32_t next : fused.successors(fused_node)) {
      if (--waiting[index_of(next)] == 0) push(next);
    }
  }
  return order;
}

}  // namespace

Timeline::Timeline(const Graph& graph, const FusedGraph& fused) : graph_(graph), fused_(fused) {
  order = list_order(fused);
  std::vector<std::int32_t> position(fused.size());
  for (std::size_t p = 0; p < order.size(); ++p) {
    position[index_of(order[p])] = static_cast<std::int32_t>(p);
  }
  find_storages(position);
  touches.resize(order.size());
  own_bytes.assign(order.size(), 0);
  flops.assign(order.size(), 0);
  std::vector<std::int32_t> seen(storages.size(), -1);
  std::vector<std::int32_t> seen_write(storages.size(), -1);
  for (std::size_t p = 0; p < order.size(); ++p) {
    const auto at = static_cast<std::int32_t>(p);
    for (const NodeId id : fused.members[index_of(order[p])]) {
      const Node& node = graph.node(id);
      flops[p] += node_flops(graph, node);
      if (is_alias_node(graph, node)) continue;  // touches memory when its reader does
      for (const TensorId input : node.inputs) {
        const std::int32_t s = storage_of_[index_of(input.value)];
        Storage& storage = storages[index_of(s)];
        if (storage.made_at == at || seen[index_of(s)] == at) continue;
        seen[index_of(s)] = at;
        storage.last_use = at;
        touches[p].push_back({s, false});
        own_bytes[p] += read_bytes(node, input, storage);
      }
    }
  }
  for (std::size_t p = 0; p < order.size(); ++p) {
    const auto at = static_cast<std::int32_t>(p);
    for (const NodeId id : fused.members[index_of(order[p])]) {
      for (const TensorId output : graph.node(id).outputs) {
        const std::int32_t s = storage_of_[index_of(output.value)];
        const Storage& storage = storages[index_of(s)];
        if (storage.made_at != at || seen_write[index_of(s)] == at) continue;
        seen_write[index_of(s)] = at;
        if (storage.last_use < 0 && !storage.leaves) continue;  // stays inside the fused node
        touches[p].push_back({s, true});
        own_bytes[p] += storage.bytes;
      }
    }
  }
}

void Timeline::find_storages(const std::vector<std::int32_t>& position) {
  storage_of_.assign(graph_.tensors().size(), -1);
  const auto fresh = [&](TensorId id, std::int32_t made_at) {
    const TensorInfo& tensor = graph_.tensor(id);
    storage_of_[index_of(id.value)] = static_cast<std::int32_t>(storages.size());
    storages.push_back({.bytes = static_cast<double>(tensor.bytes()),
                        .made_at = made_at,
                        .last_use = -1,
                        .leaves = false,
                        .weight = tensor.kind == TensorKind::kWeight});
  };
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
    const TensorId id{static_cast<std::int32_t>(t)};
    if (graph_.tensor(id).kind != TensorKind::kResult) fresh(id, -1);
  }
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    const bool alias = is_alias_node(graph_, node) && !node.inputs.empty();
    const std::int32_t at = position[index_of(fused_.fused_node_of[n])];
    for (const TensorId output : node.outputs) {
      if (alias) {
        storage_of_[index_of(output.value)] = storage_of_[index_of(viewed(node).value)];
      } else {
        fresh(output, at);
      }
    }
  }
  for (const TensorId id : graph_.graph_outputs()) {
    storages[index_of(storage_of_[index_of(id.value)])].leaves = true;
  }
}

TensorId Timeline::viewed(const Node& node) {
  const Json* index =
      node.op_type == "<built-in function getitem>" ? find_member(node.attrs(), "index") : nullptr;
  if (index == nullptr || !index->is_number_integer()) return node.inputs.front();
  const auto count = static_cast<std::int64_t>(node.inputs.size());
  std::int64_t which = index->get<std::int64_t>();
  if (which < 0) which += count;
  return node.inputs[static_cast<std::size_t>(std::clamp<std::int64_t>(which, 0, count - 1))];
}

double Timeline::read_bytes(const Node& node, TensorId input, const Storage& storage) const {
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || op->kind != OpKind::kInjective || node.outputs.empty() ||
      node.inputs.front() != input) {
    return storage.bytes;
  }
  return std::min(storage.bytes, static_cast<double>(graph_.tensor(node.outputs.front()).bytes()));
}

}  // namespace npu

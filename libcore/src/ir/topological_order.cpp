// SPDX-License-Identifier: Apache-2.0
// Kahn's algorithm with a heap, so that ties are broken by list order; and one cycle, for messages.
#include "ir/topological_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace npu {
namespace {

// Distinct producers of a node.
std::vector<NodeId> producers_of(const Graph& graph, const Node& node) {
  std::vector<NodeId> producers;
  for (const TensorId input : node.inputs) {
    const NodeId producer = graph.tensor(input).producer;
    if (producer.valid() &&
        std::find(producers.begin(), producers.end(), producer) == producers.end()) {
      producers.push_back(producer);
    }
  }
  return producers;
}

}  // namespace

std::vector<NodeId> topological_order(const Graph& graph) {
  const std::size_t count = graph.nodes().size();
  // Counted per (tensor, consumer) pair, as consumers lists them: each node once per tensor.
  std::vector<std::int32_t> waiting(count, 0);
  for (const TensorInfo& tensor : graph.tensors()) {
    if (!tensor.producer.valid()) continue;
    for (const NodeId consumer : tensor.consumers) ++waiting[index_of(consumer)];
  }
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < count; ++n) {
    if (waiting[n] == 0) ready.push(static_cast<std::int32_t>(n));
  }
  std::vector<NodeId> order;
  order.reserve(count);
  while (!ready.empty()) {
    const NodeId id{ready.top()};
    ready.pop();
    order.push_back(id);
    for (const TensorId output : graph.node(id).outputs) {
      for (const NodeId consumer : graph.tensor(output).consumers) {
        if (--waiting[index_of(consumer)] == 0) ready.push(consumer.value);
      }
    }
  }
  return order;
}

std::vector<NodeId> find_cycle(const Graph& graph) {
  const std::vector<NodeId> order = topological_order(graph);
  if (order.size() == graph.nodes().size()) return {};
  std::vector<char> done(graph.nodes().size(), 0);
  for (const NodeId id : order) done[index_of(id)] = 1;
  // Every remaining node has a remaining producer, so a walk to producers must meet itself.
  NodeId current;
  for (std::size_t n = 0; n < done.size() && !current.valid(); ++n) {
    if (done[n] == 0) current = NodeId{static_cast<std::int32_t>(n)};
  }
  std::vector<NodeId> path;
  std::vector<std::int32_t> position(graph.nodes().size(), -1);
  while (position[index_of(current)] < 0) {
    position[index_of(current)] = static_cast<std::int32_t>(path.size());
    path.push_back(current);
    for (const NodeId producer : producers_of(graph, graph.node(current))) {
      if (done[index_of(producer)] == 0) {
        current = producer;
        break;
      }
    }
  }
  path.erase(path.begin(), path.begin() + position[index_of(current)]);
  std::reverse(path.begin(), path.end());
  // Begin at the node that comes first in the list, so that the message is stable and readable.
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  return path;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// What every graph has, whatever it was made from: names that can be looked up, consumers, rules
// that hold, and folded nodes apart from those that run. O(nodes + edges).
#include "ir/graph_assembler.hpp"

#include <utility>

#include "ir/verify_graph.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

// Whether its op may be folded is for those to say who know ops.
void check_folded(const Graph& graph, NodeId id, Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  const char* key = node.device         ? "device"
                    : node.partition    ? "partition"
                    : node.fusion_group ? "fusion_group"
                                        : nullptr;
  if (key == nullptr) return;
  diagnostics.error(graph.location(id, std::string("/") + key),
                    "node '" + node.name + "' is folded, but has a " + key);
}

// Its producer is no longer a node that runs.
void make_folded(TensorInfo& tensor, std::size_t place) {
  tensor.kind = TensorKind::kWeight;
  tensor.producer = {};
  tensor.weight_key = tensor.name;
  tensor.folded = static_cast<std::int32_t>(place);
}

}  // namespace

GraphAssembler::GraphAssembler(const std::string& file, Json document) {
  graph_.file = file;
  graph_.document_ = std::move(document);
}

void GraphAssembler::reserve_nodes(std::size_t count) {
  graph_.nodes_.reserve(count);
  graph_.node_names_.reserve(count);
  graph_.tensor_names_.reserve(count);
}

void GraphAssembler::reserve_tensors(std::size_t count) { graph_.tensors_.reserve(count); }

TensorId GraphAssembler::add_tensor(TensorInfo tensor) {
  const auto id = id_at<TensorId>(graph_.tensors_.size());
  graph_.tensors_.push_back(std::move(tensor));
  graph_.tensor_names_.insert(
      graph_.tensors_.back().name, id.value,
      [&](std::int32_t i) -> const std::string& { return graph_.tensors_[index_of(i)].name; });
  return id;
}

NodeId GraphAssembler::name_node(NodeId id) {
  return {graph_.node_names_.insert(
      graph_.node(id).name, id.value,
      [&](std::int32_t i) -> const std::string& { return graph_.nodes_[index_of(i)].name; })};
}

void GraphAssembler::finish(Diagnostics& diagnostics) {
  find_consumers();
  if (!diagnostics.has_errors()) verify_graph(graph_, diagnostics);
  if (!diagnostics.has_errors()) set_folded_apart(diagnostics);
}

// In node order, whatever the order in which operands were found.
void GraphAssembler::find_consumers() {
  for (const NodeId id : ids_of<NodeId>(graph_.nodes_)) {
    for (const TensorId input : graph_.node(id).inputs) {
      auto& consumers = tensor(input).consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
  }
}

// The nodes that are marked as folded leave the list, and their results become weights.
void GraphAssembler::set_folded_apart(Diagnostics& diagnostics) {
  std::vector<Node>& nodes = graph_.nodes_;
  std::vector<NodeId> moved(nodes.size());  // invalid: folded
  std::int32_t kept = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Json* mark = find_member(nodes[n].json, "folded");
    if (mark == nullptr || *mark != true) moved[n].value = kept++;
  }
  if (index_of(kept) == nodes.size()) return;
  for (const NodeId id : ids_of<NodeId>(nodes)) {
    if (!moved[index_of(id)].valid()) check_folded(graph_, id, diagnostics);
  }
  std::vector<Node> all = std::exchange(nodes, {});
  nodes.reserve(index_of(kept));
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (moved[n].valid()) {
      nodes.push_back(std::move(all[n]));
      continue;
    }
    for (const TensorId id : all[n].outputs) make_folded(tensor(id), graph_.folded_.size());
    graph_.folded_.push_back({std::move(all[n]), static_cast<std::int32_t>(nodes.size())});
  }
  graph_.node_names_ = {};
  graph_.node_names_.reserve(nodes.size());
  for (const NodeId id : ids_of<NodeId>(nodes)) name_node(id);
  for (TensorInfo& tensor : graph_.tensors_) {
    if (tensor.producer.valid()) tensor.producer = moved[index_of(tensor.producer)];
    std::erase_if(tensor.consumers, [&](NodeId id) { return !moved[index_of(id)].valid(); });
    for (NodeId& id : tensor.consumers) id = moved[index_of(id)];
  }
}

}  // namespace npu

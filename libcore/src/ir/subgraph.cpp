// SPDX-License-Identifier: Apache-2.0
// Cuts a set of nodes out of a graph as a separate document, which a backend compiles.
#include "npu/ir/subgraph.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/fusion_section.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

Json tensor_json(const TensorInfo& tensor) {
  Json json = Json::object();
  json["name"] = tensor.name;
  json["shape"] = tensor.shape;
  json["dtype"] = dtype_name(tensor.dtype);
  return json;
}

bool is_placement_key(std::string_view key) {
  return key == "device" || key == "device_reason" || key == "partition" || key == "fusion_group" ||
         key == "fusion_pattern";
}

/// Which group the node belongs to, and what it is, for the backend.
void add_group(const Node& node, const std::unordered_map<std::int64_t, std::string_view>& patterns,
               Json& json) {
  if (!node.fusion_group) return;
  json["fusion_group"] = *node.fusion_group;
  if (const auto found = patterns.find(*node.fusion_group); found != patterns.end()) {
    json["fusion_pattern"] = found->second;
  } else if (const Json* stated = find_member(node.json, "fusion_pattern")) {
    json["fusion_pattern"] = *stated;
  }
}

Json node_json(const Graph& graph, const Node& node,
               const std::unordered_set<std::int32_t>& outside) {
  Json json = Json::object();
  for (const auto& [key, value] : node.json.get_ref<const Json::object_t&>()) {
    if (is_placement_key(key)) continue;
    if (key == "inputs" || key == "outputs") {
      Json list = Json::array();
      for (const TensorId id : key == "inputs" ? node.inputs : node.outputs) {
        const TensorInfo& tensor = graph.tensor(id);
        Json mention = tensor_json(tensor);
        if (outside.contains(id.value)) {
          mention["producer_node"] = tensor.name;
          mention["producer_output_idx"] = 0;
        } else if (tensor.kind == TensorKind::kResult) {
          mention["producer_node"] = graph.node(tensor.producer).name;
          mention["producer_output_idx"] = tensor.result;
        }
        list.push_back(std::move(mention));
      }
      json[key] = std::move(list);
    } else if (key == "name") {
      json[key] = node.name;
    } else if (key == "op_type") {
      json[key] = node.op_type;
    } else {
      // Backends read JSON.
      set_non_finite_form(json[key] = value, NonFiniteForm::kText);
    }
  }
  return json;
}

}  // namespace

BoundaryFinder::BoundaryFinder(const Graph& graph)
    : graph_(graph),
      is_output_(graph.tensors().size(), 0),
      member_(graph.nodes().size(), 0),
      seen_(graph.tensors().size(), 0) {
  for (const TensorId output : graph.graph_outputs()) is_output_[index_of(output)] = 1;
}

SubgraphBoundary BoundaryFinder::find(const std::vector<NodeId>& nodes) {
  SubgraphBoundary boundary;
  ++set_;
  for (const NodeId id : nodes) member_[index_of(id)] = set_;
  const auto is_member = [&](NodeId id) { return member_[index_of(id)] == set_; };
  for (const NodeId id : nodes) {
    for (const TensorId input : graph_.node(id).inputs) {
      const TensorInfo& tensor = graph_.tensor(input);
      if (tensor.kind == TensorKind::kResult && is_member(tensor.producer)) continue;
      if (std::exchange(seen_[index_of(input)], set_) == set_) continue;
      (tensor.kind == TensorKind::kWeight ? boundary.weights : boundary.inputs).push_back(input);
    }
    for (const TensorId output : graph_.node(id).outputs) {
      const std::vector<NodeId>& consumers = graph_.tensor(output).consumers;
      if (is_output_[index_of(output)] != 0 ||
          !std::all_of(consumers.begin(), consumers.end(), is_member)) {
        boundary.outputs.push_back(output);
      }
    }
  }
  return boundary;
}

std::vector<NodeId> all_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  nodes.reserve(graph.nodes().size());
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) nodes.push_back(id);
  return nodes;
}

SubgraphBoundary find_boundary(const Graph& graph, const std::vector<NodeId>& nodes) {
  return BoundaryFinder(graph).find(nodes);
}

std::string write_subgraph(const Graph& graph, const std::vector<NodeId>& nodes,
                           const SubgraphBoundary& boundary) {
  std::unordered_set<std::int32_t> outside;
  for (const TensorId id : boundary.inputs) outside.insert(id.value);
  Json document = Json::object();
  document["ir_version"] = kSubIrVersion;
  document["model_name"] = graph.model_name();
  for (const auto& [key, list] : {std::pair{"graph_inputs", &boundary.inputs},
                                  {"graph_outputs", &boundary.outputs},
                                  {"weights", &boundary.weights}}) {
    Json array = Json::array();
    for (const TensorId id : *list) array.push_back(tensor_json(graph.tensor(id)));
    document[key] = std::move(array);
  }
  const auto patterns = texts_by_group(graph, "pattern");
  Json array = Json::array();
  for (const NodeId id : nodes) {
    array.push_back(node_json(graph, graph.node(id), outside));
    add_group(graph.node(id), patterns, array.back());
  }
  document["nodes"] = std::move(array);
  return write_document(document);
}

void check_sub_ir_version(const Graph& graph) {
  const Json* version = find_member(graph.document(), "ir_version");
  if (version == nullptr || *version == kSubIrVersion) return;
  throw Error(ErrorCode::kInvalidGraph, "\"ir_version\" is " + version->dump() + ", expected " +
                                            std::to_string(kSubIrVersion));
}

}  // namespace npu

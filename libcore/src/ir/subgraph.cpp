// SPDX-License-Identifier: Apache-2.0
// Cuts a set of nodes out of a graph as a graph of its own, which a backend compiles.
//
// Tensors have the order in which the reader of a document adds them, so that a part is the same
// whether it was written and read or not. O(size of the set).
#include "npu/ir/subgraph.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/fusion_section.hpp"
#include "ir/graph_assembler.hpp"
#include "ir/mention_form.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

bool is_placement_key(std::string_view key) {
  return key == "device" || key == "device_reason" || key == "partition" || key == "fusion_group" ||
         key == "fusion_pattern";
}

/// Those that nodes read, and those that the part hands out as they are.
std::vector<TensorId> weights_of(const Graph& graph, const SubgraphBoundary& boundary) {
  std::vector<TensorId> weights = boundary.weights;
  for (const TensorId id : boundary.outputs) {
    if (graph.tensor(id).kind == TensorKind::kWeight &&
        std::find(weights.begin(), weights.end(), id) == weights.end()) {
      weights.push_back(id);
    }
  }
  return weights;
}

/// The top level of a part.
Json part_document(const Graph& graph, const SubgraphBoundary& boundary) {
  const std::vector<TensorId> weights = weights_of(graph, boundary);
  Json document = Json::object();
  document["ir_version"] = kSubIrVersion;
  document["model_name"] = graph.model_name();
  for (const auto& [key, list] : {std::pair{"graph_inputs", &boundary.inputs},
                                  {"graph_outputs", &boundary.outputs},
                                  {"weights", &weights}}) {
    Json array = Json::array();
    for (const TensorId id : *list) array.push_back(mention_json(graph, id, MentionForm::kBare));
    document[key] = std::move(array);
  }
  document["nodes"] = Json::array();
  return document;
}

class Extractor {
 public:
  Extractor(const Graph& graph, const SubgraphBoundary& boundary)
      : graph_(graph),
        boundary_(boundary),
        patterns_(texts_by_group(graph, "pattern")),
        assembler_({}, part_document(graph, boundary)) {}

  Graph extract(const std::vector<NodeId>& nodes) {
    assembler_.set_model_name(graph_.model_name());
    assembler_.reserve_nodes(nodes.size());
    for (const TensorId id : boundary_.inputs) {
      assembler_.add_graph_input(add(id, TensorKind::kGraphInput));
    }
    for (const NodeId id : nodes) add(graph_.node(id));
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      Node& node = assembler_.graph().nodes()[n];
      for (const TensorId id : graph_.node(nodes[n]).inputs) node.inputs.push_back(known(id));
    }
    for (const TensorId id : boundary_.outputs) assembler_.add_graph_output(known(id));
    Diagnostics diagnostics;
    assembler_.finish(diagnostics);
    if (diagnostics.has_errors()) {
      throw std::logic_error("a part of '" + graph_.model_name() +
                             "' is no graph: " + format_diagnostic(diagnostics.entries().front()));
    }
    return assembler_.take();
  }

 private:
  TensorId add(TensorId id, TensorKind kind) {
    const TensorInfo& whole = graph_.tensor(id);
    TensorInfo tensor;
    tensor.name = whole.name;
    tensor.shape = whole.shape;
    tensor.dtype = whole.dtype;
    tensor.kind = kind;
    if (kind == TensorKind::kWeight) tensor.weight_key = whole.name;
    return places_[id.value] = assembler_.add_tensor(std::move(tensor));
  }

  /// In the part. A weight is added at its first use.
  TensorId known(TensorId id) {
    const auto found = places_.find(id.value);
    if (found != places_.end()) return found->second;
    if (graph_.tensor(id).kind == TensorKind::kWeight) return add(id, TensorKind::kWeight);
    throw std::logic_error("nothing in a part makes tensor '" + graph_.tensor(id).name + "'");
  }

  /// Without its operands.
  void add(const Node& whole) {
    const auto id = id_at<NodeId>(assembler_.graph().nodes().size());
    Node& node = assembler_.graph().nodes().emplace_back();
    node.name = whole.name;
    node.op_type = whole.op_type;
    node.fusion_group = whole.fusion_group;
    node.json = node_json(whole);
    for (const TensorId result : whole.outputs) {
      TensorInfo& tensor = assembler_.tensor(add(result, TensorKind::kResult));
      tensor.producer = id;
      tensor.result = static_cast<std::int32_t>(node.outputs.size());
      node.outputs.push_back(places_.at(result.value));
    }
    assembler_.name_node(id);
  }

  /// What the part says of a node besides what its graph knows.
  Json node_json(const Node& node) const {
    Json json = Json::object();
    for (const auto& [key, value] : node.json.get_ref<const Json::object_t&>()) {
      if (is_placement_key(key)) continue;
      if (key == "inputs" || key == "outputs") {
        json[key] = static_cast<unsigned>(MentionForm::kAllButWeights);
      } else if (key == "name" || key == "op_type") {
        json[key] = nullptr;
      } else {
        // Backends read JSON.
        set_non_finite_form(json[key] = value, NonFiniteForm::kText);
      }
    }
    if (node.fusion_group) add_group(node, json);
    return json;
  }

  /// Which group the node belongs to, and what it is, for the backend.
  void add_group(const Node& node, Json& json) const {
    json["fusion_group"] = *node.fusion_group;
    if (const auto found = patterns_.find(*node.fusion_group); found != patterns_.end()) {
      json["fusion_pattern"] = found->second;
    } else if (const Json* stated = find_member(node.json, "fusion_pattern")) {
      json["fusion_pattern"] = *stated;
    }
  }

  const Graph& graph_;
  const SubgraphBoundary& boundary_;
  const std::unordered_map<std::int64_t, std::string_view> patterns_;
  GraphAssembler assembler_;
  std::unordered_map<std::int32_t, TensorId> places_;  // by tensor of the whole
};

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

Graph extract(const Graph& graph, const std::vector<NodeId>& nodes,
              const SubgraphBoundary& boundary) {
  return Extractor(graph, boundary).extract(nodes);
}

std::string write_subgraph(const Graph& graph, const std::vector<NodeId>& nodes,
                           const SubgraphBoundary& boundary) {
  return write_sub_ir(extract(graph, nodes, boundary));
}

void check_sub_ir_version(const Graph& graph) {
  const Json* version = find_member(graph.document(), "ir_version");
  if (version == nullptr || *version == kSubIrVersion) return;
  throw Error(ErrorCode::kInvalidGraph, "\"ir_version\" is " + version->dump() + ", expected " +
                                            std::to_string(kSubIrVersion));
}

}  // namespace npu

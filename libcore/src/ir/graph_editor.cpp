// SPDX-License-Identifier: Apache-2.0
// Edits of a graph: insert and remove nodes, replace operands, rename and retype tensors, add
// outputs.
//
// Input:  a verified graph and edits in terms of its ids.
// Output: the graph with all edits, verified, with new ids.
// Mentions are edited in the JSON that was read, so that unknown keys survive, and the document is
// assembled again once at the end: names, consumers and order then follow from the document, which
// passes the same checks as any other. O(nodes + edges) for any number of edits; a single edit
// costs the same, so callers collect them.
#include "ir/graph_editor.hpp"

#include <stdexcept>

#include "ir/mention_form.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu {

TensorSource source_of(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  if (is_computed(tensor)) return {graph.producer_name(tensor), tensor.result};
  return {tensor.name, 0};
}

Json tensor_mention(std::string_view name, const Shape& shape, DType dtype,
                    const TensorSource& source) {
  Json json = tensor_mention(name, shape, dtype);
  json["producer_node"] = source.node;
  json["producer_output_idx"] = source.index;
  return json;
}

GraphEditor::GraphEditor(Graph& graph)
    : graph_(graph), tensors_(graph.tensors().size()), removed_(graph.nodes().size(), 0) {}

Json& GraphEditor::json(NodeId id) {
  expand_mentions(graph_, graph_.node(id));
  return graph_.node(id).json;
}

void GraphEditor::rename(TensorId id, std::string name) {
  has_edits_ = true;
  tensors_[id].name = std::move(name);
}

void GraphEditor::set_source(TensorId id, TensorSource source) {
  has_edits_ = true;
  tensors_[id].source = std::move(source);
}

void GraphEditor::set_operand(NodeId node, std::size_t operand, std::string name,
                              TensorSource source) {
  has_edits_ = true;
  operands_[{&graph_.node(node), operand}] = {std::move(name), std::move(source)};
}

void GraphEditor::set_operand(const FoldedNode& node, std::size_t operand, std::string name,
                              TensorSource source) {
  has_edits_ = true;
  operands_[{&node.node, operand}] = {std::move(name), std::move(source)};
}

void GraphEditor::set_output(TensorId id, std::string name, TensorSource source) {
  has_edits_ = true;
  outputs_[id] = {std::move(name), std::move(source)};
}

void GraphEditor::add_output(TensorId id) {
  has_edits_ = true;
  added_outputs_.push_back(id);
}

void GraphEditor::retype(TensorId id, DType dtype) {
  has_edits_ = true;
  tensors_[id].dtype = dtype;
}

void GraphEditor::remove(NodeId id) {
  has_edits_ = true;
  removed_[id] = 1;
}

void GraphEditor::insert_before(NodeId place, Json node) {
  has_edits_ = true;
  inserted_[place].push_back(std::move(node));
}

void GraphEditor::fold(NodeId id) {
  has_edits_ = true;
  Node& node = graph_.node(id);
  node.device.reset();
  node.partition.reset();
  node.fusion_group.reset();
  json(id)["folded"] = true;
}

void GraphEditor::unfold_all() {
  has_edits_ = true;
  unfold_ = true;
}

std::string GraphEditor::unique_name(const std::string& wanted) {
  const auto is_taken = [&](const std::string& name) {
    return graph_.find_tensor(name).valid() || graph_.find_node(name).valid() ||
           taken_.contains(name);
  };
  int& last = suffix_of_[wanted];  // lower ones are still taken
  std::string name = last == 0 ? wanted : wanted + "_" + std::to_string(last);
  while (is_taken(name)) name = wanted + "_" + std::to_string(++last);
  taken_.insert(name);
  return name;
}

void GraphEditor::commit() {
  if (!has_edits_) return;
  Json nodes = Json::array();
  auto folded = graph_.folded().begin();
  const auto take_folded = [&](std::int32_t place) {
    for (; folded != graph_.folded().end() && folded->before == place; ++folded) {
      if (unfold_) {
        folded->node.json.erase("folded");
        folded->node.device_reason.reset();
      }
      edit_node(folded->node);
      nodes.push_back(std::move(folded->node.json));
    }
  };
  const auto insert = [&](NodeId place) {
    const auto here = inserted_.find(place);
    if (here == inserted_.end()) return;
    for (Json& node : here->second) nodes.push_back(std::move(node));
  };
  for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
    take_folded(id.value);
    insert(id);
    if (removed_[id] != 0) continue;
    edit_node(graph_.node(id));
    nodes.push_back(std::move(graph_.node(id).json));
  }
  const auto end = id_at<NodeId>(graph_.nodes().size());
  take_folded(end.value);
  insert(end);
  Json document = std::move(graph_.document());
  edit_top_level(document);
  document["nodes"] = std::move(nodes);
  Diagnostics diagnostics;
  Graph edited = assemble_graph(std::move(document), graph_.file, diagnostics);
  if (diagnostics.has_errors()) {
    throw std::logic_error("the edited document is not valid: " +
                           format_diagnostic(diagnostics.entries().front()));
  }
  graph_ = std::move(edited);
}

void GraphEditor::edit_top_level(Json& document) const {
  Json& inputs = document["graph_inputs"];
  for (std::size_t i = 0; i < graph_.graph_inputs().size(); ++i) {
    edit_mention(inputs[i], {.dtype = tensors_[graph_.graph_inputs()[i]].dtype});
  }
  Json& outputs = document["graph_outputs"];
  for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
    const TensorId id = graph_.graph_outputs()[i];
    const auto own = outputs_.find(id);
    edit_mention(outputs[i], own == outputs_.end() ? tensors_[id] : own->second);
  }
  for (const TensorId id : added_outputs_) {
    outputs.push_back(mention_json(graph_, id, MentionForm::kAllButWeights));
    edit_mention(outputs.back(), tensors_[id]);
  }
  edit_weights(document);
}

// The list of weights goes by keys, constants by either name.
void GraphEditor::edit_weights(Json& document) const {
  std::unordered_map<std::string_view, Edit> edits;
  for (const TensorId id : ids_of<TensorId>(graph_.tensors())) {
    const TensorInfo& tensor = graph_.tensor(id);
    const Edit& wanted = tensors_[id];
    if (tensor.kind != TensorKind::kWeight || (!wanted.dtype && !wanted.name)) continue;
    edits[tensor.weight_key].dtype = wanted.dtype;
    Edit& edit = edits[tensor.name];
    edit.dtype = wanted.dtype;
    if (!wanted.name) continue;
    if (tensor.weight_key == tensor.name) {
      edit.name = wanted.name;
    } else if (Json* keys = find_member(document, "weight_name_mapping")) {
      keys->erase(tensor.name);
      (*keys)[*wanted.name] = tensor.weight_key;
    }
  }
  if (edits.empty()) return;
  const auto edit_of = [&](std::string_view name) {
    const auto found = edits.find(name);
    return found == edits.end() ? Edit{} : found->second;
  };
  if (Json* weights = find_member(document, "weights")) {
    for (Json& entry : *weights) {
      edit_mention(entry, edit_of(entry.at("name").get_ref<const std::string&>()));
    }
  }
  if (Json* constants = find_member(document, "constants")) {
    for (auto& [name, entry] : constants->get_ref<Json::object_t&>()) {
      edit_mention(entry, {.dtype = edit_of(name).dtype});
    }
  }
}

// A mention that names no producer does not get one, so that undoing an edit leaves no trace.
void GraphEditor::edit_mention(Json& mention, const Edit& edit) {
  if (edit.name) mention["name"] = *edit.name;
  if (edit.dtype) {
    Json* dtype = find_member(mention, "dtype");
    if (dtype != nullptr && !dtype->is_null()) *dtype = dtype_name(*edit.dtype);
  }
  if (!edit.source) return;
  if (Json* node = find_member(mention, "producer_node"); node != nullptr && !node->is_null()) {
    *node = edit.source->node;
  }
  if (Json* index = find_member(mention, "producer_output_idx");
      index != nullptr && !index->is_null()) {
    *index = edit.source->index;
  }
}

// Typed fields take precedence over the JSON that was read; they are stored in it for the reader.
void GraphEditor::store_fields(Node& node) {
  const auto store = [&](const char* key, const auto& value) {
    if (value) {
      node.json[key] = *value;
    } else if (const Json* old = find_member(node.json, key); old != nullptr && !old->is_null()) {
      node.json.erase(key);
    }
  };
  store("device", node.device);
  store("device_reason", node.device_reason);
  store("fusion_group", node.fusion_group);
  store("partition", node.partition);
}

void GraphEditor::edit_node(Node& node) {
  expand_mentions(graph_, node);
  store_fields(node);
  if (!node.inputs.empty()) {
    Json& inputs = node.json["inputs"];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto own = operands_.find({&node, i});
      edit_mention(inputs[i], own == operands_.end() ? tensors_[node.inputs[i]] : own->second);
    }
  }
  if (!node.outputs.empty()) {
    Json& outputs = node.json["outputs"];
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      // A result's producer is its node, whatever happens to its readers.
      const Edit& edit = tensors_[node.outputs[i]];
      edit_mention(outputs[i], {.name = edit.name, .dtype = edit.dtype});
    }
  }
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Edits of the nodes and tensors of a block. Nodes whose mentions have changed are written anew at
// their places. O(nodes) for any number of edits.
#include "gnn/block/block_editor.hpp"

#include "ir/mention_form.hpp"

namespace npu::gnn {
namespace {

Json mention_of(const Wire& wire) { return tensor_mention(wire.name, wire.shape, wire.dtype); }

Json mentions_of(const std::vector<Wire>& wires) {
  Json list = Json::array();
  for (const Wire& wire : wires) list.push_back(mention_of(wire));
  return list;
}

// What has not changed stays as the document says it.
void edit_mention(Json& mention, const Wire& stated, const Wire& wire) {
  if (wire.name != stated.name) mention["name"] = wire.name;
  if (wire.shape != stated.shape) mention["shape"] = wire.shape;
  if (wire.dtype != stated.dtype) mention["dtype"] = dtype_name(wire.dtype);
}

}  // namespace

NewNode slice_node(const Wire& from, Wire to, std::int64_t dim, std::int64_t begin,
                   std::int64_t end) {
  return {
      "aten.slice.Tensor", {from}, std::move(to), {{"dim", dim}, {"start", begin}, {"end", end}}};
}

BlockEditor::BlockEditor(Graph& graph)
    : graph_(graph), editor_(graph), removed_(graph.nodes().size(), 0) {
  for (const TensorInfo& tensor : graph.tensors()) {
    stated_.push_back({tensor.name, tensor.shape, tensor.dtype});
  }
  wires_ = stated_;
}

void BlockEditor::insert_before(NodeId place, const NewNode& node) {
  editor_.insert_before(place, {{"name", node.name.empty() ? node.output.name : node.name},
                                {"op_type", node.op_type},
                                {"inputs", mentions_of(node.inputs)},
                                {"outputs", mentions_of({node.output})},
                                {"attrs", node.attrs}});
}

void BlockEditor::remove(NodeId node) {
  removed_[node] = 1;
  editor_.remove(node);
}

void BlockEditor::replace(NodeId node, const NewNode& by) {
  remove(node);
  insert_before(node, by);
}

void BlockEditor::commit() {
  for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
    if (removed_[id] == 0) write_node(id);
  }
  write_lists();
  editor_.commit();
}

// Writes a node anew if something that it mentions has changed.
void BlockEditor::write_node(NodeId id) {
  const Node& node = graph_.node(id);
  Json json = editor_.json(id);
  bool has_changed = false;
  const auto edit = [&](Json& mention, TensorId tensor, const Wire& wire) {
    has_changed = has_changed || wire != stated_[tensor];
    edit_mention(mention, stated_[tensor], wire);
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto own = operands_.find({id, i});
    edit(json["inputs"][i], node.inputs[i],
         own == operands_.end() ? wires_[node.inputs[i]] : own->second);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    edit(json["outputs"][i], node.outputs[i], wires_[node.outputs[i]]);
  }
  if (!has_changed) return;
  const TensorId first = node.outputs.front();
  if (wires_[first].name != stated_[first].name) json["name"] = wires_[first].name;
  remove(id);
  editor_.insert_before(id, std::move(json));
}

// The lists of the document, in which a weight has the key that the file of weights uses.
void BlockEditor::write_lists() {
  Json& document = graph_.document();
  Json inputs = Json::array();
  for (std::size_t i = 0; i < graph_.graph_inputs().size(); ++i) {
    const TensorId id = graph_.graph_inputs()[i];
    if (id == removed_input_) continue;
    inputs.push_back(document["graph_inputs"][i]);
    edit_mention(inputs.back(), stated_[id], wires_[id]);
  }
  for (const Wire& wire : new_inputs_) inputs.push_back(mention_of(wire));
  document["graph_inputs"] = std::move(inputs);
  for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
    const TensorId id = graph_.graph_outputs()[i];
    const auto own = outputs_.find(id);
    edit_mention(document["graph_outputs"][i], stated_[id],
                 own == outputs_.end() ? wires_[id] : own->second);
  }
  for (const TensorId id : wires_.ids()) {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kWeight || wires_[id].dtype == stated_[id].dtype) continue;
    for (Json& weight : document["weights"]) {
      if (weight["name"] == tensor.weight_key) weight["dtype"] = dtype_name(wires_[id].dtype);
    }
  }
}

}  // namespace npu::gnn

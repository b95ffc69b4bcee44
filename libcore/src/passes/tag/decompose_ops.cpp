// SPDX-License-Identifier: Apache-2.0
// Replaces nodes whose op a device lacks by nodes that it runs.
//
// Input:  a verified graph, a target, and what is to stay as it is.
// Output: the same graph with some nodes replaced.
// A device is asked about the nodes of a decomposition in a graph of their own, since nothing is
// replaced before all of them are known to run there. What depends on a node's neighbours, such as
// float64 that counts as float32, is decided without them. O(nodes + parts x rules of their ops).
#include "passes/tag/decompose_ops.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/ids.hpp"
#include "ops/decompositions.hpp"
#include "ops/op_name.hpp"
#include "target/decompose_list.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

using Parts = std::vector<DecomposedPart>;

/// The parts as nodes of a document: `name_of` gives the name of each part and of its result,
/// `mention_of` a tensor of the graph.
template <typename NameOf, typename MentionOf>
std::vector<Json> nodes_of(const Parts& parts, const NameOf& name_of, const MentionOf& mention_of) {
  std::vector<Json> nodes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const DecomposedPart& part = parts[i];
    Json inputs = Json::array();
    for (const PartValue& value : part.inputs) {
      if (value.part < 0) {
        inputs.push_back(mention_of(value.tensor));
        continue;
      }
      const auto [node, result] = name_of(index_of(value.part));
      inputs.push_back(tensor_mention(result, value.shape, value.dtype, {node, 0}));
    }
    const auto [node, result] = name_of(i);
    nodes.push_back({{"name", node},
                     {"op_type", part.op_type},
                     {"inputs", std::move(inputs)},
                     {"outputs", Json::array({tensor_mention(result, part.shape, part.dtype)})}});
    if (!part.attrs.empty()) nodes.back()["attrs"] = part.attrs;
  }
  return nodes;
}

/// The parts alone, with what they read as inputs.
Graph alone(const Graph& graph, const Parts& parts) {
  Json inputs = Json::array();
  std::set<TensorId> read;
  const auto mention = [&](TensorId id) {
    const TensorInfo& tensor = graph.tensor(id);
    if (read.insert(id).second) {
      inputs.push_back(tensor_mention(tensor.name, tensor.shape, tensor.dtype));
    }
    return tensor_mention(tensor.name, tensor.shape, tensor.dtype, {tensor.name, 0});
  };
  const auto name = [](std::size_t part) {
    const std::string text = "part " + std::to_string(part);
    return std::pair(text, text);
  };
  std::vector<Json> nodes = nodes_of(parts, name, mention);
  Json output = nodes.back()["outputs"][0];
  output["producer_node"] = nodes.back()["name"];
  output["producer_output_idx"] = 0;
  Diagnostics diagnostics;
  Graph result = assemble_graph({{"model_name", "parts"},
                                 {"graph_inputs", std::move(inputs)},
                                 {"graph_outputs", Json::array({std::move(output)})},
                                 {"weights", Json::array()},
                                 {"nodes", std::move(nodes)}},
                                {}, diagnostics);
  if (diagnostics.has_errors()) {
    throw std::logic_error("a decomposition is not valid: " +
                           format_diagnostic(diagnostics.entries().front()));
  }
  return result;
}

/// Which ops each device of a target names, in the target's order.
using NamedOps = std::vector<std::set<std::string, std::less<>>>;

NamedOps named_ops(const Target& target) {
  NamedOps result;
  for (const Device& device : target.devices) {
    const std::vector<std::string> names = decompose_list(target, device.name);
    result.emplace_back(names.begin(), names.end());
  }
  return result;
}

bool any_names(const NamedOps& named, const Node& node) {
  return std::any_of(named.begin(), named.end(),
                     [&](const auto& ops) { return ops.contains(node.op_type); });
}

/// Puts parts in the place of nodes.
class PartsEditor {
 public:
  explicit PartsEditor(Graph& graph) : graph_(graph), editor_(graph) {}

  void replace(NodeId id, const Parts& parts) {
    changed_ = true;
    const Node& node = graph_.node(id);
    std::vector<std::string> names;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      names.push_back(
          editor_.unique_name(node.name + "." + std::string(base_name(parts[i].op_type))));
    }
    const auto name = [&](std::size_t part) {
      if (part < names.size()) return std::pair(names[part], names[part]);
      return std::pair(node.name, graph_.tensor(node.outputs.front()).name);
    };
    std::vector<Json> nodes = nodes_of(parts, name, [&](TensorId tensor) {
      return mention_json(graph_, tensor, MentionForm::kAllButWeights);
    });
    // What else the document says of the node stays with the last one.
    Json last = editor_.json(id);
    for (const char* key : {"op_type", "inputs"}) last[key] = std::move(nodes.back()[key]);
    last.erase("attrs");
    if (Json* attrs = find_member(nodes.back(), "attrs")) last["attrs"] = std::move(*attrs);
    if (find_member(last, "decomposed") == nullptr) last["decomposed"] = node.op_type;
    nodes.back() = std::move(last);
    for (Json& each : nodes) editor_.insert_before(id, std::move(each));
    editor_.remove(id);
  }

  bool commit() {
    if (!changed_) return false;
    editor_.commit();
    return true;
  }

 private:
  Graph& graph_;
  GraphEditor editor_;
  bool changed_ = false;
};

class Decomposer {
 public:
  Decomposer(Graph& graph, const Target& target)
      : graph_(graph), target_(target), named_(named_ops(target)), editor_(graph) {}

  void replace(NodeId id, const Device* only) {
    if (!any_names(named_, graph_.node(id))) return;
    std::optional<Parts> parts;
    std::optional<Graph> parts_alone;
    for (std::size_t i = 0; i < target_.devices.size(); ++i) {
      const Device& device = target_.devices[i];
      if (only != nullptr && only != &device) continue;
      if (check_support(graph_, id, device).supported) return;
      if (!named_[i].contains(graph_.node(id).op_type)) continue;
      if (!parts_alone) {
        parts = decompose(graph_, graph_.node(id));
        if (!parts) return;
        parts_alone = alone(graph_, *parts);
      }
      if (!runs_all(*parts_alone, ids_of<NodeId>(parts_alone->nodes()), device)) continue;
      editor_.replace(id, *parts);
      return;
    }
  }

  bool commit() { return editor_.commit(); }

 private:
  Graph& graph_;
  const Target& target_;
  NamedOps named_;
  PartsEditor editor_;
};

}  // namespace

bool may_decompose(const Graph& graph, const Target& target) {
  const NamedOps named = named_ops(target);
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return any_names(named, node); });
}

bool decompose_ops(Graph& graph, const Target& target,
                   const std::function<NodeWish(NodeId)>& wish_of) {
  Decomposer decomposer(graph, target);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const NodeWish wish = wish_of(id);
    if (!wish.stays_whole) decomposer.replace(id, wish.device);
  }
  return decomposer.commit();
}

bool decompose_ops(Graph& graph, const std::function<bool(const Node&)>& is_lacking) {
  PartsEditor editor(graph);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (!is_lacking(graph.node(id))) continue;
    if (const auto parts = decompose(graph, graph.node(id))) editor.replace(id, *parts);
  }
  return editor.commit();
}

}  // namespace npu

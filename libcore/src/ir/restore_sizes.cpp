// SPDX-License-Identifier: Apache-2.0
// Makes a graph whose sizes were bound a template again, so that passes which know numbers alone
// work on templates. What comes out is bound once more and compared, so that a size that was put
// back in the wrong place is an error and no other model. O(size of the document).
#include "ir/restore_sizes.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "ir/graph_editor.hpp"
#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// The attributes of each node of a document, by its name.
NameIndex<const Json*> attributes_of(const Json& document) {
  NameIndex<const Json*> attributes;
  const Json* nodes = member_list(document, "nodes");
  for (std::size_t i = 0; nodes != nullptr && i < nodes->size(); ++i) {
    const std::string* name = member_text((*nodes)[i], "name");
    const Json* attrs = find_member((*nodes)[i], "attrs");
    if (name != nullptr && attrs != nullptr) attributes.try_emplace(*name, attrs);
  }
  return attributes;
}

class Restorer {
 public:
  Restorer(const Template& model, Graph graph, const SizeBindings& values, Diagnostics& diagnostics)
      : model_(model),
        graph_(std::move(graph)),
        values_(values),
        diagnostics_(diagnostics),
        bound_(bound_document(model, values)),
        numbers_(attributes_of(bound_)),
        expressions_(attributes_of(model.document())) {}

  Template restore() {
    if (!graph_.folded().empty()) throw std::logic_error("restored_template: folded nodes");
    Json document = graph_.document();
    for (const char* list : {"graph_inputs", "graph_outputs"}) {
      if (Json* mentions = find_member(document, list)) restore_mentions(*mentions);
    }
    Json& nodes = document["nodes"] = Json::array();
    GraphEditor editor(graph_);
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      find_sizes(id);
      Json node = editor.json(id);
      for (const char* list : {"inputs", "outputs"}) {
        if (Json* mentions = find_member(node, list)) restore_mentions(*mentions);
      }
      restore_attributes(graph_.node(id).name, node);
      nodes.push_back(std::move(node));
    }
    Json& npu = document["npu"];
    npu["symbols"] = *find_member(*find_member(model_.document(), "npu"), "symbols");
    if (diagnostics_.has_errors()) return {};
    Template restored = Template::read(std::move(document), model_.file(), diagnostics_);
    if (!diagnostics_.has_errors()) check(restored, editor);
    return restored;
  }

 private:
  bool has_shape(const SizeShape& sizes, const Shape& shape) const {
    if (sizes.size() != shape.size()) return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (sizes[d].evaluate(values_) != shape[d]) return false;
    }
    return true;
  }

  /// Null if nobody knows them: a weight, or what varies nowhere.
  const SizeShape* sizes_of(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    const SizeShape* stated = model_.shape(tensor.name);
    if (stated != nullptr && has_shape(*stated, tensor.shape)) return stated;
    const auto found = added_.find(tensor.name);
    return found != added_.end() ? &found->second : nullptr;
  }

  void find_sizes(NodeId id) {
    const Node& node = graph_.node(id);
    for (const TensorId result : node.outputs) {
      if (sizes_of(result) != nullptr) continue;
      bool varies = false;
      const SizeShape* sizes = nullptr;
      for (const TensorId operand : node.inputs) {
        const SizeShape* its = sizes_of(operand);
        if (its == nullptr) continue;
        for (const SizeExpression& size : *its) varies = varies || !size.is_constant();
        if (sizes == nullptr && has_shape(*its, graph_.tensor(result).shape)) sizes = its;
      }
      if (sizes != nullptr) {
        added_[graph_.tensor(result).name] = *sizes;
      } else if (varies) {
        diagnostics_.error(graph_.location(id), "node '" + short_text(node.name) +
                                                    "' is new, and the sizes of '" +
                                                    short_text(graph_.tensor(result).name) +
                                                    "' follow from none of its operands");
      }
    }
  }

  void restore_mentions(Json& mentions) const {
    for (Json& mention : mentions) {
      const std::string* name = member_text(mention, "name");
      const TensorId id = name != nullptr ? graph_.find_tensor(*name) : TensorId{};
      const SizeShape* sizes = id.valid() ? sizes_of(id) : nullptr;
      if (sizes != nullptr && graph_.tensor(id).kind != TensorKind::kWeight) {
        mention["shape"] = shape_json(*sizes);
      }
    }
  }

  void restore_attributes(const std::string& name, Json& node) const {
    Json* attrs = find_member(node, "attrs");
    const auto numbers = numbers_.find(name);
    const auto expressions = expressions_.find(name);
    if (attrs == nullptr || numbers == numbers_.end() || expressions == expressions_.end()) return;
    for (const auto& [key, value] : attrs->items()) {
      const Json* bound = find_member(*numbers->second, key);
      const Json* stated = find_member(*expressions->second, key);
      if (bound != nullptr && stated != nullptr && *bound == value) value = *stated;
    }
  }

  void check(const Template& restored, GraphEditor& editor) {
    const Json document = bound_document(restored, values_);
    const Json& nodes = *find_member(document, "nodes");
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      if (nodes[index_of(id)] == editor.json(id)) continue;
      diagnostics_.error(graph_.location(id), "node '" + short_text(graph_.node(id).name) +
                                                  "' has sizes that follow none of " +
                                                  model_.symbols().names());
    }
  }

  const Template& model_;
  Graph graph_;
  const SizeBindings& values_;
  Diagnostics& diagnostics_;
  const Json bound_;
  const NameIndex<const Json*> numbers_;
  const NameIndex<const Json*> expressions_;
  NameIndex<SizeShape> added_;  // of tensors that the template does not have
};

}  // namespace

Template restored_template(const Template& model, Graph graph, const SizeBindings& values,
                           Diagnostics& diagnostics) {
  return Restorer(model, std::move(graph), values, diagnostics).restore();
}

}  // namespace npu

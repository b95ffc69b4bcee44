// SPDX-License-Identifier: Apache-2.0
// Calls of the functions that a model brings along, which are inlined. What a call leaves out is
// absent in the function's nodes; what it has too much is refused, as for ops (unread.hpp).
// O(nodes of the function) a call.
#include <algorithm>

#include "importer.hpp"
#include "names.hpp"

namespace npu::onnx {
namespace {

// Whether a node, or one of its bodies, refers to an attribute of the call.
bool refers_to(const std::vector<NodeProto>& nodes, std::string_view name) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeProto& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
      return attribute.ref == name ||
             (attribute.graph != nullptr && refers_to(attribute.graph->nodes, name));
    });
  });
}

// Exporters do not always declare the attributes that the nodes refer to.
bool has_attribute(const FunctionProto& function, std::string_view name) {
  const auto& names = function.attributes;
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(function.defaults.begin(), function.defaults.end(),
                     [&](const AttributeProto& known) { return known.name == name; }) ||
         refers_to(function.nodes, name);
}

void check_call(const FunctionProto& function, const NodeProto& node) {
  const auto refuse_surplus = [](const char* what, std::string_view name, std::size_t index,
                                 std::size_t count) {
    throw Refusal{std::string(what) + " " + std::to_string(index) + " (" + quoted_name(name) +
                  ") is not known; the function has " + std::to_string(count)};
  };
  for (std::size_t i = function.inputs.size(); i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    refuse_surplus("operand", node.inputs[i], i, function.inputs.size());
  }
  for (std::size_t i = function.outputs.size(); i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    refuse_surplus("result", node.outputs[i], i, function.outputs.size());
  }
  const auto& attributes = node.attributes;
  for (auto attribute = attributes.begin(); attribute != attributes.end(); ++attribute) {
    if (std::any_of(attributes.begin(), attribute,
                    [&](const auto& other) { return other.name == attribute->name; })) {
      throw Refusal{"attribute " + quoted_name(attribute->name) + " stands there twice"};
    }
    if (!has_attribute(function, attribute->name)) {
      throw Refusal{"attribute " + quoted_name(attribute->name) + " is not one of the function"};
    }
  }
}

}  // namespace

void Importer::run_function(const FunctionProto& function, const NodeProto& node, Scope& scope) {
  if (scope.depth >= kDeepestScope) {
    throw Refusal{"functions call each other more than " + std::to_string(kDeepestScope) + " deep"};
  }
  check_call(function, node);
  Scope inner;
  inner.function = &function;
  inner.call = &node;
  inner.call_scope = &scope;
  inner.opsets = &function_opsets_[&function];
  inner.depth = scope.depth + 1;
  inner.prefix = label(node, scope, 0) + "/";
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const std::string_view name = i < node.inputs.size() ? node.inputs[i] : std::string_view();
    Value* value = name.empty() ? draft_.add_absent() : scope.find(name);
    if (value == nullptr) {
      throw Refusal{"reads " + quoted_name(name) + ", which nothing before it makes"};
    }
    inner.names[function.inputs[i]] = value;
  }
  run_nodes(function.nodes, inner);
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    Value* value = inner.find(function.outputs[i]);
    if (value == nullptr || value->kind == Value::Kind::kAbsent) {
      throw Refusal{"its function does not make " + quoted_name(function.outputs[i])};
    }
    scope.names[node.outputs[i]] = value;
  }
}

}  // namespace npu::onnx

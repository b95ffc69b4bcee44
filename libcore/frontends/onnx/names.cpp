// SPDX-License-Identifier: Apache-2.0
// Every name of a graph, of a body or of a function has one maker; with two it would depend on the
// order of reading which of them is meant. An initializer may have the name of an input, whose
// default it is. O(names).
#include "names.hpp"

#include <unordered_map>
#include <utility>

#include "importer.hpp"
#include "support/text.hpp"

namespace npu::onnx {
namespace {

/// What makes a value: an element of one of a graph's lists.
struct Maker {
  const char* list = "";
  std::size_t index = 0;
  const NodeProto* node = nullptr;
};

std::string text_of(const Maker& maker) {
  std::string text = std::string(maker.list) + "[" + std::to_string(maker.index) + "]";
  if (maker.node == nullptr) return text;
  if (!maker.node->name.empty()) text += " " + quoted_name(maker.node->name);
  return text + " (" + short_text(maker.node->op_type) + ")";
}

class NameCheck {
 public:
  explicit NameCheck(std::vector<std::string>& faults) : faults_(faults) {}

  void run(const GraphProto& graph, const std::string& where) {
    Makers makers;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      add(makers, graph.inputs[i].name, {"input", i}, where);
    }
    Makers initializers;
    for (std::size_t i = 0; i < graph.initializers.size(); ++i) {
      add(initializers, graph.initializers[i].name, {"initializer", i}, where);
    }
    for (std::size_t i = 0; i < graph.sparse_initializers.size(); ++i) {
      add(initializers, graph.sparse_initializers[i].values.name, {"sparse_initializer", i}, where);
    }
    makers.merge(initializers);
    run_nodes(graph.nodes, std::move(makers), where);
  }

  void run(const FunctionProto& function) {
    const std::string where = " of function " + quoted_name(function.name);
    Makers makers;
    for (std::size_t i = 0; i < function.inputs.size(); ++i) {
      add(makers, function.inputs[i], {"input", i}, where);
    }
    run_nodes(function.nodes, std::move(makers), where);
  }

 private:
  using Makers = std::unordered_map<std::string_view, Maker>;

  void run_nodes(const std::vector<NodeProto>& nodes, Makers makers, const std::string& where) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::string_view output : nodes[i].outputs) {
        add(makers, output, {"node", i, &nodes[i]}, where);
      }
      for (const AttributeProto& attribute : nodes[i].attributes) {
        if (attribute.graph == nullptr) continue;
        const std::string_view name = nodes[i].name.empty() ? nodes[i].op_type : nodes[i].name;
        run(*attribute.graph, " in the body of node " + quoted_name(name));
      }
    }
  }

  void add(Makers& makers, std::string_view name, const Maker& maker, const std::string& where) {
    if (name.empty()) return;
    const auto [known, is_new] = makers.emplace(name, maker);
    if (is_new) return;
    faults_.push_back(quoted_name(name) + where + " is made twice, by " + text_of(known->second) +
                      " and by " + text_of(maker));
  }

  std::vector<std::string>& faults_;
};

}  // namespace

std::string quoted_name(std::string_view name) { return "'" + short_text(name) + "'"; }

std::vector<std::string> name_faults(const ModelProto& model) {
  std::vector<std::string> faults;
  NameCheck check(faults);
  check.run(model.graph, "");
  std::unordered_map<std::string, std::size_t> functions;
  for (std::size_t i = 0; i < model.functions.size(); ++i) {
    const FunctionProto& function = model.functions[i];
    const std::string_view domain = own_domain(function.domain);
    const std::string name = std::string(domain) + (domain.empty() ? "" : ".") +
                             std::string(function.name) + (function.overload.empty() ? "" : ":") +
                             std::string(function.overload);
    const auto [known, is_new] = functions.emplace(name, i);
    if (!is_new) {
      faults.push_back("function " + quoted_name(name) + " is defined twice, by functions[" +
                       std::to_string(known->second) + "] and by functions[" + std::to_string(i) +
                       "]");
    }
    check.run(function);
  }
  return faults;
}

}  // namespace npu::onnx

// SPDX-License-Identifier: Apache-2.0
// Builds small documents for tests, a line a node, through the reader that users' files go through.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::test {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name = "test") {
    document_["model_name"] = std::move(name);
    for (const char* key : {"graph_inputs", "graph_outputs", "weights"})
      document_[key] = Json::array();
    document_["weight_name_mapping"] = Json::object();
    document_["nodes"] = Json::array();
  }

  GraphBuilder& input(const std::string& name, const Shape& shape = {4},
                      const std::string& dtype = "float32") {
    remember(name, shape, dtype);
    Json json = mention(name);
    inputs_.push_back(name);
    document_["graph_inputs"].push_back(std::move(json));
    return *this;
  }
  /// A weight with the placeholder name p_<name>.
  GraphBuilder& weight(const std::string& name, const Shape& shape,
                       const std::string& dtype = "float32") {
    remember("p_" + name, shape, dtype);
    Json json = mention("p_" + name);
    json["name"] = name;
    document_["weights"].push_back(std::move(json));
    document_["weight_name_mapping"]["p_" + name] = name;
    return *this;
  }
  /// A node with one result of the shape and dtype of its first operand, unless they are given.
  GraphBuilder& node(const std::string& name, const std::string& op_type,
                     const std::vector<std::string>& inputs, const Json& attrs = Json::object()) {
    return node(name, op_type, inputs, inputs.empty() ? Shape{4} : known(inputs[0]).first, attrs,
                inputs.empty() ? "float32" : known(inputs[0]).second);
  }
  GraphBuilder& node(const std::string& name, const std::string& op_type,
                     const std::vector<std::string>& inputs, const Shape& shape,
                     const Json& attrs = Json::object(), const std::string& dtype = "float32") {
    remember(name, shape, dtype);
    Json json = {{"name", name},
                 {"op_type", op_type},
                 {"inputs", Json::array()},
                 {"outputs", Json::array()},
                 {"attrs", attrs}};
    for (const std::string& input : inputs) json["inputs"].push_back(mention(input));
    json["outputs"].push_back(mention(name));
    document_["nodes"].push_back(std::move(json));
    return *this;
  }
  /// A node with several results, <name>_0, <name>_1 and so on.
  GraphBuilder& node_with_results(const std::string& name, const std::string& op_type,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<Shape>& results,
                                  const Json& attrs = Json::object(),
                                  const std::string& dtype = "float32") {
    Json json = {{"name", name},
                 {"op_type", op_type},
                 {"inputs", Json::array()},
                 {"outputs", Json::array()},
                 {"attrs", attrs}};
    for (const std::string& input : inputs) json["inputs"].push_back(mention(input));
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string result = name + "_" + std::to_string(i);
      remember(result, results[i], dtype);
      json["outputs"].push_back(mention(result));
    }
    document_["nodes"].push_back(std::move(json));
    return *this;
  }
  /// `device` of the node that was added last.
  GraphBuilder& on(const std::string& device) {
    document_["nodes"].back()["device"] = device;
    return *this;
  }
  GraphBuilder& key(const std::string& name, const Json& value) {
    document_["nodes"].back()[name] = value;
    return *this;
  }
  GraphBuilder& output(const std::string& name) {
    document_["graph_outputs"].push_back(mention(name));
    return *this;
  }

  Json& document() { return document_; }
  std::string text() const { return document_.dump(); }
  /// Throws npu::Error if the document is not valid.
  Graph build() const { return read_valid_graph(text(), "test.json"); }

 private:
  using Known = std::pair<Shape, std::string>;
  void remember(const std::string& name, const Shape& shape, const std::string& dtype) {
    tensors_[name] = {shape, dtype};
  }
  const Known& known(const std::string& name) const {
    static const Known unknown{{4}, "float32"};
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? unknown : found->second;
  }
  Json mention(const std::string& name) const {
    return {{"name", name}, {"shape", known(name).first}, {"dtype", known(name).second}};
  }

  Json document_ = Json::object();
  std::vector<std::string> inputs_;
  std::map<std::string, Known> tensors_;
};

/// "pointer: text" of every error, in order: what a reader of `text` would be told.
inline std::vector<std::string> errors_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level != Level::kError) continue;
    lines.push_back(diagnostic.location.pointer + ": " + diagnostic.text);
  }
  return lines;
}
inline std::vector<std::string> faults_of(std::string_view text) {
  Diagnostics diagnostics;
  read_graph(text, "test.json", diagnostics);
  return errors_of(diagnostics);
}
inline std::vector<std::string> document_faults(const Json& document) {
  return faults_of(document.dump());
}

}  // namespace npu::test

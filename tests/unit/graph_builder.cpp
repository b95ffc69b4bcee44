// SPDX-License-Identifier: Apache-2.0
#include "graph_builder.hpp"

namespace npu::test {

GraphBuilder::GraphBuilder(const std::string& name) {
  document_["model_name"] = name;
  for (const char* key : {"graph_inputs", "graph_outputs", "weights"})
    document_[key] = Json::array();
  document_["weight_name_mapping"] = Json::object();
  document_["nodes"] = Json::array();
}

GraphBuilder& GraphBuilder::input(const std::string& name, const Shape& shape,
                                  const std::string& dtype) {
  remember(name, shape, dtype);
  document_["graph_inputs"].push_back(mention(name));
  return *this;
}

GraphBuilder& GraphBuilder::weight(const std::string& name, const Shape& shape,
                                   const std::string& dtype) {
  remember("p_" + name, shape, dtype);
  Json json = mention("p_" + name);
  json["name"] = name;
  document_["weights"].push_back(std::move(json));
  document_["weight_name_mapping"]["p_" + name] = name;
  return *this;
}

GraphBuilder& GraphBuilder::node(const std::string& name, const std::string& op_type,
                                 const std::vector<std::string>& inputs, const Json& attrs) {
  return node(name, op_type, inputs, inputs.empty() ? Shape{4} : known(inputs[0]).first, attrs,
              inputs.empty() ? "float32" : known(inputs[0]).second);
}

GraphBuilder& GraphBuilder::node(const std::string& name, const std::string& op_type,
                                 const std::vector<std::string>& inputs, const Shape& shape,
                                 const Json& attrs, const std::string& dtype) {
  remember(name, shape, dtype);
  Json json = without_results(name, op_type, inputs, attrs);
  json["outputs"].push_back(mention(name));
  document_["nodes"].push_back(std::move(json));
  return *this;
}

GraphBuilder& GraphBuilder::node_with_results(const std::string& name, const std::string& op_type,
                                              const std::vector<std::string>& inputs,
                                              const std::vector<Shape>& results, const Json& attrs,
                                              const std::string& dtype) {
  const std::vector<std::string> dtypes(results.size(), dtype);
  return node_with_typed_results(name, op_type, inputs, results, dtypes, attrs);
}

GraphBuilder& GraphBuilder::node_with_typed_results(
    const std::string& name, const std::string& op_type, const std::vector<std::string>& inputs,
    const std::vector<Shape>& results, const std::vector<std::string>& dtypes, const Json& attrs) {
  Json json = without_results(name, op_type, inputs, attrs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string result = name + "_" + std::to_string(i);
    remember(result, results[i], dtypes[i]);
    json["outputs"].push_back(mention(result));
  }
  document_["nodes"].push_back(std::move(json));
  return *this;
}

GraphBuilder& GraphBuilder::on(const std::string& device) {
  document_["nodes"].back()["device"] = device;
  return *this;
}

GraphBuilder& GraphBuilder::key(const std::string& name, const Json& value) {
  document_["nodes"].back()[name] = value;
  return *this;
}

GraphBuilder& GraphBuilder::output(const std::string& name) {
  document_["graph_outputs"].push_back(mention(name));
  return *this;
}

std::string GraphBuilder::text() const { return document_.dump(); }

Graph GraphBuilder::build() const { return read_valid_graph(text(), "test.json"); }

void GraphBuilder::remember(const std::string& name, const Shape& shape, const std::string& dtype) {
  tensors_[name] = {shape, dtype};
}

const GraphBuilder::Known& GraphBuilder::known(const std::string& name) const {
  static const Known unknown{{4}, "float32"};
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? unknown : found->second;
}

Json GraphBuilder::mention(const std::string& name) const {
  return {{"name", name}, {"shape", known(name).first}, {"dtype", known(name).second}};
}

Json GraphBuilder::without_results(const std::string& name, const std::string& op_type,
                                   const std::vector<std::string>& inputs,
                                   const Json& attrs) const {
  Json json = {{"name", name},
               {"op_type", op_type},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"attrs", attrs}};
  for (const std::string& input : inputs) json["inputs"].push_back(mention(input));
  return json;
}

std::vector<std::string> errors_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level != Level::kError) continue;
    lines.push_back(diagnostic.location.pointer + ": " + diagnostic.text);
  }
  return lines;
}

std::vector<std::string> faults_of(std::string_view text) {
  Diagnostics diagnostics;
  read_graph(text, "test.json", diagnostics);
  return errors_of(diagnostics);
}

std::vector<std::string> document_faults(const Json& document) {
  return faults_of(document.dump());
}

}  // namespace npu::test

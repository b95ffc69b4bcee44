// SPDX-License-Identifier: Apache-2.0
// Documents that a program makes up. They pass the checks of any other, in memory. O(size of the
// document).
#include "ir/document_builder.hpp"

#include <utility>

#include "ir/mention_form.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu {
namespace {

Json mention_of(const StatedTensor& tensor) {
  return tensor_mention(tensor.name, tensor.shape, tensor.dtype);
}

}  // namespace

DocumentBuilder::DocumentBuilder(const std::string& model_name)
    : document_({{"model_name", model_name},
                 {"graph_inputs", Json::array()},
                 {"graph_outputs", Json::array()},
                 {"weights", Json::array()},
                 {"weight_name_mapping", Json::object()},
                 {"nodes", Json::array()}}) {}

void DocumentBuilder::add_input(const StatedTensor& tensor) {
  add_known(tensor);
  document_["graph_inputs"].push_back(mention_of(tensor));
}

void DocumentBuilder::add_weight(const StatedTensor& tensor, const std::string& placeholder) {
  document_["weights"].push_back(mention_of(tensor));
  const std::string& name = placeholder.empty() ? tensor.name : placeholder;
  add_known({name, tensor.shape, tensor.dtype});
  if (!placeholder.empty()) document_["weight_name_mapping"][placeholder] = tensor.name;
}

void DocumentBuilder::add_node(const std::string& name, const std::string& op_type,
                               const std::vector<std::string>& operands,
                               const std::vector<StatedTensor>& results, const Json& attrs) {
  Json inputs = Json::array();
  for (const std::string& operand : operands) inputs.push_back(mention(operand));
  Json outputs = Json::array();
  for (const StatedTensor& result : results) {
    add_known(result);
    outputs.push_back(mention_of(result));
  }
  document_["nodes"].push_back({{"name", name},
                                {"op_type", op_type},
                                {"inputs", std::move(inputs)},
                                {"outputs", std::move(outputs)},
                                {"attrs", attrs}});
}

void DocumentBuilder::set(const std::string& key, const Json& value) {
  document_["nodes"].back()[key] = value;
}

void DocumentBuilder::add_output(const std::string& name) {
  document_["graph_outputs"].push_back(mention(name));
}

const StatedTensor* DocumentBuilder::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Graph DocumentBuilder::build(const std::string& file) const { return valid_graph(document_, file); }

Json DocumentBuilder::mention(const std::string& name) const {
  return mention_of(tensors_.at(name));
}

}  // namespace npu

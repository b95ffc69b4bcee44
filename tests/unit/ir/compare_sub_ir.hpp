// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/sub_ir.h"
#include "npu/support/json.hpp"

// What npu/sub_ir.h reads otherwise than the library does, as one line; empty if nothing.
namespace npu::test {

inline bool is_same_scalar(const npu_json& read, const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return read.kind == NPU_JSON_NULL;
    case Json::value_t::boolean:
      return read.kind == NPU_JSON_BOOL && (read.as.integer != 0) == json.get<bool>();
    case Json::value_t::string:
      return read.kind == NPU_JSON_STRING && read.as.text == json.get_ref<const std::string&>() &&
             read.count == json.get_ref<const std::string&>().size();
    case Json::value_t::number_integer:
      return read.kind == NPU_JSON_INTEGER && read.as.integer == json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return json.get<std::uint64_t>() <= INT64_MAX
                 ? read.kind == NPU_JSON_INTEGER && read.as.integer == json.get<std::int64_t>()
                 : read.kind == NPU_JSON_FLOAT && read.as.number == json.get<double>();
    case Json::value_t::number_float: {
      const double number = json.get<double>();
      return read.kind == NPU_JSON_FLOAT &&
             std::memcmp(&read.as.number, &number, sizeof number) == 0;
    }
    default:
      return false;
  }
}

// NOLINTNEXTLINE(misc-no-recursion) as deep as the readers allow
inline std::string json_difference(const npu_json& read, const Json& json) {
  const std::string place = "at byte " + std::to_string(read.offset) + ": ";
  if (!json.is_structured()) return is_same_scalar(read, json) ? "" : place + "another value";
  const std::uint32_t kind = json.is_object() ? NPU_JSON_OBJECT : NPU_JSON_LIST;
  if (read.kind != kind) return place + npu_json_kind_name(read.kind);
  if (read.count != json.size()) return place + "another size";
  const npu_json* child = npu_json_first(&read);
  for (const auto& [key, value] : json.items()) {
    if (child == nullptr) return place + "too few values";
    if (json.is_object() && key != child->key) return place + "another key";
    if (!json.is_object() && child->key != nullptr) return place + "an element with a key";
    if (std::string found = json_difference(*child, value); !found.empty()) return found;
    child = npu_json_next(&read, child);
  }
  return child == nullptr ? "" : place + "too many values";
}

inline std::string tensor_difference(const npu_ir_tensor& read, const Graph& graph) {
  const TensorId id = graph.find_tensor(read.name);
  const std::string name = std::string("tensor ") + read.name + ": ";
  // A weight that nothing reads is none of the graph.
  if (!id.valid()) return read.kind == NPU_IR_WEIGHT ? "" : name + "unknown";
  const TensorInfo& tensor = graph.tensor(id);
  if (read.kind != static_cast<std::uint32_t>(tensor.kind == TensorKind::kGraphInput ? NPU_IR_INPUT
                                              : tensor.kind == TensorKind::kWeight
                                                  ? NPU_IR_WEIGHT
                                                  : NPU_IR_RESULT)) {
    return name + "another kind";
  }
  if (read.dtype != static_cast<std::uint32_t>(tensor.dtype)) return name + "another dtype";
  if (Shape(read.shape, read.shape + read.rank) != tensor.shape) return name + "another shape";
  if (read.bytes != static_cast<std::uint64_t>(tensor.bytes())) return name + "another size";
  if (read.kind == NPU_IR_RESULT &&
      (static_cast<std::int32_t>(read.producer) != tensor.producer.value ||
       static_cast<std::int32_t>(read.index) != tensor.result)) {
    return name + "another producer";
  }
  return "";
}

inline bool are_same_tensors(const npu_ir& read, const std::uint32_t* tensors, std::uint32_t count,
                             const Graph& graph, const std::vector<TensorId>& expected) {
  if (count != expected.size()) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (read.tensors[tensors[i]].name != graph.tensor(expected[i]).name) return false;
  }
  return true;
}

inline std::string node_difference(const npu_ir& read, std::uint32_t n, const Graph& graph) {
  const npu_ir_node& node = read.nodes[n];
  const Node& expected = graph.nodes()[n];
  const std::string name = "node " + expected.name + ": ";
  if (node.name != expected.name || node.op != expected.op_type) return name + "another op";
  if (!are_same_tensors(read, node.inputs, node.input_count, graph, expected.inputs)) {
    return name + "other operands";
  }
  if (!are_same_tensors(read, node.outputs, node.output_count, graph, expected.outputs)) {
    return name + "other results";
  }
  if (node.fusion_group != expected.fusion_group.value_or(-1)) return name + "another group";
  if (node.attrs == nullptr) return expected.attrs().empty() ? "" : name + "no attributes";
  const std::string found = json_difference(*node.attrs, expected.attrs());
  return found.empty() ? "" : name + found;
}

inline std::string graph_difference(const npu_ir& read, const Graph& graph) {
  if (read.model_name != graph.model_name()) return "another name";
  if (read.node_count != graph.nodes().size()) return "another number of nodes";
  if (read.input_count != graph.graph_inputs().size()) return "another number of graph inputs";
  for (std::uint32_t i = 0; i < read.tensor_count; ++i) {
    if (std::string found = tensor_difference(read.tensors[i], graph); !found.empty()) return found;
  }
  for (std::uint32_t i = 0; i < read.input_count; ++i) {
    if (read.tensors[i].name != graph.tensor(graph.graph_inputs()[i]).name) return "other inputs";
  }
  for (std::uint32_t n = 0; n < read.node_count; ++n) {
    if (std::string found = node_difference(read, n, graph); !found.empty()) return found;
  }
  return are_same_tensors(read, read.outputs, read.output_count, graph, graph.graph_outputs())
             ? ""
             : "other outputs";
}

/// Reads a text that the library has written as a sub-IR with both readers.
inline std::string sub_ir_difference(const std::string& text, const Graph& graph) {
  npu_ir_error error{};
  npu_ir* read = npu_ir_read(text.data(), text.size(), &error);
  if (read == nullptr) return error.text;
  std::string found = graph_difference(*read, graph);
  npu_ir_free(read);
  return found;
}

}  // namespace npu::test

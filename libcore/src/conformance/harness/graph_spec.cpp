// SPDX-License-Identifier: Apache-2.0
// Writes the graphs of the conformance cases as the sub-IRs that a host would write, and draws
// values for them. Everything follows from names and seeds.
#include "conformance/harness/graph_spec.hpp"

#include <random>
#include <utility>

#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"

namespace npu::conformance {
namespace {

Json mention(const TensorSpec& tensor) {
  return {{"name", tensor.name}, {"shape", tensor.shape}, {"dtype", dtype_name(tensor.dtype)}};
}

GraphSpec chain(GraphSpec graph, const std::string& op) {
  TensorSpec result = graph.tensor(graph.outputs.front());
  result.name = "last";
  graph.nodes.push_back({"last", op, {graph.outputs.front()}, result, Json::object()});
  graph.outputs = {"last"};
  return graph;
}

}  // namespace

TensorSpec GraphSpec::tensor(const std::string& name) const {
  for (const TensorSpec& input : inputs) {
    if (input.name == name) return input;
  }
  for (const WeightSpec& weight : weights) {
    if (weight.name == name) return {name, weight.tensor.dtype(), weight.tensor.shape()};
  }
  for (const NodeSpec& node : nodes) {
    if (node.name == name) return node.result;
  }
  throw Error(ErrorCode::kInvalidGraph, "no tensor '" + name + "'");
}

Json sub_ir_json(const GraphSpec& graph) {
  Json document = {{"model_name", "check"}, {"ir_version", 1}};
  document["graph_inputs"] = Json::array();
  for (const TensorSpec& input : graph.inputs) document["graph_inputs"].push_back(mention(input));
  document["graph_outputs"] = Json::array();
  for (const std::string& output : graph.outputs) {
    document["graph_outputs"].push_back(mention(graph.tensor(output)));
  }
  document["weights"] = Json::array();
  for (const WeightSpec& weight : graph.weights) {
    document["weights"].push_back(mention(graph.tensor(weight.name)));
  }
  document["nodes"] = Json::array();
  for (const NodeSpec& node : graph.nodes) {
    Json json = {{"name", node.name}, {"op_type", node.op}};
    json["inputs"] = Json::array();
    for (const std::string& operand : node.operands) {
      Json read = mention(graph.tensor(operand));
      bool is_weight = false;
      for (const WeightSpec& weight : graph.weights) is_weight |= weight.name == operand;
      if (!is_weight) {
        read["producer_node"] = operand;
        read["producer_output_idx"] = 0;
      }
      json["inputs"].push_back(std::move(read));
    }
    json["outputs"] = Json::array({mention(node.result)});
    json["attrs"] = node.attrs;
    document["nodes"].push_back(std::move(json));
  }
  return document;
}

std::string sub_ir_text(const GraphSpec& graph) { return write_document(sub_ir_json(graph)); }

GraphSpec one_node(const std::string& op, const std::vector<TensorSpec>& operands,
                   const TensorSpec& result, Json attrs) {
  GraphSpec graph;
  graph.inputs = operands;
  NodeSpec node{result.name, op, {}, result, std::move(attrs)};
  for (const TensorSpec& operand : operands) node.operands.push_back(operand.name);
  graph.nodes.push_back(std::move(node));
  graph.outputs = {result.name};
  return graph;
}

GraphSpec side_by_side(const std::vector<GraphSpec>& graphs) {
  GraphSpec all;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const std::string prefix = "g" + std::to_string(g) + "_";
    for (TensorSpec input : graphs[g].inputs) {
      input.name = prefix + input.name;
      all.inputs.push_back(std::move(input));
    }
    for (const WeightSpec& weight : graphs[g].weights) {
      all.weights.push_back({prefix + weight.name, weight.tensor});
    }
    for (NodeSpec node : graphs[g].nodes) {
      node.name = node.result.name = prefix + node.name;
      for (std::string& operand : node.operands) operand = prefix + operand;
      all.nodes.push_back(std::move(node));
    }
    for (const std::string& output : graphs[g].outputs) all.outputs.push_back(prefix + output);
  }
  return all;
}

std::vector<GraphSpec> sample_graphs(DType dtype) {
  const TensorSpec x{"x", dtype, {3, 5}};
  const TensorSpec y{"y", dtype, {3, 5}};
  const TensorSpec result{"first", dtype, {3, 5}};
  std::vector<GraphSpec> graphs;
  for (const char* binary : {"aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"}) {
    for (const char* unary : {"aten.relu.default", "aten.neg.default"}) {
      graphs.push_back(chain(one_node(binary, {x, y}, result), unary));
    }
    graphs.push_back(one_node(binary, {x, y}, result));
  }
  for (const char* unary : {"aten.relu.default", "aten.neg.default", "aten.abs.default",
                            "aten.sigmoid.default", "aten.tanh.default", "aten.exp.default"}) {
    graphs.push_back(one_node(unary, {x}, result));
  }
  graphs.push_back(one_node("aten.softmax.int", {x}, result, {{"dim", 1}}));
  graphs.push_back(
      one_node("aten.mm.default", {x, {"y", dtype, {5, 4}}}, {"first", dtype, {3, 4}}));
  graphs.push_back(
      one_node("aten.linear.default", {x, {"y", dtype, {4, 5}}}, {"first", dtype, {3, 4}}));
  graphs.push_back(one_node("aten.conv2d.default",
                            {{"x", dtype, {1, 4, 6, 6}}, {"y", dtype, {8, 4, 3, 3}}},
                            {"first", dtype, {1, 8, 4, 4}}));
  return graphs;
}

void set_element(Tensor& tensor, std::int64_t index, double value) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.as_mutable<float>()[index] = static_cast<float>(value);
      return;
    case DType::kFloat64:
      tensor.as_mutable<double>()[index] = value;
      return;
    case DType::kFloat16:
      tensor.as_mutable<std::uint16_t>()[index] = float_to_float16(static_cast<float>(value));
      return;
    case DType::kBFloat16:
      tensor.as_mutable<std::uint16_t>()[index] = float_to_bfloat16(static_cast<float>(value));
      return;
    case DType::kInt8:
      tensor.as_mutable<std::int8_t>()[index] = static_cast<std::int8_t>(value);
      return;
    case DType::kUInt8:
    case DType::kBool:
      tensor.as_mutable<std::uint8_t>()[index] = static_cast<std::uint8_t>(value);
      return;
    case DType::kInt16:
      tensor.as_mutable<std::int16_t>()[index] = static_cast<std::int16_t>(value);
      return;
    case DType::kInt32:
      tensor.as_mutable<std::int32_t>()[index] = static_cast<std::int32_t>(value);
      return;
    case DType::kInt64:
      tensor.as_mutable<std::int64_t>()[index] = static_cast<std::int64_t>(value);
      return;
    case DType::kComplex64:
      tensor.as_mutable<float>()[2 * index] = static_cast<float>(value);
      return;
    case DType::kComplex128:
      tensor.as_mutable<double>()[2 * index] = value;
      return;
  }
}

Tensor test_values(const TensorSpec& tensor, std::uint64_t seed) {
  std::uint64_t mixed = seed;
  for (const char c : tensor.name) mixed = mixed * 31 + static_cast<unsigned char>(c);
  std::mt19937_64 random(mixed);
  Tensor values(tensor.dtype, tensor.shape);
  // Eighths up to 4: exact in every float, and few enough that integers repeat.
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    const auto drawn = static_cast<std::int64_t>(random() % 65) - 32;
    if (tensor.dtype == DType::kBool) {
      set_element(values, i, static_cast<double>(drawn & 1));
    } else if (tensor.dtype == DType::kUInt8) {
      set_element(values, i, static_cast<double>((drawn + 32) / 8));
    } else {
      const double value = static_cast<double>(drawn) / 8;
      set_element(values, i, is_integer(tensor.dtype) ? static_cast<double>(drawn / 8) : value);
    }
  }
  return values;
}

}  // namespace npu::conformance

// SPDX-License-Identifier: Apache-2.0
// Constants and nodes that precisions add to a document. O(1) each.
#include "passes/quantize/constant_writer.hpp"

#include "ir/mention_form.hpp"
#include "npu/support/ids.hpp"

namespace npu::quantize {

namespace {

/// A member of the document, `empty` if it had none.
Json& member(Json& document, std::string_view key, Json empty) {
  if (find_member(document, key) == nullptr) set_member(document, key, std::move(empty));
  return *find_member(document, key);
}

}  // namespace

Json Mention::json() const {
  Json json = tensor_mention(name, shape, dtype);
  if (source.node.empty()) return json;
  json["producer_node"] = source.node;
  json["producer_output_idx"] = source.index;
  return json;
}

Mention ConstantWriter::mention(TensorId id) const {
  const TensorInfo& tensor = graph_.tensor(id);
  Mention result{tensor.name, tensor.shape, tensor.dtype};
  if (tensor.kind != TensorKind::kWeight || tensor.is_folded()) {
    result.source = source_of(graph_, id);
  }
  return result;
}

Mention ConstantWriter::add_constant(const std::string& wanted, const Shape& shape, DType dtype,
                                     Json data) {
  Mention constant{editor_.unique_name(wanted), shape, dtype};
  Json& document = graph_.document();
  member(document, "weights", Json::array()).push_back(constant.json());
  set_member(member(document, "constants", Json::object()), constant.name,
             {{"data", std::move(data)}, {"dtype", dtype_name(dtype)}});
  return constant;
}

Mention ConstantWriter::add_node(NodeId place, const std::string& wanted,
                                 const std::string& op_type, const std::vector<Mention>& inputs,
                                 const Mention& like, const Json& attrs) {
  Mention result = like;
  result.name = editor_.unique_name(wanted);
  result.source = {};
  Json operands = Json::array();
  for (const Mention& input : inputs) operands.push_back(input.json());
  Json node = {{"name", result.name},
               {"op_type", op_type},
               {"inputs", std::move(operands)},
               {"outputs", {result.json()}}};
  if (!attrs.empty()) node["attrs"] = attrs;
  editor_.insert_before(place, std::move(node));
  result.source = {result.name, 0};
  return result;
}

Mention ConstantWriter::multiplied(NodeId place, const Mention& tensor,
                                   const std::vector<float>& factors, std::int32_t axis) {
  // Broadcasting aligns shapes at the end.
  Shape shape(tensor.shape.size() - index_of(axis), 1);
  shape.front() = static_cast<std::int64_t>(factors.size());
  const Mention by = add_constant(tensor.name + "_factors", shape, DType::kFloat32, factors);
  return add_node(place, tensor.name + "_scaled", "aten.mul.Tensor", {tensor, by}, tensor);
}

Mention ConstantWriter::multiplied_in_groups(NodeId place, const Mention& weight,
                                             const std::vector<float>& factors) {
  const std::int64_t outputs = weight.shape[0];
  const std::int64_t inputs = weight.shape[1];
  const std::int64_t groups = static_cast<std::int64_t>(factors.size()) / inputs;
  Shape shape(weight.shape.size(), 1);
  shape[0] = outputs;
  shape[1] = inputs;
  std::vector<float> all;
  for (std::int64_t o = 0; o < outputs; ++o) {
    const std::int64_t first = o / (outputs / groups) * inputs;
    for (std::int64_t i = 0; i < inputs; ++i) all.push_back(factors[index_of(first + i)]);
  }
  const Mention by = add_constant(weight.name + "_factors", shape, DType::kFloat32, all);
  return add_node(place, weight.name + "_scaled", "aten.mul.Tensor", {weight, by}, weight);
}

}  // namespace npu::quantize

// SPDX-License-Identifier: Apache-2.0
// The nodes that stand for another one. O(operands) for each.
#include "passes/padding/rows/row_writer.hpp"

#include <utility>

#include "ir/mention_form.hpp"

namespace npu::padding {

Json RowWriter::mention(TensorId id) const {
  return mention_json(graph_, id, MentionForm::kAllButWeights);
}

void RowWriter::replace(NodeId id, const std::string& op_type, Json inputs, Json attrs) {
  Json node = editor_.json(id);
  node["op_type"] = op_type;
  node["inputs"] = std::move(inputs);
  node["attrs"] = std::move(attrs);
  nodes_.insert_before(id, std::move(node));
  editor_.remove(id);
}

Json RowWriter::insert(NodeId before, const std::string& wanted, const std::string& op_type,
                       Json inputs, Json attrs, const SizeShape& shape, const Shape& numbers,
                       DType dtype) {
  const std::string name = editor_.unique_name(wanted);
  nodes_.insert_before(before, {{"name", name},
                                {"op_type", op_type},
                                {"inputs", std::move(inputs)},
                                {"outputs", Json::array({tensor_mention(name, numbers, dtype)})},
                                {"attrs", std::move(attrs)}});
  added_[name] = shape;
  return tensor_mention(name, numbers, dtype, {name, 0});
}

Json RowWriter::arithmetic(NodeId before, const std::string& name, const std::string& op,
                           const Json& left, const SizeExpression& size, const SizeShape& shape,
                           const Shape& numbers) {
  Json inputs = Json::array({left});
  Json attrs = Json::object();
  const auto number = size.constant();
  if (number) {
    attrs["other"] = *number;
  } else {
    inputs.push_back(nodes_.value(size));
  }
  const std::string overload = op == "floor_divide" ? ".default" : ".Tensor";
  return insert(before, name, "aten." + op + (number ? ".Scalar" : overload), std::move(inputs),
                std::move(attrs), shape, numbers, DType::kInt64);
}

Json RowWriter::line(NodeId before, const std::string& name, const SizeExpression& size) {
  const std::int64_t count = size.evaluate(sizes_.capacities());
  return insert(before, name, "aten.arange.default", Json::array(),
                {{"end", count}, {"dtype", type_text(DType::kInt64)}}, {size}, {count},
                DType::kInt64);
}

Json RowWriter::number(const SizeExpression& size, DType dtype) {
  const Json rows = nodes_.value(size);
  return nodes_.add("size." + size.text() + "." + type_text(dtype), "aten._to_copy.default",
                    Json::array({rows}), {{"dtype", type_text(dtype)}}, {}, dtype);
}

std::string type_text(DType dtype) { return std::string(dtype_name(dtype)); }

}  // namespace npu::padding

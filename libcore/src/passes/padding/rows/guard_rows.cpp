// SPDX-License-Identifier: Apache-2.0
// What keeps an op from reading padding: indices that name valid rows only, and a mask of keys.
// O(unguarded operands).
#include <string>
#include <utility>

#include "passes/padding/rows/rewritings.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {
namespace {

void read_guarded(RowWriter& writer, NodeId id, std::int32_t operand, const Json& guarded) {
  const std::string& name = *member_text(guarded, "name");
  writer.editor().set_operand(id, index_of(operand), name, {name, 0});
}

}  // namespace

void guard_indices(RowWriter& writer, NodeId id, const NodeRule& rule) {
  const Node& node = writer.graph().node(id);
  for (const auto& [operand, size] : rule.unguarded) {
    const TensorId index = node.inputs[index_of(operand)];
    const TensorInfo& tensor = writer.graph().tensor(index);
    Json& known = writer.known("guard " + size.text() + " " + tensor.name);
    if (!known.is_null()) {
      read_guarded(writer, id, operand, known);
      continue;
    }
    const auto add = [&](const char* suffix, const char* op_type, Json inputs, Json attrs,
                         bool is_bool) {
      return writer.insert(id, tensor.name + suffix, op_type, std::move(inputs), std::move(attrs),
                           writer.shapes().of(index), tensor.shape,
                           is_bool ? DType::kBool : tensor.dtype);
    };
    const Json count = writer.nodes().value(size);
    const Json given = writer.mention(index);
    const Json is_negative =
        add(":negative", "aten.lt.Scalar", Json::array({given}), {{"other", 0}}, true);
    const Json from_end =
        add(":from_end", "aten.add.Tensor", Json::array({given, count}), Json::object(), false);
    const Json row = add(":row", "aten.where.self", Json::array({is_negative, from_end, given}),
                         Json::object(), false);
    const Json is_below = add(":below", "aten.lt.Scalar", Json::array({row}), {{"other", 0}}, true);
    const Json is_behind =
        add(":behind", "aten.ge.Tensor", Json::array({row, count}), Json::object(), true);
    const Json is_outside = add(":outside", "aten.logical_or.default",
                                Json::array({is_below, is_behind}), Json::object(), true);
    const std::int64_t capacity = size.evaluate(writer.sizes().capacities());
    known = add(":guarded", "aten.masked_fill.Scalar", Json::array({row, is_outside}),
                {{"value", capacity}}, false);
    read_guarded(writer, id, operand, known);
  }
}

void add_attention_mask(RowWriter& writer, NodeId id, const BoundNode& bound) {
  const Node& node = writer.graph().node(id);
  const TensorId key = *bound.tensor("key");
  const SizeShape& shape = writer.shapes().of(key);
  const SizeExpression& keys = shape[shape.size() - 2];
  const std::int64_t capacity = writer.graph().tensor(key).shape[shape.size() - 2];
  Shape numbers(shape.size(), 1);
  numbers.back() = capacity;
  const std::string name = "keys." + keys.text() + "." + std::to_string(numbers.size());
  SizeShape mask(shape.size(), SizeExpression(1));
  mask.back() = keys;
  writer.note_sizes(name, mask);
  const Json ones = writer.nodes().add(name, "aten.ones.default", Json::array(),
                                       {{"size", numbers}, {"dtype", type_text(DType::kBool)}},
                                       numbers, DType::kBool);
  Json inputs = Json::array();
  for (const TensorId input : node.inputs) inputs.push_back(writer.mention(input));
  inputs.push_back(ones);
  Json attrs = node.attrs();
  attrs.erase("attn_mask");
  if (Json* none = find_member(attrs, "_none_args"); none != nullptr && none->is_array()) {
    Json rest = Json::array();
    for (const Json& argument : *none) {
      if (argument != "attn_mask") rest.push_back(argument);
    }
    if (rest.empty()) {
      attrs.erase("_none_args");
    } else {
      *none = std::move(rest);
    }
  }
  writer.replace(id, node.op_type, std::move(inputs), std::move(attrs));
}

}  // namespace npu::padding

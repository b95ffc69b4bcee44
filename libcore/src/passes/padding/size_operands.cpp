// SPDX-License-Identifier: Apache-2.0
// Numbers that are sizes: x / S, places modulo S, or a tensor filled with S.
//
// At a capacity such a number would be that of all rows. As an operand it is computed of the valid
// size, like the count of a mean. O(nodes that have one).
#include "passes/padding/size_operands.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/size_nodes.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {
namespace {

constexpr std::array<std::string_view, 12> kOps = {
    "add", "sub", "mul", "div", "floor_divide", "remainder", "lt", "le", "gt", "ge", "eq", "ne"};

}  // namespace

bool can_be_operand(const Json& node, std::string_view attribute) {
  const std::string* op = member_text(node, "op_type");
  const Json* inputs = member_list(node, "inputs");
  if (op == nullptr || !op->starts_with("aten.") || inputs == nullptr) return false;
  const std::string_view name = functional_name(*op);
  if (attribute == "fill_value") return name == "full" && inputs->empty();
  if (attribute == "start") return name == "arange" && inputs->empty();
  return attribute == "other" && inputs->size() == 1 &&
         std::find(kOps.begin(), kOps.end(), name) != kOps.end();
}

void write_size_operands(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                         const SizeOperands& numbers, AddedSizes& added) {
  if (numbers.empty()) return;
  GraphEditor editor(graph);
  SizeNodes nodes(graph, sizes, editor);
  for (const auto& [name, size] : numbers) {
    const NodeId id = graph.find_node(name);
    const Node& node = graph.node(id);
    const TensorInfo& result = graph.tensor(node.outputs.front());
    const DType dtype =
        node.inputs.empty() ? result.dtype : graph.tensor(node.inputs.front()).dtype;
    Json number = nodes.value(size);
    if (dtype != DType::kInt64) {
      const std::string type(dtype_name(dtype));
      number = nodes.add("size." + size.text() + "." + type, "aten._to_copy.default",
                         Json::array({number}), {{"dtype", type}}, {}, dtype);
    }
    Json copy = editor.json(id);
    Json& attrs = *find_member(copy, "attrs");
    if (functional_name(node.op_type) == "arange") {
      // start + i * step
      const std::string line = editor.unique_name(result.name + ":rows");
      const Json* step = find_member(attrs, "step");
      nodes.insert_before(
          id,
          {{"name", line},
           {"op_type", "aten.arange.start_step"},
           {"inputs", Json::array()},
           {"outputs", Json::array({tensor_mention(line, result.shape, dtype)})},
           {"attrs",
            {{"start", 0}, {"end", result.shape[0]}, {"dtype", std::string(dtype_name(dtype))}}}});
      added[line] = shapes.of(node.outputs.front());
      Json& rows = number;
      set_member(copy, "op_type", "aten.add.Tensor");
      set_member(copy, "inputs",
                 Json::array({rows, tensor_mention(line, result.shape, dtype, {line, 0})}));
      set_member(copy, "attrs", {{"alpha", step == nullptr ? Json(1) : *step}});
    } else if (node.inputs.empty()) {
      set_member(copy, "op_type", "aten.expand.default");
      set_member(copy, "inputs", Json::array({number}));
      set_member(copy, "attrs", {{"size", result.shape}});
    } else {
      const std::string operation(functional_name(node.op_type));
      set_member(copy, "op_type",
                 "aten." + operation + (operation == "floor_divide" ? ".default" : ".Tensor"));
      attrs.erase("other");
      find_member(copy, "inputs")->push_back(std::move(number));
    }
    nodes.insert_before(id, std::move(copy));
    editor.remove(id);
  }
  nodes.commit();
}

}  // namespace npu::padding

// SPDX-License-Identifier: Apache-2.0
// Indices into a padded dimension. A negative one counts from the end of the valid rows, but the
// kernel counts from the end of the padding; and one behind the valid rows, which ends a run
// without padding, would read the padding. The guard (rewrite_rows.cpp) gives each index as one
// from the front, or one that no row has:
//   a = where(i < 0, i + n, i);  masked_fill(a, a < 0 or a >= n, capacity)
#include "passes/padding/index_guard.hpp"

#include <algorithm>
#include <string_view>

#include "ops/op_name.hpp"
#include "passes/padding/size_nodes.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {
namespace {

constexpr int kDeepest = 8;

const Node* producer_of(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kResult ? &graph.node(tensor.producer) : nullptr;
}

bool is_op(const Node* node, std::string_view name, std::size_t operands) {
  return node != nullptr && functional_name(node->op_type) == name &&
         node->inputs.size() == operands;
}

bool is_guard(const Graph& graph, const PaddedSizes& sizes, const Node& node,
              const SizeExpression& size) {
  if (!is_op(&node, "masked_fill", 2)) return false;
  const Node* either = producer_of(graph, node.inputs[1]);
  if (!is_op(either, "logical_or", 2)) return false;
  const Node* below = producer_of(graph, either->inputs[0]);
  const Node* behind = producer_of(graph, either->inputs[1]);
  if (!is_op(below, "lt", 1) || !is_op(behind, "ge", 2)) return false;
  const auto count = computed_size(graph, sizes, behind->inputs[1]);
  return below->inputs[0] == node.inputs[0] && behind->inputs[0] == node.inputs[0] &&
         member_integer(below->attrs(), "other") == 0 && count && sizes.same(*count, size) &&
         member_integer(node.attrs(), "value") == size.evaluate(sizes.capacities());
}

bool has_negative(const Json& data) {
  if (data.is_array()) return std::any_of(data.begin(), data.end(), has_negative);
  return !json_unsigned(&data).has_value();
}

// A constant of the document without a negative number; one in a file may have any.
bool is_stated_from_front(const Graph& graph, const TensorInfo& tensor) {
  const Json* constants = member_object(graph.document(), "constants");
  if (!tensor.is_constant || constants == nullptr) return false;
  const Json* entry = member_object(*constants, tensor.name);
  if (entry == nullptr) entry = member_object(*constants, tensor.weight_key);
  const Json* data = entry == nullptr ? nullptr : find_member(*entry, "data");
  return data != nullptr && !has_negative(*data);
}

}  // namespace

bool counts_from_front(const Graph& graph, const PaddedSizes& sizes, TensorId index,
                       const SizeExpression& size) {
  for (int depth = 0; depth < kDeepest; ++depth) {
    const TensorInfo& tensor = graph.tensor(index);
    if (tensor.kind == TensorKind::kWeight) return is_stated_from_front(graph, tensor);
    if (const auto known = computed_size(graph, sizes, index)) {
      return sizes.at_most(SizeExpression(0), *known);
    }
    const Node* node = producer_of(graph, index);
    if (node == nullptr) return false;
    if (is_guard(graph, sizes, *node, size)) return true;
    const std::string_view name = functional_name(node->op_type);
    if (name == "argmax" || name == "argmin") return true;
    if (name == "arange") {
      return node->inputs.empty() && member_integer(node->attrs(), "start").value_or(0) >= 0 &&
             member_integer(node->attrs(), "step").value_or(1) > 0;
    }
    constexpr std::string_view kMoving[] = {"view", "reshape", "unsqueeze", "squeeze", "expand"};
    if (node->inputs.empty() ||
        std::find(std::begin(kMoving), std::end(kMoving), name) == std::end(kMoving)) {
      return false;
    }
    index = node->inputs.front();
  }
  return false;
}

}  // namespace npu::padding

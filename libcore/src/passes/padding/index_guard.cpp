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

// The largest of the numbers in a constant's data; nothing if one is negative, or none.
std::optional<std::int64_t> largest_index(const Json& data) {
  if (!data.is_array()) {
    const auto number = json_unsigned(&data);
    if (!number || *number >= static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(*number);
  }
  std::int64_t largest = 0;
  for (const Json& each : data) {
    const auto index = largest_index(each);
    if (!index) return std::nullopt;
    largest = std::max(largest, *index);
  }
  return largest;
}

// Of a constant of the document; one in a file may have any.
std::optional<std::int64_t> largest_index(const Graph& graph, const TensorInfo& tensor) {
  const Json* constants = member_object(graph.document(), "constants");
  if (!tensor.is_constant || constants == nullptr) return std::nullopt;
  const Json* entry = member_object(*constants, tensor.name);
  if (entry == nullptr) entry = member_object(*constants, tensor.weight_key);
  const Json* data = entry == nullptr ? nullptr : find_member(*entry, "data");
  return data == nullptr ? std::nullopt : largest_index(*data);
}

// Numbers of rows from `start` on, as many as the index has elements.
bool counts_rows(const PaddedSizes& sizes, const Json& attrs, const SizeShape& shape,
                 const SizeExpression& size) {
  const std::int64_t start = member_integer(attrs, "start").value_or(0);
  const std::int64_t step = member_integer(attrs, "step").value_or(1);
  if (start < 0 || step <= 0) return false;
  SizeExpression count = 1;
  for (const SizeExpression& each : shape) count = count * each;
  return sizes.at_most((count - 1) * step + start + 1, size);
}

// A sequence from 0 or more on, and a size that is computed, which it begins at.
bool counts_rows_from(const Graph& graph, const PaddedSizes& sizes, const Node& node,
                      const SizeShape& shape, const SizeExpression& size) {
  if (!is_op(&node, "add", 2) || member_integer(node.attrs(), "alpha").value_or(1) != 1) {
    return false;
  }
  const Node* rows = producer_of(graph, node.inputs[0]);
  const auto first = computed_size(graph, sizes, node.inputs[1]);
  return is_op(rows, "arange", 0) && first && sizes.at_most(0, *first) &&
         counts_rows(sizes, rows->attrs(), shape, size - *first);
}

}  // namespace

bool is_valid_row(const Graph& graph, const PaddedSizes& sizes, TensorId index,
                  const SizeShape& shape, const SizeExpression& size) {
  for (int depth = 0; depth < kDeepest; ++depth) {
    const TensorInfo& tensor = graph.tensor(index);
    if (tensor.kind == TensorKind::kWeight) {
      const auto largest = largest_index(graph, tensor);
      return largest && sizes.at_most(SizeExpression(*largest) + 1, size);
    }
    if (const auto known = computed_size(graph, sizes, index)) {
      return sizes.at_most(0, *known) && sizes.at_most(*known + 1, size);
    }
    const Node* node = producer_of(graph, index);
    if (node == nullptr) return false;
    if (is_guard(graph, sizes, *node, size)) return true;
    if (counts_rows_from(graph, sizes, *node, shape, size)) return true;
    const std::string_view name = functional_name(node->op_type);
    if (name == "argmax" || name == "argmin") return true;
    if (name == "arange") {
      return node->inputs.empty() && counts_rows(sizes, node->attrs(), shape, size);
    }
    // Behind the valid ones it has the last of them, or 0.
    if (node->op_type == "npu.tail") {
      const std::string* fill = member_text(node->attrs(), "fill");
      if (fill == nullptr || (*fill != "edge" && *fill != "zero")) return false;
      index = node->inputs.front();
      continue;
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

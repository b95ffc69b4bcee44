// SPDX-License-Identifier: Apache-2.0
// Indices into a padded dimension. A negative one counts from the end of the valid rows, but the
// kernel counts from the end of the padding; and one behind the valid rows, which ends a run
// without padding, would read the padding. The guard (rewrite_rows.cpp) gives each index as one
// from the front, or one that no row has:
//   a = where(i < 0, i + n, i);  masked_fill(a, a < 0 or a >= n, capacity)
#include "passes/padding/index_guard.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "ops/op_name.hpp"
#include "passes/padding/size_nodes.hpp"
#include "support/checked.hpp"
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

constexpr std::string_view kMoving[] = {"view", "reshape", "unsqueeze", "squeeze", "expand"};

// The tensor that a node takes its elements from, each or some of them: behind the valid ones a
// mask has the last of them, or 0.
std::optional<TensorId> moved_operand(const Node& node) {
  if (node.inputs.empty()) return std::nullopt;
  if (node.op_type == "npu.tail") {
    const std::string* fill = member_text(node.attrs(), "fill");
    if (fill == nullptr || (*fill != "edge" && *fill != "zero")) return std::nullopt;
    return node.inputs.front();
  }
  const std::string_view name = functional_name(node.op_type);
  if (std::find(std::begin(kMoving), std::end(kMoving), name) == std::end(kMoving)) {
    return std::nullopt;
  }
  return node.inputs.front();
}

/// Bounds of index tensors at some sizes, by the nodes that make them.
class IndexBounds {
 public:
  IndexBounds(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
              const SizeBindings& at)
      : graph_(graph), sizes_(sizes), shapes_(shapes), at_(at) {}

  /// The largest that a valid element may be; nothing if it is not known, or if one may be
  /// negative.
  std::optional<std::int64_t> largest(TensorId id) { return largest(id, kDeepest); }

 private:
  static constexpr int kDeepest = 32;

  // Each once: sums of sums of one tensor with itself would take 2^depth.
  std::optional<std::int64_t> largest(TensorId id, int depth) {
    if (depth == 0) return std::nullopt;
    const auto [known, is_new] = known_.try_emplace({id, depth});
    if (is_new) known->second = find_largest(id, depth);
    return known->second;
  }

  std::optional<std::int64_t> find_largest(TensorId id, int depth) {
    if (const auto size = value_of(id)) return *size < 0 ? std::nullopt : size;
    const Node* node = producer_of(graph_, id);
    if (node == nullptr) return std::nullopt;
    const std::string_view name = functional_name(node->op_type);
    if (name == "arange") return node->inputs.empty() ? end_of(*node, id) : std::nullopt;
    if (const auto operand = moved_operand(*node)) return largest(*operand, depth - 1);
    if (node->inputs.empty() || node->inputs.size() > 2) return std::nullopt;
    const auto left = largest(node->inputs[0], depth - 1);
    // Whatever is divided, what remains has the sign of the divisor.
    if (!left && name != "remainder") return std::nullopt;
    if (name == "add" || name == "mul") {
      const auto right = other_of(*node, depth - 1);
      if (!right || member_integer(node->attrs(), "alpha").value_or(1) != 1) return std::nullopt;
      return name == "mul" ? checked_multiply(*left, *right) : checked_add(*left, *right);
    }
    if (name != "remainder" && name != "floor_divide") return std::nullopt;
    const auto divisor = node->inputs.size() == 2 ? value_of(node->inputs[1])
                                                  : member_integer(node->attrs(), "other");
    if (!divisor || *divisor < 1) return std::nullopt;
    if (name == "floor_divide") return *left / *divisor;
    return left ? std::min(*left, *divisor - 1) : *divisor - 1;
  }

  static std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
  }

  std::optional<std::int64_t> value_of(TensorId id) const {
    const auto size = computed_size(graph_, sizes_, id);
    if (!size) return std::nullopt;
    return size->evaluate(at_);
  }

  std::optional<std::int64_t> other_of(const Node& node, int depth) {
    if (node.inputs.size() == 2) return largest(node.inputs[1], depth);
    const auto other = member_integer(node.attrs(), "other");
    return other && *other >= 0 ? other : std::nullopt;
  }

  // Of a sequence from 0 or more on.
  std::optional<std::int64_t> end_of(const Node& node, TensorId id) const {
    const std::int64_t start = member_integer(node.attrs(), "start").value_or(0);
    const std::int64_t step = member_integer(node.attrs(), "step").value_or(1);
    if (start < 0 || step <= 0) return std::nullopt;
    std::int64_t count = 1;
    for (const SizeExpression& size : shapes_.of(id)) count *= size.evaluate(at_);
    const auto run = checked_multiply(std::max<std::int64_t>(count - 1, 0), step);
    return run ? checked_add(start, *run) : std::nullopt;
  }

  const Graph& graph_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  const SizeBindings& at_;
  std::map<std::pair<TensorId, int>, std::optional<std::int64_t>> known_;
};

bool is_below(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
              TensorId index, const SizeExpression& size) {
  return std::all_of(sizes.samples().begin(), sizes.samples().end(), [&](const SizeBindings& at) {
    try {
      const auto largest = IndexBounds(graph, sizes, shapes, at).largest(index);
      return largest && *largest < size.evaluate(at);
    } catch (const Error&) {
      return false;  // beyond the limits of expressions
    }
  });
}

}  // namespace

bool is_valid_row(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                  TensorId index, const SizeExpression& size) {
  if (is_below(graph, sizes, shapes, index, size)) return true;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const TensorInfo& tensor = graph.tensor(index);
    if (tensor.kind == TensorKind::kWeight) {
      const auto largest = largest_index(graph, tensor);
      return largest && sizes.at_most(SizeExpression(*largest) + 1, size);
    }
    const Node* node = producer_of(graph, index);
    if (node == nullptr) return false;
    if (is_guard(graph, sizes, *node, size)) return true;
    const std::string_view name = functional_name(node->op_type);
    if (name == "argmax" || name == "argmin") return true;
    const auto operand = moved_operand(*node);
    if (!operand) return false;
    index = *operand;
  }
  return false;
}

}  // namespace npu::padding

// SPDX-License-Identifier: Apache-2.0
// Which nodes can be computed once for all runs, if their operands are the same in all of them.
//
// An op that the catalogue does not know may do anything, so it is none of them; neither is one
// that draws random numbers, or whose result is whatever the memory held. In-place ops are
// functional in the IR, so they need no care. O(1).
#include "ops/constant_ops.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu {
namespace {

constexpr std::array<std::string_view, 3> kLikeOps{"zeros_like", "ones_like", "full_like"};
constexpr std::array<std::string_view, 3> kNewOps{"new_zeros", "new_ones", "new_full"};
// Dropout aside, which is looked at below: recurrent nets and attention have one inside.
constexpr std::array<std::string_view, 12> kNotRepeatable{
    "empty",
    "empty_like",
    "new_empty",
    "native_dropout",
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd"};

template <typename Names>
bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

OperandUse operand_use(const Node& node, std::size_t operand) {
  if (operand != 0 || !node.op_type.starts_with(kAtenPrefix)) return OperandUse::kElements;
  const std::string_view name = base_name(node.op_type);
  if (holds(kLikeOps, name)) return OperandUse::kShape;
  return holds(kNewOps, name) ? OperandUse::kDType : OperandUse::kElements;
}

bool is_repeatable(const Graph& graph, const Node& node) {
  if (node.outputs.empty()) return false;
  if (node.op_type == kGetitem) return true;
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || holds(kNotRepeatable, base_name(node.op_type))) return false;
  const bool may_drop = node.op_type.find("dropout") != std::string::npos;
  return !may_drop || is_alias_node(graph, node);
}

}  // namespace npu

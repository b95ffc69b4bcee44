// SPDX-License-Identifier: Apache-2.0
// Reads the groups that a document or a sub-IR states, and says which of them are kernels.
#include "passes/fusion/fusion_groups.hpp"

#include <algorithm>
#include <unordered_map>

#include "ir/fusion_section.hpp"
#include "ops/align_class.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/schema.hpp"
#include "passes/fusion/pattern_table.hpp"
#include "support/json_fields.hpp"

namespace npu {

std::vector<GivenGroup> given_groups(const Graph& graph, std::span<const NodeId> nodes) {
  const auto named = texts_by_group(graph, "pattern");
  std::vector<GivenGroup> groups;
  std::unordered_map<std::int64_t, std::size_t> index;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (node.fusion_group) {
      const auto [known, is_new] = index.emplace(*node.fusion_group, groups.size());
      if (!is_new) {
        groups[known->second].nodes.push_back(id);
        continue;
      }
    }
    GivenGroup& group = groups.emplace_back();
    group.id = node.fusion_group;
    group.nodes.push_back(id);
    if (const Json* pattern = find_member(node.json, "fusion_pattern");
        pattern != nullptr && pattern->is_string()) {
      group.pattern = pattern->get<std::string>();
    } else if (node.fusion_group) {
      if (const auto found = named.find(*node.fusion_group); found != named.end()) {
        group.pattern = found->second;
      }
    }
  }
  return groups;
}

bool launches_kernel(const Graph& graph, std::string_view pattern, std::span<const NodeId> nodes) {
  const auto known = fusion::find_pattern(pattern);
  if (known && fusion::is_kernelless(*known)) return false;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.op_type != kChannelNorm && !is_alias_node(graph, node);
  });
}

std::optional<SelectingMask> selecting_mask(const Graph& graph, const Node& node) {
  const bool fills = node.op_type == "aten.masked_fill.Scalar";
  const bool other_fills = node.op_type == "aten.where.ScalarOther";
  if (!fills && !other_fills && node.op_type != "aten.where.ScalarSelf") return std::nullopt;
  BindError error;
  const auto bound = BoundNode::try_bind(graph, node, find_op(node.op_type)->schema, error);
  if (!bound) return std::nullopt;
  const auto elements = bound->tensor(fills || other_fills ? "self" : "other");
  const auto truth = bound->tensor(fills ? "mask" : "condition");
  const BoundArgument* number = bound->find(fills ? "value" : other_fills ? "other" : "self");
  const auto fill = json_number(number->value);
  if (!elements || !truth || !fill || graph.tensor(*truth).dtype != DType::kBool) {
    return std::nullopt;
  }
  return SelectingMask{*elements, *truth, *fill, other_fills};
}

std::int64_t predicted_kernels(const Graph& graph, std::span<const NodeId> nodes) {
  const std::vector<GivenGroup> groups = given_groups(graph, nodes);
  return std::count_if(groups.begin(), groups.end(), [&](const GivenGroup& group) {
    return launches_kernel(graph, group.pattern, group.nodes);
  });
}

}  // namespace npu

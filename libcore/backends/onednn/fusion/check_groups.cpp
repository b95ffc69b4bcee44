// SPDX-License-Identifier: Apache-2.0
// Takes the fusion groups of a sub-IR over, and verifies them: within each group the patterns that
// this backend has kernels for are applied again, with the rules that npu-fuse has. A group that
// comes out whole is lowered by what its pattern asks for; of another one what comes out is lowered
// piece by piece, and the reason is kept for the report. Nodes of different groups never join, so
// nothing is fused here that the document does not ask for. O(nodes + edges).
#include "fusion/check_groups.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "npu/passes/fuse.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/fusion/cached_attention_form.hpp"
#include "passes/fusion/fusion_groups.hpp"

namespace npu::onednn {

namespace {

using Kind = KernelGroup::Kind;

/// What a pattern of npu-fuse is lowered as.
struct PatternRow {
  std::string_view pattern;
  Kind kind;
  VectorIsa least;
};
constexpr auto kPatternRows = std::to_array<PatternRow>({
    {"scaled-attention", Kind::kAttention, VectorIsa::kAny},
    {"cached-attention", Kind::kCachedAttention, VectorIsa::kAny},
    {"channel-gate", Kind::kSqueezeExcite, VectorIsa::kAny},
    {"written-gelu", Kind::kWrittenGelu, VectorIsa::kAny},
    {"written-rms-norm", Kind::kWrittenRmsNorm, VectorIsa::kAny},
    {"linear-siblings", Kind::kSharedInput, VectorIsa::kAny},
    {"conv-post-ops", Kind::kEpilogue, VectorIsa::kAny},
    {"product-post-ops", Kind::kEpilogue, VectorIsa::kAny},
    {"norm-relu", Kind::kEpilogue, VectorIsa::kAny},
    {"norm-pointwise", Kind::kNormPointwise, VectorIsa::kAvx2},
    {"expand-depthwise", Kind::kExpandDepthwise, VectorIsa::kAvx2},
    {"resized-pointwise", Kind::kResizedPointwise, VectorIsa::kAvx2},
    {"quantized", Kind::kQuantized, VectorIsa::kAny},
});

const PatternRow* find_row(std::string_view pattern) {
  const auto* row = std::find_if(kPatternRows.begin(), kPatternRows.end(),
                                 [&](const PatternRow& each) { return each.pattern == pattern; });
  return row == kPatternRows.end() ? nullptr : row;
}

/// A chain from its anchor on.
KernelGroup epilogue_group(const Graph& graph, std::vector<NodeId> nodes) {
  KernelGroup group{Kind::kEpilogue, std::move(nodes), {}, {}};
  TensorId value = graph.node(group.nodes.front()).outputs.front();
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    const Node& node = graph.node(group.nodes[i]);
    const auto position = std::find(node.inputs.begin(), node.inputs.end(), value);
    group.operand.push_back(static_cast<std::int32_t>(position - node.inputs.begin()));
    value = node.outputs.front();
  }
  return group;
}

KernelGroup quantized_group(const Graph& graph, const std::vector<NodeId>& nodes) {
  KernelGroup group{Kind::kQuantized, {}, {}, {}};
  if (graph.tensor(graph.node(nodes.back()).outputs.front()).dtype == DType::kInt32) {
    return {Kind::kInteger, nodes, {}, {}};
  }
  for (const NodeId id : nodes) {
    (is_dequantization(graph.node(id).op_type) ? group.dequantizes : group.nodes).push_back(id);
  }
  return group;
}

KernelGroup make_group(const Graph& graph, Kind kind, const std::vector<NodeId>& nodes) {
  if (kind == Kind::kEpilogue) return epilogue_group(graph, nodes);
  if (kind == Kind::kQuantized) return quantized_group(graph, nodes);
  KernelGroup group{kind, nodes, {}, {}};
  if (kind == Kind::kNormPointwise || kind == Kind::kExpandDepthwise) {
    const auto second = std::find_if(nodes.begin() + 1, nodes.end(), [&](NodeId id) {
      return fusion_role(graph.node(id).op_type) == FusionRole::kConv;
    });
    group.parts.push_back(epilogue_group(graph, {nodes.begin(), second}));
    group.parts.push_back(epilogue_group(graph, {second, nodes.end()}));
  }
  if (kind == Kind::kResizedPointwise) {
    auto node = nodes.begin();
    while (fusion_role(graph.node(*node).op_type) != FusionRole::kConv) {
      group.parts.push_back(epilogue_group(graph, {*node++}));
    }
    group.parts.push_back(epilogue_group(graph, {node, nodes.end()}));
  }
  return group;
}

/// Why a group does not come out whole; `first` is what is computed of it with its first node, null
/// for that node alone.
std::string refusal_of(const Graph& graph, const GivenGroup& given, const KernelGroup* first,
                       VectorIsa isa) {
  const PatternRow* row = find_row(given.pattern);
  if (row != nullptr && row->least > isa) {
    return "the kernel of '" + given.pattern + "' needs AVX2";
  }
  const std::vector<NodeId> computed =
      first == nullptr ? std::vector<NodeId>{given.nodes.front()} : first->all_nodes();
  for (const NodeId id : given.nodes) {
    const bool is_computed = std::find(computed.begin(), computed.end(), id) != computed.end();
    if (is_computed || is_alias_node(graph, graph.node(id))) continue;
    return "no kernel computes node '" + graph.node(id).name + "' with the rest of the group";
  }
  return "no kernel computes the group";
}

void find_last_uses(const Graph& graph, CheckedGroups& plan) {
  plan.last_use.assign(graph.tensors().size(), -1);
  // Who reads a dequantized tensor, or a mask over keys, may read what it is made of.
  const auto read_at = [&](TensorId id, std::int32_t position) {
    const auto note = [&](TensorId each) {
      plan.last_use[index_of(each)] = std::max(plan.last_use[index_of(each)], position);
    };
    note(id);
    NodeId producer = graph.tensor(id).producer;
    if (producer.valid() && is_opposite_length_mask(graph, producer)) {
      const TensorId mask = graph.node(producer).inputs[0];
      note(mask);
      producer = graph.tensor(mask).producer;
    }
    if (!producer.valid()) return;
    const std::string& op_type = graph.node(producer).op_type;
    if (!is_dequantization(op_type) && op_type != "npu.length_mask") return;
    for (const TensorId below : graph.node(producer).inputs) note(below);
  };
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (plan.dead[i]) continue;
    auto position = static_cast<std::int32_t>(i);
    if (plan.group_of[i] >= 0) {
      position = plan.groups[static_cast<std::size_t>(plan.group_of[i])].nodes.back().value;
    }
    for (const TensorId id : graph.nodes()[i].inputs) {
      read_at(id, position);
      if (fusion_role(graph.nodes()[i].op_type) != FusionRole::kAttention) continue;
      // An attention may read a mask of lengths in what is added to its scores.
      const auto hidden = hidden_lengths(graph, id);
      if (hidden) read_at(graph.node(hidden->lengths).outputs.front(), position);
    }
  }
  for (const KernelGroup& group : plan.groups) {
    if (group.kind != Kind::kCachedAttention) continue;
    // Also where its mask is made of the lengths in another node.
    const auto form = cached_attention_form(graph, group.nodes.back());
    if (form) read_at(graph.node(form->lengths).outputs.front(), group.nodes.back().value);
  }
  for (const TensorId id : graph.graph_outputs()) {
    read_at(id, std::numeric_limits<std::int32_t>::max());
  }
}

/// The groups that the backend computes, within those of the sub-IR.
void take_groups(const Graph& graph, VectorIsa isa, CheckedGroups& plan) {
  FuseOptions options;
  options.patterns = {"none"};
  options.within_groups = true;
  for (const PatternRow& row : kPatternRows) {
    if (row.least <= isa) options.patterns.emplace_back(row.pattern);
  }
  for (const npu::FusionGroup& group : plan_fusion(graph, options).groups) {
    const PatternRow* row = find_row(group.pattern);
    if (row == nullptr || plan.dead[index_of(group.nodes.front())]) continue;
    // An attention that is one op is lowered as that.
    if (row->kind == Kind::kCachedAttention && group.nodes.size() == 1) continue;
    for (const NodeId id : group.nodes) {
      plan.group_of[index_of(id)] = static_cast<std::int32_t>(plan.groups.size());
    }
    plan.groups.push_back(make_group(graph, row->kind, group.nodes));
  }
}

/// What the sub-IR states, and where that is not what is computed.
void note_stated(const Graph& graph, VectorIsa isa, CheckedGroups& plan) {
  std::vector<NodeId> all;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) all.push_back(id);
  for (const GivenGroup& given : given_groups(graph, all)) {
    StatedGroup stated;
    stated.pattern = given.pattern;
    stated.launches_kernel = launches_kernel(graph, given.pattern, given.nodes);
    const std::int32_t g = plan.group_of[index_of(given.nodes.front())];
    const KernelGroup* first = g < 0 ? nullptr : &plan.groups[static_cast<std::size_t>(g)];
    if (given.nodes.size() > 1 && (first == nullptr || first->all_nodes() != given.nodes)) {
      stated.refusal = refusal_of(graph, given, first, isa);
    }
    for (const NodeId id : given.nodes) {
      plan.stated_of[index_of(id)] = static_cast<std::int32_t>(plan.stated.size());
    }
    plan.stated.push_back(std::move(stated));
  }
}

}  // namespace

std::vector<NodeId> KernelGroup::all_nodes() const {
  std::vector<NodeId> result = nodes;
  result.insert(result.end(), dequantizes.begin(), dequantizes.end());
  std::sort(result.begin(), result.end());
  return result;
}

NodeId only_consumer(const Graph& graph, const CheckedGroups& plan, TensorId tensor) {
  const auto& outputs = graph.graph_outputs();
  if (std::find(outputs.begin(), outputs.end(), tensor) != outputs.end()) return {};
  NodeId only;
  for (const NodeId id : graph.tensor(tensor).consumers) {
    if (plan.dead[index_of(id)]) continue;
    if (only.valid()) return {};
    only = id;
  }
  if (!only.valid()) return {};
  const auto& inputs = graph.node(only).inputs;
  return std::count(inputs.begin(), inputs.end(), tensor) == 1 ? only : NodeId{};
}

CheckedGroups check_groups(const Graph& graph, VectorIsa isa) {
  CheckedGroups plan;
  plan.group_of.assign(graph.nodes().size(), -1);
  plan.stated_of.assign(graph.nodes().size(), -1);
  mark_dead_nodes(graph, plan);
  take_groups(graph, isa, plan);
  note_stated(graph, isa, plan);
  find_last_uses(graph, plan);
  return plan;
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Lowers the nodes of a fusion group together. A group that no kernel computes is taken back as a
// whole; what is in front of the node that was too much is tried again, or its parts are; what is
// left is lowered node by node, and the plan says why. O(nodes of the group).
#include <algorithm>
#include <utility>

#include "lowering/lowering.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

Lowered<Done> Lowering::dispatch_group(const FusionGroup& group) {
  using Kind = FusionGroup::Kind;
  compute_type_ = storage_type(dtype(node_->outputs.front()));
  switch (group.kind) {
    case Kind::kAttention:
      compute_type_ = DType::kFloat32;
      return lower_attention_group(*this, group);
    case Kind::kSharedInput:
      return lower_shared_input(*this, group);
    case Kind::kSqueezeExcite:
      return lower_squeeze_excite_group(*this, group);
    case Kind::kWrittenGelu:
      return lower_written_gelu_group(*this, group);
    case Kind::kNormPointwise:
      return lower_norm_pointwise_group(*this, group);
    case Kind::kExpandDepthwise:
      return lower_expand_depthwise_group(*this, group);
    case Kind::kResizedPointwise:
      return lower_resized_pointwise_group(*this, group);
    case Kind::kInteger:
    case Kind::kQuantized:
      compute_type_ = DType::kFloat32;
      return lower_quantized_group(*this, group);
    case Kind::kEpilogue:
      return lower_node(*node_);
  }
  return NotFused{};
}

/// Makes it the current one, which says what stands behind its anchor.
Lowered<Done> Lowering::set_group(const FusionGroup& group) {
  group_ = &group;
  node_ = &graph_->node(group.anchor());
  Lowered<Epilogue> epilogue = read_epilogue(*this, group);
  if (!epilogue) return epilogue.refusal();
  epilogue_ = *std::move(epilogue);
  return Done{};
}

void Lowering::clear_group() {
  group_ = nullptr;
  group_index_ = -1;
  moves_numbers_ = false;
  epilogue_ = {};
  front_ = {};
  allows_sum_ = true;
}

Lowered<Done> Lowering::enter_part(const FusionGroup& part) {
  Lowered<Done> done = set_group(part);
  compute_type_ = storage_type(dtype(node_->outputs.front()));
  return done;
}

Lowered<Done> Lowering::lower_with_front(const FusionGroup& part, Front front) {
  front_ = std::move(front);
  if (auto done = set_group(part); !done) return done;
  return lower_node(graph_->node(part.nodes.front()));
}

Lowered<Done> Lowering::try_group(const FusionGroup& group, bool with_sum) {
  Transaction attempt(journal_);
  group_index_ = static_cast<std::int32_t>(plan_.groups.size());
  plan_.groups.push_back(group.all_nodes());
  journal_.note([this] { plan_.groups.pop_back(); });
  allows_sum_ = with_sum;
  node_index_ = group.anchor().value;
  Lowered<Done> done = Done{};
  try {
    done = set_group(group);
    if (done) done = dispatch_group(group);
  } catch (const Error& error) {
    done = NotFused{error.message()};  // lowered one by one, the node at fault is named
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    done = NotFused{std::string("oneDNN has no primitive for it: ") + error.message};
  }
  clear_group();
  if (done) {
    attempt.keep();
  } else {
    choice_ = {};
  }
  return done;
}

void Lowering::lower_group(const FusionGroup& group) {
  for (const NodeId id : group.dequantizes) {
    node_index_ = id.value;
    lower_alone(graph_->node(id));
  }
  lower_group_nodes(group);
}

void Lowering::lower_group_nodes(const FusionGroup& group) {
  Lowered<Done> done = try_group(group, true);
  if (!done && group.kind == FusionGroup::Kind::kEpilogue) done = try_group(group, false);
  if (done) return;
  const std::int32_t stated = fusions_.stated_of[index_of(group.nodes.front())];
  std::string& known = fusions_.stated[static_cast<std::size_t>(stated)].refusal;
  if (known.empty()) known = done.refusal().reason;
  const auto too_much =
      std::find(group.nodes.begin() + 1, group.nodes.end(), done.refusal().too_much);
  if (too_much == group.nodes.end() || !group.parts.empty()) return lower_pieces(group);
  lower_front(group, static_cast<std::size_t>(too_much - group.nodes.begin()));
}

/// The first nodes as a group, the others alone.
void Lowering::lower_front(const FusionGroup& group, std::size_t count) {
  FusionGroup front = group;
  front.dequantizes.clear();
  front.nodes.resize(count);
  front.operand.resize(std::min(front.operand.size(), count - 1));
  const std::int32_t now = std::exchange(position_, std::min(position_, front.nodes.back().value));
  lower_group_nodes(front);
  position_ = now;
  lower_one_by_one(std::span(group.nodes).subspan(count));
}

/// A group that no kernel computes: its parts, else its nodes.
void Lowering::lower_pieces(const FusionGroup& group) {
  if (group.parts.empty()) return lower_one_by_one(group.nodes);
  const std::int32_t now = position_;
  for (const FusionGroup& part : group.parts) {
    position_ = std::min(now, part.nodes.back().value);
    node_index_ = part.nodes.back().value;
    lower_group(part);
  }
  position_ = now;
}

void Lowering::lower_one_by_one(std::span<const NodeId> nodes) {
  // What a later node of the group reads must not be overwritten by an earlier one.
  const std::int32_t now = position_;
  for (const NodeId id : nodes) {
    position_ = std::min(now, id.value);
    node_index_ = id.value;
    lower_alone(graph_->node(id));
  }
  position_ = now;
}

/// One row for each kernel more than the groups of the sub-IR are.
void Lowering::note_splits() {
  std::vector<bool> counted(fusions_.stated.size(), false);
  for (const Step& step : plan_.steps) {
    if (step.kind == KernelKind::kReorder || step.node < 0) continue;
    const auto stated =
        static_cast<std::size_t>(fusions_.stated_of[static_cast<std::size_t>(step.node)]);
    const StatedGroup& group = fusions_.stated[stated];
    if (!counted[stated]) {
      counted[stated] = true;
      if (group.launches_kernel) continue;
    }
    plan_.splits.push_back(
        {group.pattern, NodeId{step.node},
         group.refusal.empty() ? "its kernels are more than one" : group.refusal});
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Lowers the nodes of a fusion group together. A group that no kernel computes is taken back as a
// whole; what is in front of the node that was too much is tried again, or its parts are; what is
// left is lowered node by node, and the plan says why. O(nodes of the group).
#include <algorithm>
#include <utility>

#include "lowering/engine/graph_walk.hpp"
#include "lowering/engine/op_table.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

Lowered<Done> GraphWalk::dispatch_group(GroupContext context) {
  const GroupFunction lower = find_group_lowering(context.group->kind);
  if (lower == nullptr) return lower_node(std::move(context), *node_);
  return lower(*this, context);
}

Lowered<Done> GraphWalk::try_group(const KernelGroup& group, bool with_sum) {
  Transaction attempt(journal_);
  group_index_ = static_cast<std::int32_t>(plan_.groups.size());
  plan_.groups.push_back(group.all_nodes());
  journal_.note([this] { plan_.groups.pop_back(); });
  node_index_ = group.anchor().value;
  Lowered<Done> done = Done{};
  try {
    Lowered<GroupContext> context = enter(group);
    if (context) {
      context->allows_sum = with_sum;
      done = dispatch_group(*std::move(context));
    } else {
      done = context.refusal();
    }
  } catch (const Error& error) {
    done = NotFused{error.message()};  // lowered one by one, the node at fault is named
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    done = NotFused{std::string("oneDNN has no primitive for it: ") + error.message};
  }
  group_index_ = -1;
  if (done) attempt.keep();
  return done;
}

void GraphWalk::lower_group(const KernelGroup& group) {
  for (const NodeId id : group.dequantizes) {
    node_index_ = id.value;
    lower_alone(graph_->node(id));
  }
  lower_group_nodes(group);
}

void GraphWalk::lower_group_nodes(const KernelGroup& group) {
  Lowered<Done> done = try_group(group, true);
  if (!done && group.kind == KernelGroup::Kind::kEpilogue) done = try_group(group, false);
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
void GraphWalk::lower_front(const KernelGroup& group, std::size_t count) {
  KernelGroup front = group;
  front.dequantizes.clear();
  front.nodes.resize(count);
  front.operand.resize(std::min(front.operand.size(), count - 1));
  const std::int32_t now = std::exchange(position_, std::min(position_, front.nodes.back().value));
  lower_group_nodes(front);
  position_ = now;
  lower_one_by_one(std::span(group.nodes).subspan(count));
}

/// A group that no kernel computes: its parts, else its nodes.
void GraphWalk::lower_pieces(const KernelGroup& group) {
  if (group.parts.empty()) return lower_one_by_one(group.nodes);
  const std::int32_t now = position_;
  for (const KernelGroup& part : group.parts) {
    position_ = std::min(now, part.nodes.back().value);
    node_index_ = part.nodes.back().value;
    lower_group(part);
  }
  position_ = now;
}

void GraphWalk::lower_one_by_one(std::span<const NodeId> nodes) {
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
void GraphWalk::note_splits() {
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

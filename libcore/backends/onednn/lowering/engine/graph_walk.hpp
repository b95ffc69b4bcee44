// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lowering/engine/lowering.hpp"

namespace npu::onednn {

/// Lowers the nodes of one graph in their order, once.
class GraphWalk final : private Lowering {
 public:
  using Lowering::Lowering;
  /// See lower_graph.
  Plan run(const Checkpoint& checkpoint, const LayoutNames& boundaries);

 private:
  void bind_inputs(const LayoutNames& boundaries);
  void bind_outputs(const LayoutNames& boundaries);
  void lower_alone(const Node& node);
  void lower_group(const KernelGroup& group);
  void lower_group_nodes(const KernelGroup& group);
  Lowered<Done> try_group(const KernelGroup& group, bool with_sum);
  Lowered<Done> dispatch_group(GroupContext context);
  void lower_front(const KernelGroup& group, std::size_t count);
  void lower_pieces(const KernelGroup& group);
  void lower_one_by_one(std::span<const NodeId> nodes);
  void note_splits();
  /// An operand in a part of a buffer as one in the buffer itself.
  Operand resolved(Operand operand) const;
  void resolve_parts();
  void collect_constants();
  void collect_taps();
  void bind_aliases();
  void write_at_the_end(std::size_t number, BufferId output);
};

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ir/device_reason.hpp"
#include "npu/ir/graph.hpp"
#include "npu/passes/tag.hpp"
#include "passes/tag/ask_backends.hpp"
#include "target/support_check.hpp"

namespace npu {

/// Where a node runs, and why; null where no device runs it.
struct DeviceTag {
  const Device* device = nullptr;
  DeviceReason reason = {};
};

/// Chooses the device of every node by a target's table, what was asked for by hand, and what
/// backends said. Refers to what it is given.
class DeviceChooser {
 public:
  /// `answers` may be null. Faults of the graph go to `diagnostics`.
  DeviceChooser(const Graph& graph, const Target& target, const TagOptions& options,
                Diagnostics& diagnostics, const BackendAnswers* answers = nullptr);

  /// By node, whatever the faults.
  std::vector<const Device*> devices();
  /// By node; empty if there is an error. Warns of rules that match no node.
  std::vector<DeviceTag> tags();
  /// The device on which a rule or a kept tag places the node; null if none does.
  const Device* placed_by_hand(const Node& node);

 private:
  void choose_all();
  void check_rules();
  std::optional<DeviceTag> requested(const Node& node);
  NodeId producer(const Node& node) const;
  DeviceTag choose(NodeId id);
  DeviceTag check_wish(NodeId id, DeviceTag wish);
  bool is_at_border(NodeId id, const Device& device) const;
  bool may_run(NodeId id, const Device& device);
  SupportResult check_node(NodeId id, const Device& device);
  SupportResult check(NodeId id, const Device& device);

  const Graph& graph_;
  const Target& target_;
  const TagOptions& options_;
  Diagnostics& diagnostics_;
  const BackendAnswers* answers_;
  std::set<const Device*> integer_devices_;  ///< that pass and are passed integers alone
  std::vector<DeviceTag> tags_;
  std::set<std::size_t> used_;  ///< rules that match a node
};

}  // namespace npu

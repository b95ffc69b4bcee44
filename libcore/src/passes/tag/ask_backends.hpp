// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "npu/ir/graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "support/digest.hpp"

namespace npu {

/// What the backends of a target's devices say of the nodes that the target allows on them. They
/// can only take away.
class BackendAnswers {
 public:
  /// Opens every device whose backend has the feature "check"; those that run any op are not asked.
  /// Throws Error kUnsupported if a backend is missing, or if none of them can be asked.
  BackendAnswers(const Graph& graph, const Target& target);

  /// Asks each device about all nodes that the target allows on it.
  void ask_nodes();
  /// Asks each device about every connected part of the nodes that are to be on it, by node: null
  /// for none.
  void ask_parts(const std::vector<const Device*>& devices);

  /// Why a device does not take a node; empty if it does, or was not asked.
  const std::string& refusal(const Device& device, NodeId node) const;

  /// A description of the target with what was asked and of whom, in "asked" of each device, and
  /// what its parts take by the backend's estimates.
  Json record(Json target) const;

 private:
  struct Asked {
    const Device* device;
    std::shared_ptr<DeviceInstance> instance;
    std::vector<std::string> refusals;  // by node
    std::unique_ptr<Digest> questions;
    CostEstimate costs = {};  // of all parts
  };
  std::vector<NodeId> candidates(const Device& device) const;
  CostEstimate ask(Asked& asked, const std::vector<NodeId>& nodes);

  const Graph& graph_;
  std::vector<Asked> asked_;
};

/// Asks the backends of a target about single nodes, and then about what would be compiled
/// together. Throws as BackendAnswers does.
std::unique_ptr<BackendAnswers> ask_backends(const Graph& graph, const Target& target,
                                             const TagOptions& options);

}  // namespace npu

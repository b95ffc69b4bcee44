// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// Lists of nodes, concatenated in one array.
class NodeLists {
 public:
  std::size_t size() const noexcept { return offsets_.size() - 1; }
  std::span<const NodeId> operator[](std::size_t index) const {
    return {nodes_.data() + offsets_[index], nodes_.data() + offsets_[index + 1]};
  }
  void push_back(std::span<const NodeId> list) {
    nodes_.insert(nodes_.end(), list.begin(), list.end());
    offsets_.push_back(nodes_.size());
  }
  /// Element i goes to list lists[i]; `count` lists.
  void distribute(const std::vector<std::int32_t>& lists, std::size_t count) {
    offsets_.assign(count + 1, 0);
    for (const std::int32_t list : lists) ++offsets_[static_cast<std::size_t>(list) + 1];
    for (std::size_t i = 0; i < count; ++i) offsets_[i + 1] += offsets_[i];
    nodes_.resize(lists.size());
    std::vector<std::size_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::size_t n = 0; n < lists.size(); ++n) {
      nodes_[next[static_cast<std::size_t>(lists[n])]++] = NodeId{static_cast<std::int32_t>(n)};
    }
  }

 private:
  std::vector<std::size_t> offsets_{0};
  std::vector<NodeId> nodes_;
};

/// The graph with every fusion group contracted to one fused node,
/// which strategies place as a unit.
struct FusedGraph {
  NodeLists members;                            ///< by fused node, in list order
  std::vector<std::int32_t> device;             ///< by fused node, index into device_names
  std::vector<std::string> device_names;        ///< in order of first use
  std::vector<std::int32_t> predecessor_count;  ///< distinct predecessors
  std::vector<std::int32_t> order;              ///< a topological order of the fused nodes
  std::vector<std::int32_t> fused_node_of;      ///< by node

  std::size_t size() const noexcept { return members.size(); }
  std::span<const std::int32_t> successors(std::int32_t fused_node) const {
    const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(fused_node)]);
    const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(fused_node) + 1]);
    return {targets.data() + begin, end - begin};
  }

  std::vector<std::int64_t> offsets;  ///< CSR of distinct successors
  std::vector<std::int32_t> targets;
};

/// Throws Error kInvalidGraph if a node has no device, a group has two, or a group is not convex.
FusedGraph build_fused_graph(const Graph& graph);

/// The subgraph of the fused nodes in `part`, which are in topological order: node i of it is
/// part[i], and edges that leave the part are dropped. `local` is scratch space with one entry per
/// fused node of `fused`: all are -1 before and after the call.
FusedGraph induced_fused_graph(const FusedGraph& fused, const std::vector<std::int32_t>& part,
                               std::vector<std::int32_t>& local);

}  // namespace npu

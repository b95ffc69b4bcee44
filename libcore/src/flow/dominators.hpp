// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace npu {

/// The tree of post-dominators of a directed acyclic graph that may have several sinks: a dominates
/// b if every path from b to a sink runs through a. A virtual root is above all sinks, so that
/// every vertex has a parent; its number is the number of vertices.
class DominatorTree {
 public:
  std::size_t vertex_count() const noexcept { return parent_.size() - 1; }
  std::int32_t virtual_root() const noexcept { return static_cast<std::int32_t>(vertex_count()); }
  /// The immediate dominator; virtual_root() for a sink or if there is none.
  std::int32_t parent(std::int32_t vertex) const {
    return parent_[static_cast<std::size_t>(vertex)];
  }
  /// Number of dominators above the vertex, the virtual root included; 0 for the virtual root.
  std::int32_t depth(std::int32_t vertex) const { return depth_[static_cast<std::size_t>(vertex)]; }
  /// The nearest vertex that dominates both; may be virtual_root(). O(log vertices).
  std::int32_t nearest_common(std::int32_t a, std::int32_t b) const;

 private:
  friend class DominatorBuilder;
  std::int32_t at_depth(std::int32_t vertex, std::int32_t depth) const;

  std::vector<std::int32_t> parent_;
  std::vector<std::int32_t> depth_;
  std::vector<std::int32_t> jump_;  // a far ancestor, see dominators.cpp
};

/// Successors of vertex v are targets[offsets[v] .. offsets[v + 1]); repeated ones do no harm.
/// Sinks are the vertices without successors. Throws Error kInvalidGraph if there is a cycle.
/// O((vertices + arcs) log vertices).
DominatorTree find_post_dominators(std::span<const std::int64_t> offsets,
                                   std::span<const std::int32_t> targets);

}  // namespace npu

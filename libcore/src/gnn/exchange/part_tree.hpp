// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu::gnn {

/// The binary tree over the parts of a plan, in which sums over edges add up: its leaves are the
/// parts in a given order, and every node halves its leaves, the first half being the longer one.
class PartTree {
 public:
  /// Leaves begin .. end - 1: a node.
  struct Node {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t size() const noexcept { return end - begin; }
    Node first() const noexcept { return {begin, middle()}; }
    Node second() const noexcept { return {middle(), end}; }
    bool contains(std::int32_t place) const noexcept { return place >= begin && place < end; }
    bool contains(const Node& node) const noexcept {
      return node.begin >= begin && node.end <= end;
    }
    bool operator==(const Node&) const = default;

   private:
    std::int32_t middle() const noexcept { return begin + (size() + 1) / 2; }
  };

  /// `order`: every part once.
  explicit PartTree(const std::vector<std::int32_t>& order);

  Node root() const noexcept { return {0, static_cast<std::int32_t>(place_.size())}; }
  std::int32_t place(std::int32_t part) const { return place_[static_cast<std::size_t>(part)]; }
  /// Whether these leaves are those of a node.
  bool has(const Node& leaves) const noexcept;
  /// How many nodes above two different leaves are above both, the root included: the leaf at
  /// `other` hangs from the sibling of the node at that depth above `place`.
  std::int32_t common_depth(std::int32_t place, std::int32_t other) const noexcept;
  /// That sibling.
  Node sibling(std::int32_t place, std::int32_t depth) const noexcept;

 private:
  std::vector<std::int32_t> place_;  // by part
};

/// An order of the parts in which those are close that would send each other many rows: in rounds,
/// groups between which the most rows cross become one group; then the halves of every node of the
/// tree trade parts. O(edges + parts^2 log parts log parts), some hundred times parts^2 for the
/// trades, and 4 bytes for each node.
std::vector<std::int32_t> order_parts(const CsrGraph& in_edges,
                                      const std::vector<std::int32_t>& part_of,
                                      std::int32_t part_count);

/// `count` nodes of the tree that hold every leaf once, from left to right: the heaviest one is
/// halved until there are as many. `weights` by place.
std::vector<PartTree::Node> split_tree(const PartTree& tree,
                                       const std::vector<std::int64_t>& weights,
                                       std::int32_t count);

}  // namespace npu::gnn

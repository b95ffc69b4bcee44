// SPDX-License-Identifier: Apache-2.0
// Post-dominators of graphs without cycles: dominators of the graph with all arcs turned round.
//
// In topological order a vertex's immediate dominator is the nearest common ancestor, in the tree
// built so far, of its predecessors, so one pass is enough. Ancestors are found over jump pointers
// (Myers, "An applicative random-access stack", 1983): O(log vertices) per query, one word per
// vertex. Boost.Graph's Lengauer-Tarjan is not used: it handles cycles as well, but recurses as
// deep as a branch is long, and a chain of 100,000 ops beside a join overflows the stack.
#include "flow/dominators.hpp"

#include <algorithm>

#include "npu/support/error.hpp"

namespace npu {
namespace {

std::size_t vertex_index(std::int32_t value) { return static_cast<std::size_t>(value); }

struct Adjacency {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> targets;
};

Adjacency reversed(std::span<const std::int64_t> offsets, std::span<const std::int32_t> targets) {
  const std::size_t vertices = offsets.size() - 1;
  Adjacency result{std::vector<std::int64_t>(vertices + 1, 0),
                   std::vector<std::int32_t>(targets.size())};
  for (const std::int32_t target : targets) ++result.offsets[vertex_index(target) + 1];
  for (std::size_t v = 0; v < vertices; ++v) result.offsets[v + 1] += result.offsets[v];
  std::vector<std::int64_t> next(result.offsets.begin(), result.offsets.end() - 1);
  for (std::size_t v = 0; v < vertices; ++v) {
    for (std::int64_t a = offsets[v]; a < offsets[v + 1]; ++a) {
      const std::int32_t target = targets[static_cast<std::size_t>(a)];
      result.targets[static_cast<std::size_t>(next[vertex_index(target)]++)] =
          static_cast<std::int32_t>(v);
    }
  }
  return result;
}

}  // namespace

std::int32_t DominatorTree::at_depth(std::int32_t vertex, std::int32_t wanted) const {
  while (depth(vertex) > wanted) {
    const std::int32_t far = jump_[vertex_index(vertex)];
    vertex = depth(far) >= wanted ? far : parent(vertex);
  }
  return vertex;
}

std::int32_t DominatorTree::nearest_common(std::int32_t a, std::int32_t b) const {
  const std::int32_t level = std::min(depth(a), depth(b));
  a = at_depth(a, level);
  b = at_depth(b, level);
  while (a != b) {  // jumps of two vertices at one depth are equally long
    const bool far = jump_[vertex_index(a)] != jump_[vertex_index(b)];
    a = far ? jump_[vertex_index(a)] : parent(a);
    b = far ? jump_[vertex_index(b)] : parent(b);
  }
  return a;
}

/// Gives each vertex its parent, in topological order.
class DominatorBuilder {
 public:
  DominatorTree build(std::span<const std::int64_t> offsets, std::span<const std::int32_t> targets,
                      std::span<const std::int64_t> back_offsets,
                      std::span<const std::int32_t> back_targets) {
    const std::size_t vertices = offsets.size() - 1;
    const auto root = static_cast<std::int32_t>(vertices);
    tree_.parent_.assign(vertices + 1, root);
    tree_.depth_.assign(vertices + 1, 0);
    tree_.jump_.assign(vertices + 1, root);
    std::vector<std::int64_t> waiting(vertices);
    std::vector<std::int32_t> order;
    order.reserve(vertices);
    for (std::size_t v = 0; v < vertices; ++v) {
      waiting[v] = back_offsets[v + 1] - back_offsets[v];
      if (waiting[v] == 0) order.push_back(static_cast<std::int32_t>(v));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t v = vertex_index(order[i]);
      place(order[i],
            back_targets.subspan(static_cast<std::size_t>(back_offsets[v]),
                                 static_cast<std::size_t>(back_offsets[v + 1] - back_offsets[v])));
      for (std::int64_t a = offsets[v]; a < offsets[v + 1]; ++a) {
        const std::int32_t next = targets[static_cast<std::size_t>(a)];
        if (--waiting[vertex_index(next)] == 0) order.push_back(next);
      }
    }
    if (order.size() != vertices) {
      throw Error(ErrorCode::kInvalidGraph, "dominators of a graph with a cycle");
    }
    return std::move(tree_);
  }

 private:
  void place(std::int32_t vertex, std::span<const std::int32_t> predecessors) {
    std::int32_t parent = tree_.virtual_root();
    if (!predecessors.empty()) {
      parent = predecessors.front();
      for (const std::int32_t other : predecessors) parent = tree_.nearest_common(parent, other);
    }
    const std::int32_t far = tree_.jump_[vertex_index(parent)];
    const std::int32_t farther = tree_.jump_[vertex_index(far)];
    const auto depth = [&](std::int32_t v) { return tree_.depth(v); };
    tree_.parent_[vertex_index(vertex)] = parent;
    tree_.depth_[vertex_index(vertex)] = depth(parent) + 1;
    tree_.jump_[vertex_index(vertex)] =
        depth(parent) - depth(far) == depth(far) - depth(farther) ? farther : parent;
  }

  DominatorTree tree_;
};

DominatorTree find_post_dominators(std::span<const std::int64_t> offsets,
                                   std::span<const std::int32_t> targets) {
  const Adjacency back = reversed(offsets, targets);
  return DominatorBuilder().build(back.offsets, back.targets, offsets, targets);
}

}  // namespace npu

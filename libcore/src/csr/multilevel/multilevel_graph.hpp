// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "csr/multilevel/cluster_nodes.hpp"
#include "csr/multilevel/refine_parts.hpp"

namespace npu {

/// A graph and smaller ones that resemble it, each made of clusters of nodes of the one before.
class MultilevelGraph {
 public:
  /// Coarsens a graph, which has to outlive this, for cuts into `most_parts` parts or fewer. The
  /// same on any number of threads. O(nodes + entries) for each level.
  MultilevelGraph(const CsrGraph& graph, std::int32_t most_parts, std::size_t threads);

  const CsrGraph& coarsest() const noexcept {
    return levels_.empty() ? graph_ : levels_.back().graph;
  }
  std::size_t level_count() const noexcept { return levels_.size() + 1; }

  /// Parts of the whole graph from those of the coarsest: projected and refined level by level.
  std::vector<std::int32_t> refined(std::vector<std::int32_t> part_of, const PartLimits& limits,
                                    std::size_t threads) const;

 private:
  struct Level {
    std::vector<std::int32_t> cluster_of;  // by node of the finer graph
    CsrGraph graph;
  };

  const CsrGraph& graph_;
  std::vector<Level> levels_;
};

}  // namespace npu

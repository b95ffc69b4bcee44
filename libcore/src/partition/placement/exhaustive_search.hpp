// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "partition/placement/placement_problem.hpp"

namespace npu {

/// Depth-first search over the items; a branch ends when its cost reaches the best one.
class ExhaustiveSearch {
 public:
  /// Looks at a placement and returns the cost that the next one has to beat.
  using Consider = std::function<std::int64_t(const Assignment&)>;

  explicit ExhaustiveSearch(const PlacementProblem& problem);

  /// Calls `consider` with every placement that could be better than `best`; `consider` returns the
  /// new value of `best`. False if the search gave up.
  bool run(std::int64_t best, const Consider& consider);

 private:
  bool visit(std::size_t depth, std::int64_t cost, const Consider& consider);

  const PlacementProblem& problem_;
  std::vector<std::int32_t> order_;
  std::vector<std::vector<std::size_t>> complete_at_;  // tensors, by depth of their last item
  std::vector<std::int64_t> rest_;                     // least cost of the items not placed yet
  std::int64_t least_launch_ = 0;
  Assignment assignment_;
  std::int64_t best_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "partition/placement/placement_problem.hpp"

namespace npu {

/// Depth first over the items, cut off where what is known costs as much as the best.
class ExhaustiveSearch {
 public:
  /// Looks at a placement and returns the cost that the next one has to beat.
  using Consider = std::function<std::int64_t(const Assignment&)>;

  explicit ExhaustiveSearch(const PlacementProblem& problem);

  /// Calls `consider` with every placement that could be better than `best`, which it returns the
  /// new value of. False if it gave up.
  bool run(std::int64_t best, const Consider& consider);

 private:
  bool visit(std::size_t depth, std::int64_t cost, const Consider& consider);

  const PlacementProblem& problem_;
  std::vector<std::int32_t> order_;
  std::vector<std::vector<std::size_t>> complete_at_;  // tensors, by depth of their last item
  std::vector<std::int64_t> rest_;                     // least cost of what is not placed yet
  std::int64_t least_launch_ = 0;
  Assignment assignment_;
  std::int64_t best_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace npu

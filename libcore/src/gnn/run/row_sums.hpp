// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gnn/plan/part_tree.hpp"

namespace npu::gnn {

/// Sums of rows, each along the tree over the parts of a plan: the rows of one part add up in their
/// order, then what comes from the two halves of a node of the tree. A sum of one row is that row.
class RowSums {
 public:
  struct Term {
    std::int32_t place = 0;  ///< in the tree; of a sum that another rank made: its first place
    std::int32_t row = 0;
  };

  /// Terms in any order of places; those of one place stay in their order.
  void add(PartTree::Node node, std::vector<Term> terms);
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(nodes_.size()); }

  /// Where the rows lie: those below `own_count` in `own`, the others, from 0, in `received`.
  struct Rows {
    const float* own = nullptr;
    std::int64_t own_count = 0;
    const float* received = nullptr;
    std::int64_t width = 0;

    const float* at(std::int32_t row) const noexcept {
      return row < own_count ? own + row * width : received + (row - own_count) * width;
    }
  };
  /// Writes all sums, one after another. The result does not depend on `threads` (0: all cores).
  void compute(const Rows& rows, float* out, std::int32_t threads) const;

 private:
  std::vector<PartTree::Node> nodes_;
  std::vector<std::int64_t> offsets_{0};
  std::vector<Term> terms_;
};

}  // namespace npu::gnn

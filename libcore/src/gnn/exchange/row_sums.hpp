// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gnn/exchange/part_tree.hpp"

namespace npu::gnn {

/// Sums of rows, each along the tree over the parts of a plan: the rows of one part add up in their
/// order, then what comes from the two halves of a node of the tree. A sum of one row is that row,
/// times its factor. A sum may be the largest of each column instead.
class RowSums {
 public:
  struct Term {
    std::int32_t place = 0;  ///< in the tree; of a sum that another rank made: its first place
    std::int32_t row = 0;
  };

  /// From now on the largest of each column is taken; NaN is larger than all numbers.
  void take_largest() noexcept { is_max_ = true; }
  /// Terms in any order of places; those of one place stay in their order.
  void add(PartTree::Node node, std::vector<Term> terms);
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(nodes_.size()); }

  /// Where the rows lie: those below `own_count` in `own`, the others, from 0, in `received`.
  struct Rows {
    const float* own = nullptr;
    std::int64_t own_count = 0;
    const float* received = nullptr;
    std::int64_t width = 0;
    const float* factors = nullptr;  ///< of the rows of `own` in sums; null: 1
    /// Where the row is in `own`, by row; null: at its own place.
    const std::int64_t* place = nullptr;

    const float* at(std::int32_t row) const noexcept {
      if (row >= own_count) return received + (row - own_count) * width;
      return own + (place == nullptr ? row : place[row]) * width;
    }
  };
  /// Which sums are computed, the others staying as they are: those from `first` to before `last`
  /// (-1: all), and if `group` is not null of them those i with group[i] == wanted.
  struct Choice {
    const char* group = nullptr;
    char wanted = 0;
    std::int64_t first = 0;
    std::int64_t last = -1;
  };
  /// Writes sums at their places, one after another from that of `first` on. The result does not
  /// depend on `threads` (0: all cores).
  void compute(const Rows& rows, float* out, std::int32_t threads) const;
  void compute(const Rows& rows, float* out, std::int32_t threads, const Choice& choice) const;

  /// What a sum reads.
  std::span<const Term> terms(std::int64_t sum) const noexcept {
    const auto begin = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(sum)]);
    const auto end = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(sum) + 1]);
    return {terms_.data() + begin, end - begin};
  }
  /// Gives back what was kept for more terms.
  void shrink();
  /// By sum: 1 if it reads a row from `row` on. O(terms).
  std::vector<char> reads_from(std::int64_t row) const;

 private:
  std::vector<PartTree::Node> nodes_;
  std::vector<std::int64_t> offsets_{0};
  std::vector<Term> terms_;
  bool is_max_ = false;
};

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

/// The number of elements.
inline std::int64_t product(const std::vector<std::int64_t>& values) {
  std::int64_t result = 1;
  for (const std::int64_t value : values) result *= value;
  return result;
}

/// Drops extents of 1, orders dimensions by the first stride list (largest first) and joins
/// neighbours that every list visits in one run. At least one dimension is left.
void simplify_space(std::vector<std::int64_t>& extents,
                    const std::vector<std::vector<std::int64_t>*>& lists);

/// Strides of several tensors in one iteration space.
template <std::size_t kLists>
using StrideLists = const std::vector<std::int64_t>* const (&)[kLists];

/// The rows of an iteration space one after the other: every dimension but the last `inner` ones
/// counts rows. Only the first row costs divisions.
template <std::size_t kLists>
class RowWalk {
 public:
  RowWalk(std::int64_t row, const std::vector<std::int64_t>& extents, std::size_t inner,
          StrideLists<kLists> lists)
      : extents_(&extents), count_(extents.size() - inner) {
    for (std::size_t k = 0; k < kLists; ++k) lists_[k] = lists[k];
    for (std::size_t i = count_; i > 0; --i) {
      index_[i - 1] = row % extents[i - 1];
      row /= extents[i - 1];
      move(i - 1, index_[i - 1]);
    }
  }

  /// Where the row begins in each tensor.
  const std::int64_t (&offsets() const noexcept)[kLists] { return offsets_; }

  void advance() noexcept {
    for (std::size_t i = count_; i > 0; --i) {
      move(i - 1, 1);
      if (++index_[i - 1] < (*extents_)[i - 1]) return;
      move(i - 1, -index_[i - 1]);
      index_[i - 1] = 0;
    }
  }

 private:
  void move(std::size_t dimension, std::int64_t steps) noexcept {
    for (std::size_t k = 0; k < kLists; ++k) offsets_[k] += steps * (*lists_[k])[dimension];
  }

  const std::vector<std::int64_t>* extents_;
  const std::vector<std::int64_t>* lists_[kLists] = {};
  std::size_t count_;  ///< of dimensions that count rows
  std::int64_t index_[kMostDimensions] = {};
  std::int64_t offsets_[kLists] = {};
};

constexpr std::int64_t kPieceElements = 8192;  ///< of work for a thread, where rows are short

/// Calls body(offsets) for every row of a space, in pieces of many short rows.
template <std::size_t kLists, typename Body>
void share_rows(const std::vector<std::int64_t>& extents, std::size_t inner,
                StrideLists<kLists> lists, const Body& body) {
  const std::int64_t total = product(extents);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + inner < extents.size(); ++i) rows *= extents[i];
  const std::int64_t length = std::max<std::int64_t>(1, kPieceElements * rows / total);
  share_range(rows, length, threads_for(total >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                RowWalk<kLists> walk(first, extents, inner, lists);
                for (std::int64_t row = first; row < last; ++row) {
                  body(walk.offsets());
                  walk.advance();
                }
              });
}

/// Calls body(count, offsets) for every row of a space, one long row in pieces, on all threads.
template <std::size_t kLists, typename Body>
void for_each_row(const std::vector<std::int64_t>& extents, StrideLists<kLists> lists,
                  const Body& body) {
  const std::int64_t width = extents.back();
  if (product(extents) != width) {
    share_rows<kLists>(extents, 1, lists,
                       [&](const std::int64_t(&offsets)[kLists]) { body(width, offsets); });
    return;
  }
  share_range(width, kPieceElements, threads_for(width >= kParallelElements),
              [&](std::int64_t begin, std::int64_t end) {
                std::int64_t offsets[kLists];
                for (std::size_t k = 0; k < kLists; ++k) offsets[k] = begin * lists[k]->back();
                body(end - begin, offsets);
              });
}

}  // namespace npu::onednn

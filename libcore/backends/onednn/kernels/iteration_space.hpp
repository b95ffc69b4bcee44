// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

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

/// Offsets of one row of an iteration space, given the row's number: every dimension but the last
/// `inner` ones counts rows.
template <std::size_t kLists>
void row_offsets(std::int64_t row, const std::vector<std::int64_t>& extents, std::size_t inner,
                 const std::vector<std::int64_t>* const (&lists)[kLists],
                 std::int64_t (&offsets)[kLists]) {
  for (auto& offset : offsets) offset = 0;
  for (std::size_t i = extents.size() - inner; i > 0; --i) {
    const std::int64_t index = row % extents[i - 1];
    row /= extents[i - 1];
    for (std::size_t k = 0; k < kLists; ++k) offsets[k] += index * (*lists[k])[i - 1];
  }
}

/// Calls body(count, offsets) for every row of a space, one long row in pieces, on all threads.
template <std::size_t kLists, typename Body>
void for_each_row(const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>* const (&lists)[kLists], const Body& body) {
  const std::int64_t width = extents.back();
  const std::int64_t total = product(extents);
  const std::int64_t rows = total / width;
  constexpr std::int64_t kPiece = 8192;
  const std::int64_t pieces = rows == 1 ? (width + kPiece - 1) / kPiece : 1;
  const int threads = threads_for(total >= kParallelElements);
  share_pieces(rows * pieces, threads, [&](std::int64_t index, int) {
    const std::int64_t row = index / pieces;
    const std::int64_t piece = index % pieces;
    std::int64_t offsets[kLists];
    row_offsets(row, extents, 1, lists, offsets);
    const std::int64_t begin = pieces == 1 ? 0 : piece * kPiece;
    for (std::size_t k = 0; k < kLists; ++k) offsets[k] += begin * lists[k]->back();
    body(pieces == 1 ? width : std::min(kPiece, width - begin), offsets);
  });
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

}  // namespace npu::onednn

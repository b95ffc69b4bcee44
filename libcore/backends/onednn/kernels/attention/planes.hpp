// SPDX-License-Identifier: Apache-2.0
#pragma once

// What kernels of attention share: planes, which are matrices of one shape at several offsets.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/footprint_builder.hpp"

namespace npu::onednn {

/// How many planes in a row have the same keys and values: heads of queries that share one. 1 where
/// not all runs are of one length.
inline std::int64_t planes_that_share(const std::vector<std::int64_t>& key_offsets,
                                      const std::vector<std::int64_t>& value_offsets) {
  const std::size_t planes = key_offsets.size();
  const auto is_shared = [&](std::size_t plane) {
    return key_offsets[plane] == key_offsets[plane - 1] &&
           value_offsets[plane] == value_offsets[plane - 1];
  };
  std::size_t count = 1;
  while (count < planes && is_shared(count)) ++count;
  for (std::size_t plane = count; plane < planes; ++plane) {
    if (planes % count != 0 || is_shared(plane) != (plane % count != 0)) return 1;
  }
  return static_cast<std::int64_t>(count);
}

/// Elements of a matrix that begins at several offsets.
inline Count planes_span(const std::vector<std::int64_t>& offsets, std::size_t planes, Count rows,
                         std::int64_t row_stride, Count columns, std::int64_t column_stride) {
  require(offsets.size() == planes, "offsets are not one for each plane");
  for (const std::int64_t offset : offsets) static_cast<void>(Count{offset});
  return Count{*std::max_element(offsets.begin(), offsets.end())} + last_of(rows, row_stride) +
         last_of(columns, column_stride) + 1;
}

}  // namespace npu::onednn

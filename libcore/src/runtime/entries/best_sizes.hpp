// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// How often requests have a length.
struct LengthCount {
  std::int64_t length = 0;
  std::int64_t count = 0;
};

/// The lengths of a file with one a line, counted, by rising length. Throws Error kParse with the
/// line for what is no integer of at least 0, or if there is none.
std::vector<LengthCount> parse_lengths(std::string_view text, const std::string& file);

/// Sizes to compile for, and what they cost a request on average.
struct BestSizes {
  std::vector<std::int64_t> sizes;  ///< rising; the last is the largest length
  double expected_us = 0;
  double bound_us = 0;      ///< with a size for every length
  double padded_share = 0;  ///< of the rows that are computed
};

/// The at most `most` sizes with the least expected time, where a request takes the least size that
/// it fits in. `lengths` rises and is not empty; `times_us` is a run's time at each, of which the
/// largest so far counts, so that no size is cheaper than a smaller one.
BestSizes best_sizes(const std::vector<LengthCount>& lengths, const std::vector<double>& times_us,
                     std::size_t most);

}  // namespace npu

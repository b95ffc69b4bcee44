// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/support/json.hpp"

namespace npu {

/// What a user says of a size that stays open: NAME=MIN..MAX[:STEP].
struct StatedRange {
  std::string name;
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::int64_t step = 1;  ///< it is a multiple of this
};

/// Whether the text states a range and no value.
bool is_stated_range(const std::string& text);
/// Throws Error kUsage with the text and what was expected.
StatedRange parse_stated_range(const std::string& text);

/// The template with smaller ranges of its symbols: values are in its own range and in the stated
/// one. Throws Error kUsage for a name that is no symbol or stands twice, and for a range without a
/// value; faults of `npu.symbols` are left to who reads the result.
Json narrow_sizes(Json document, const std::vector<StatedRange>& ranges, const std::string& file);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Parses lists of numbers of parts.
#include "options/part_counts.hpp"

#include <charconv>

namespace npu::cli {
namespace {

constexpr std::int64_t kMostParts = 1'000'000;
constexpr std::int64_t kMostCounts = 1001;  // of a range

}  // namespace

bool parse_integer(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if (error == std::errc::result_out_of_range) value = text[0] == '-' ? INT64_MIN : INT64_MAX;
  return error != std::errc::invalid_argument;
}

std::vector<std::string_view> comma_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string parse_part_counts(const std::string& text, std::vector<std::int32_t>& counts) {
  counts.clear();
  for (const std::string_view part : comma_parts(text)) {
    const std::size_t dots = part.find("..");
    std::int64_t first = 0;
    std::int64_t last = 0;
    const bool good = dots == std::string_view::npos
                          ? parse_integer(part, first) && parse_integer(part, last)
                          : parse_integer(part.substr(0, dots), first) &&
                                parse_integer(part.substr(dots + 2), last);
    if (!good || last < first) {
      return "'" + text + "' is no list of part counts, for example 8..16 or 4,8,16";
    }
    if (first < 1 || last > kMostParts) {
      return "'" + text + "' has part counts that are not in 1.." + std::to_string(kMostParts);
    }
    if (last - first >= kMostCounts) {
      return "'" + text + "' has a range of more than " + std::to_string(kMostCounts) +
             " part counts";
    }
    for (std::int64_t k = first; k <= last; ++k) counts.push_back(static_cast<std::int32_t>(k));
  }
  return {};
}

}  // namespace npu::cli

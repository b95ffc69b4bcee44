// SPDX-License-Identifier: Apache-2.0
// Lists of numbers of parts.
#include "options/part_counts.hpp"

#include <charconv>

namespace npu::cli {

bool parse_integer(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
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
    if (!good || first < 1 || last < first || last > 1'000'000 || last - first > 1000) {
      return "'" + text + "' is no list of part counts, for example 8..16 or 4,8,16";
    }
    for (std::int64_t k = first; k <= last; ++k) counts.push_back(static_cast<std::int32_t>(k));
  }
  return {};
}

}  // namespace npu::cli

// SPDX-License-Identifier: Apache-2.0
// Text for people: units, aligned tables, nearest names.
#include "npu/support/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace npu {
namespace {

std::string scaled_text(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = prefix == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fixed_text(value, decimals) + " " + std::string(kPrefixes[prefix]) + std::string(unit);
}

// The columns that UTF-8 text without wide or combining characters takes on a terminal.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string bytes_text(double bytes) { return scaled_text(bytes, "B"); }

std::string flops_text(double flops) { return scaled_text(flops, "FLOP"); }

std::string fixed_text(double value, int decimals) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return std::string(text.data(), static_cast<std::size_t>(std::clamp(length, 0, 63)));
}

std::optional<std::vector<std::int64_t>> integer_list(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* begin = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(value);
    if (next == end) return numbers;
    if (*next != ',') return std::nullopt;
    begin = next + 1;
  }
}

std::string printable_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    bool valid = length > 0 && length <= text.size() - i && lead >= 0x20 && lead != 0x7f;
    for (std::size_t k = 1; valid && k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      // The second byte also rules out overlong forms, surrogates and code points above U+10FFFF.
      const unsigned low = k > 1 ? 0x80U : lead == 0xe0 ? 0xa0U : lead == 0xf0 ? 0x90U : 0x80U;
      const unsigned high = k > 1 ? 0xbfU : lead == 0xed ? 0x9fU : lead == 0xf4 ? 0x8fU : 0xbfU;
      valid = byte >= low && byte <= high;
    }
    if (valid) {
      result += text.substr(i, length);
      i += length;
    } else {
      result += '?';
      ++i;
    }
  }
  return result;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return {};
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  std::vector<std::vector<std::string>> cells = rows;
  for (std::string& head : cells.front()) {
    right.push_back(head.starts_with('>'));
    if (right.back()) head.erase(0, 1);
  }
  widths.assign(right.size(), 0);
  for (const auto& row : cells) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - display_width(row[c]), ' ');
      line += right[c] ? padding + row[c] : row[c] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string& candidate : candidates) {
    // Levenshtein's distance, one row at a time.
    row.resize(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace npu

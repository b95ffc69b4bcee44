// SPDX-License-Identifier: Apache-2.0
// Text for people: units, aligned tables, nearest names.
#include "support/text.hpp"

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

// The longest name and the longest line that go to a terminal, in bytes:
// untrusted texts may have megabytes.
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestLine = 4000;

// Length of the UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    // The second byte also rules out overlong forms, surrogates and code points above U+10FFFF.
    const unsigned low = k > 1 ? 0x80U : lead == 0xe0 ? 0xa0U : lead == 0xf0 ? 0x90U : 0x80U;
    const unsigned high = k > 1 ? 0xbfU : lead == 0xed ? 0x9fU : lead == 0xf4 ? 0x8fU : 0xbfU;
    if (byte < low || byte > high) return 0;
  }
  return length;
}

// Whether a character would affect a terminal instead of being shown: C0 and C1 controls, line and
// paragraph separators, changes of the direction of writing (U+202A to U+202E, U+2066 to U+2069);
// or is not allowed in XML (U+FFFE, U+FFFF).
bool is_control(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (sequence.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (sequence.size() != 3) return false;
  if (byte(0) == 0xe2 && byte(1) == 0x80) return byte(2) >= 0xa8 && byte(2) <= 0xae;
  if (byte(0) == 0xe2 && byte(1) == 0x81) return byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;
}

void add_printable(std::string_view text, std::string& result) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0 || is_control(text.substr(0, length))) {
      result += '?';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

// Printable text of at most `limit` bytes: the beginning of a long text,
// "..." and a fifth from its end.
void add_short(std::string_view text, std::size_t limit, std::string& result) {
  if (text.size() <= limit) return add_printable(text, result);
  std::size_t end = text.size() - limit / 5;
  std::size_t begin = limit - limit / 5 - 3;
  const auto is_inside = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  for (int i = 0; i < 3 && is_inside(begin); ++i) --begin;
  for (int i = 0; i < 3 && end < text.size() && is_inside(end); ++i) ++end;
  add_printable(text.substr(0, begin), result);
  result += "...";
  add_printable(text.substr(end), result);
}

// Shortens the long words of a line, then the line.
void add_line(std::string_view line, std::string& result) {
  std::string words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    add_short(line.substr(0, end), kLongestName, words);
    if (end < line.size()) words += ' ';
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  add_short(words, kLongestLine, result);
}

// Levenshtein's distance, one row at a time.
std::size_t edit_distance(std::string_view word, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= word.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t change = diagonal + (word[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
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
  add_printable(text, result);
  return result;
}

std::string short_text(std::string_view text) {
  std::string result;
  add_short(text, kLongestName, result);
  return result;
}

std::string terminal_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    add_line(text.substr(0, end), result);
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
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
  for (auto& row : cells) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = short_text(row[c]);
      widths[c] = std::max(widths[c], display_width(row[c]));
    }
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
  if (word.size() > kLongestName) return best;  // not a typo, and the distance is quadratic
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string nearest_option(std::string_view word, const std::vector<std::string>& options) {
  if (word.empty() || word.size() > kLongestName) return {};
  const auto shortest = [&](const auto& fits) {
    std::string best;
    for (const std::string& option : options) {
      if (fits(option) && (best.empty() || option.size() < best.size())) best = option;
    }
    return best;
  };
  // At most a quarter of the letters is wrong, missing or superfluous; a swap counts as two.
  std::string best;
  std::size_t best_distance = (word.size() + 3) / 4 + 1;
  for (const std::string& option : options) {
    const std::size_t distance = edit_distance(word, option);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = option;
  }
  if (!best.empty()) return best;
  best = shortest([&](const std::string& option) { return option.starts_with(word); });
  if (!best.empty() || word.size() < 2) return best;
  // An abbreviation: a subsequence of the letters that begins with the first one.
  return shortest([&](const std::string& option) {
    std::size_t found = 0;
    for (const char c : option) {
      if (found < word.size() && c == word[found]) ++found;
    }
    return found == word.size() && option[0] == word[0];
  });
}

}  // namespace npu

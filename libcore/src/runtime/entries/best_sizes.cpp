// SPDX-License-Identifier: Apache-2.0
// The sizes to compile a model for, given how long its inputs are. A size between two lengths costs
// no less than the smaller of them and serves the same requests, so sizes are lengths. In rising
// order, the best k sizes up to a length are the best k - 1 up to a smaller one and that length for
// all between: an exact dynamic programme, O(m^2 k) for m lengths. Of equal sums the one with the
// smaller sizes is taken.
#include "runtime/entries/best_sizes.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {

std::vector<LengthCount> parse_lengths(std::string_view text, const std::string& file) {
  std::map<std::int64_t, std::int64_t> counts;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::int64_t length = 0;
    const auto [last, fault] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (fault != std::errc() || last != line.data() + line.size() || length < 0) {
      throw Error(ErrorCode::kParse, "'" + short_text(line) + "' is no length; expected one a line",
                  {.file = file, .line = number, .column = 1});
    }
    ++counts[length];
  }
  if (counts.empty()) throw Error(ErrorCode::kParse, "has no lengths", {.file = file});
  std::vector<LengthCount> lengths;
  for (const auto& [length, count] : counts) lengths.push_back({length, count});
  return lengths;
}

BestSizes best_sizes(const std::vector<LengthCount>& lengths, const std::vector<double>& times_us,
                     std::size_t most) {
  const std::size_t m = lengths.size();
  const std::size_t k = std::min(most, m);
  std::vector<double> time(m);
  std::vector<double> counts{0};  // of the lengths before
  BestSizes best;
  double rows = 0;
  for (std::size_t j = 0; j < m; ++j) {
    time[j] = std::max(times_us[j], j == 0 ? 0 : time[j - 1]);
    const auto count = static_cast<double>(lengths[j].count);
    counts.push_back(counts.back() + count);
    best.bound_us += count * time[j];
    rows += count * static_cast<double>(lengths[j].length);
  }
  // cost[j]: of the first j lengths with as many sizes as the round; from[round][j]: how many of
  // them smaller sizes serve.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> cost(m + 1, kNever);
  cost[0] = 0;
  std::vector<std::vector<std::size_t>> from(k, std::vector<std::size_t>(m + 1, 0));
  for (std::size_t round = 0; round < k; ++round) {
    std::vector<double> next(m + 1, kNever);
    for (std::size_t j = round + 1; j <= m; ++j) {
      for (std::size_t i = round; i < j; ++i) {
        const double sum = cost[i] + time[j - 1] * (counts[j] - counts[i]);
        if (!(sum < next[j])) continue;
        next[j] = sum;
        from[round][j] = i;
      }
    }
    cost = std::move(next);
  }
  double room = 0;
  std::size_t j = m;
  for (std::size_t round = k; round-- > 0;) {
    const std::size_t i = from[round][j];
    best.sizes.push_back(lengths[j - 1].length);
    room += static_cast<double>(lengths[j - 1].length) * (counts[j] - counts[i]);
    j = i;
  }
  std::reverse(best.sizes.begin(), best.sizes.end());
  best.expected_us = cost[m] / counts[m];
  best.bound_us /= counts[m];
  best.padded_share = room > 0 ? 1 - rows / room : 0;
  return best;
}

}  // namespace npu

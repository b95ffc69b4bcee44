// SPDX-License-Identifier: Apache-2.0
// The sizes that the dynamic programme finds cost what the best of all choices does.
#include "runtime/entries/best_sizes.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

/// The least expected time of all choices of at most `most` sizes, by trying each subset.
double least_by_trial(const std::vector<LengthCount>& lengths, std::vector<double> times,
                      std::size_t most) {
  for (std::size_t i = 1; i < times.size(); ++i) times[i] = std::max(times[i], times[i - 1]);
  double best = -1;
  for (unsigned chosen = 1; chosen < 1U << lengths.size(); ++chosen) {
    const auto sizes = static_cast<std::size_t>(__builtin_popcount(chosen));
    if (sizes > most || (chosen >> (lengths.size() - 1)) == 0) continue;
    double sum = 0;
    double count = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::size_t size = i;
      while ((chosen >> size & 1U) == 0) ++size;
      sum += times[size] * static_cast<double>(lengths[i].count);
      count += static_cast<double>(lengths[i].count);
    }
    if (best < 0 || sum / count < best) best = sum / count;
  }
  return best;
}

}  // namespace

TEST_CASE("best sizes: as good as the best of all choices", "[runtime][entries]") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<LengthCount> lengths(1 + random() % 9);
    std::vector<double> times;
    std::int64_t length = 0;
    for (LengthCount& each : lengths) {
      length += 1 + static_cast<std::int64_t>(random() % 50);
      each = {length, 1 + static_cast<std::int64_t>(random() % 20)};
      // Mostly rising, with the steps back that real kernels have.
      times.push_back(static_cast<double>(length) * 0.5 + static_cast<double>(random() % 40));
    }
    for (std::size_t most = 1; most <= lengths.size() + 1; ++most) {
      const BestSizes best = best_sizes(lengths, times, most);
      CAPTURE(round, most);
      REQUIRE(best.expected_us == Approx(least_by_trial(lengths, times, most)));
      CHECK(best.sizes.size() == std::min(most, lengths.size()));
      CHECK(std::is_sorted(best.sizes.begin(), best.sizes.end()));
      CHECK(best.sizes.back() == lengths.back().length);
      CHECK(best.bound_us <= best.expected_us * (1 + 1e-12));
      CHECK(best.padded_share >= 0);
      if (most >= lengths.size()) {
        CHECK(best.expected_us == Approx(best.bound_us));
        CHECK(best.padded_share == Approx(0).margin(1e-12));
      }
    }
  }
}

TEST_CASE("best sizes: an example by hand", "[runtime][entries]") {
  // Lengths 10 (3 times), 20 and 100; a run takes its size. Two sizes: 20 and 100 cost
  // 20 * 4 + 100 = 180, 10 and 100 cost 10 * 3 + 100 * 2 = 230.
  const BestSizes best = best_sizes({{10, 3}, {20, 1}, {100, 1}}, {10, 20, 100}, 2);
  CHECK(best.sizes == std::vector<std::int64_t>{20, 100});
  CHECK(best.expected_us == Approx(36));                // 180 / 5
  CHECK(best.bound_us == Approx(30));                   // (30 + 20 + 100) / 5
  CHECK(best.padded_share == Approx(1 - 150.0 / 180));  // 150 rows of 180
}

TEST_CASE("best sizes: lengths are read and counted", "[runtime][entries]") {
  const auto lengths = parse_lengths("12\n7\r\n12\n", "l");
  REQUIRE(lengths.size() == 2);
  CHECK(lengths[0].length == 7);
  CHECK(lengths[1].count == 2);
  for (const char* text : {"", "1\n\n2\n", "-1\n", "1.5\n", "9223372036854775808\n", "x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_lengths(text, "l"), Error);
  }
  try {
    parse_lengths("1\n2\nthree\n", "l");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.location().line == 3);
  }
}

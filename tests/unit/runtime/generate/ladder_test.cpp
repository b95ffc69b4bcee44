// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/ladder.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

using Steps = std::vector<LadderStep>;

double sum_us(const Steps& steps, const std::vector<Rung>& rungs) {
  double sum = 0;
  for (const LadderStep& step : steps) sum += rungs[step.rung].us;
  return sum;
}

/// The least sum over all multisets of rungs that hold `rows`: each rung any number of times.
double brute_force(const std::vector<Rung>& rungs, std::size_t first, std::int64_t rows) {
  if (rows <= 0) return 0;
  if (first == rungs.size()) return std::numeric_limits<double>::infinity();
  double best = std::numeric_limits<double>::infinity();
  double us = 0;
  for (std::int64_t left = rows;; left -= rungs[first].rows, us += rungs[first].us) {
    best = std::min(best, us + brute_force(rungs, first + 1, left));
    if (left <= 0) return best;
  }
}

TEST_CASE("a prompt takes the cheapest sum of entries", "[ladder]") {
  // Times: reading the weights is worth 100, a row 1.
  const std::vector<Rung> rungs{{1, 101}, {8, 108}, {32, 132}, {1024, 1124}};
  Ladder ladder(rungs);
  CHECK(ladder.steps(0).empty());
  CHECK(ladder.steps(1) == Steps{{0, 1}});
  CHECK(ladder.steps(2) == Steps{{1, 2}});    // 108 against 2 x 101
  CHECK(ladder.steps(30) == Steps{{2, 30}});  // never the 1,024
  CHECK(ladder.steps(33) == Steps{{2, 32}, {0, 1}});
  CHECK(ladder.steps(40) == Steps{{2, 32}, {1, 8}});
  CHECK(ladder.steps(1000) == Steps{{3, 1000}});
  CHECK(ladder.steps(1025) == Steps{{3, 1024}, {0, 1}});
}

TEST_CASE("without times a prompt is not padded far", "[ladder]") {
  Ladder ladder({{1, 0}, {32, 500}, {1024, 0}});
  CHECK(ladder.steps(1) == Steps{{0, 1}});
  CHECK(ladder.steps(30) == Steps{{1, 30}});
  CHECK(ladder.steps(2) == Steps{{0, 1}, {0, 1}});
}

TEST_CASE("the sum is that of brute force", "[ladder]") {
  std::mt19937 random(44);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Rung> rungs;
    const std::int64_t count = pick(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      rungs.push_back({pick(1, 12), static_cast<double>(pick(1, 40))});
    }
    Ladder ladder(rungs);
    for (std::int64_t rows = 1; rows <= 24; ++rows) {
      const Steps steps = ladder.steps(rows);
      REQUIRE(sum_us(steps, rungs) == brute_force(rungs, 0, rows));
      std::int64_t taken = 0;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        taken += steps[i].rows;
        REQUIRE(steps[i].rows >= 1);
        REQUIRE(steps[i].rows <= rungs[steps[i].rung].rows);
        if (i + 1 < steps.size()) REQUIRE(steps[i].rows == rungs[steps[i].rung].rows);
      }
      REQUIRE(taken == rows);
    }
  }
}

TEST_CASE("an entry without a proof takes its own rows alone", "[ladder]") {
  Ladder ladder({{1, 101}, {8, 108, false}});
  CHECK(ladder.steps(9) == Steps{{1, 8}, {0, 1}});
  CHECK(ladder.steps(7).size() == 7);
  Ladder even({{2, 1, false}, {4, 1, false}});
  CHECK(even.steps(6) == Steps{{1, 4}, {0, 2}});
  CHECK_THROWS_WITH(
      even.steps(5),
      "error: no sum of steps reads 5 tokens: the entries are not proved for padding");
}

TEST_CASE("a ladder needs rungs", "[ladder]") {
  CHECK_THROWS_AS(Ladder({}), Error);
  CHECK_THROWS_AS(Ladder({{0, 1}}), Error);
  CHECK_THROWS_AS(Ladder(std::vector<Rung>(65, {1, 1})), Error);
}

}  // namespace
}  // namespace npu

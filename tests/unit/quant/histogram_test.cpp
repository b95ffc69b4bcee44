// SPDX-License-Identifier: Apache-2.0
#include "quant/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "catch.hpp"

namespace npu {
namespace {

/// What every histogram must hold: each number in the bin whose edges enclose it.
void check_against(const Histogram& histogram, const std::vector<float>& values) {
  std::vector<std::uint64_t> expected(Histogram::kBins);
  std::uint64_t zeros = 0;
  for (const float value : values) {
    const double bin = std::floor(double{value} / histogram.width()) - histogram.first_bin();
    REQUIRE(bin >= 0);
    REQUIRE(bin < Histogram::kBins);
    if (value == 0) {
      ++zeros;
    } else {
      ++expected[static_cast<std::size_t>(bin)];
    }
  }
  CHECK(histogram.bins() == expected);
  CHECK(histogram.zeros() == zeros);
  CHECK(histogram.count() == values.size());
}

bool same(const Histogram& a, const Histogram& b) {
  return a.exponent() == b.exponent() && a.first_bin() == b.first_bin() && a.bins() == b.bins() &&
         a.low() == b.low() && a.high() == b.high() && a.zeros() == b.zeros() &&
         a.count() == b.count();
}

std::vector<float> random_values(std::size_t size, float deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(size);
  for (float& value : values) value = random() % 4 == 0 ? 0.0F : normal(random);
  return values;
}

}  // namespace

TEST_CASE("histogram: an empty one", "[quant]") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.low() == 0);
  CHECK(histogram.high() == 0);
  CHECK(histogram.used_end() == 0);
}

TEST_CASE("histogram: wider ranges give the bins of one pass, in any order", "[quant]") {
  std::vector<float> all;
  Histogram stream;
  for (const float deviation : {0.001F, 3.0F, 0.1F, 1000.0F}) {
    const std::vector<float> part = random_values(5000, deviation, 7);
    stream.add(part);
    all.insert(all.end(), part.begin(), part.end());
    check_against(stream, all);
  }
  Histogram whole;
  whole.add(all);
  CHECK(same(stream, whole));
  std::reverse(all.begin(), all.end());
  Histogram reversed;
  for (const float value : all) reversed.add({&value, 1});
  CHECK(same(stream, reversed));
}

TEST_CASE("histogram: at least half of the bins cover the range", "[quant]") {
  Histogram histogram;
  const std::vector<float> values{-1.0F, 0.75F};
  histogram.add(values);
  // 1.75 in bins of 2^-10: from -1024 to 768.
  CHECK(histogram.exponent() == -10);
  CHECK(histogram.first_bin() == -1024);
  CHECK(histogram.used_begin() == 0);
  CHECK(histogram.used_end() == 1793);
}

TEST_CASE("histogram: the ends of float32, and numbers that are none", "[quant]") {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Histogram histogram;
  const std::vector<float> values{-kMax, kMax, std::numeric_limits<float>::denorm_min(), -0.0F};
  const auto [low, high] = histogram.add(values);
  CHECK(low == -kMax);
  CHECK(high == kMax);
  check_against(histogram, values);
  const std::vector<float> others{kInfinity, -kInfinity, std::nanf(""), 1.0F};
  CHECK(histogram.add(others) == std::pair{0.0F, 1.0F});
  CHECK(histogram.non_finite() == 3);
  CHECK(histogram.count() == 5);
  CHECK(histogram.high() == kMax);
}

TEST_CASE("histogram: what was written is the same", "[quant]") {
  Histogram histogram;
  histogram.add(random_values(1000, 2.0F, 3));
  const auto make = [&](std::int32_t exponent, std::int32_t first, float low, float high) {
    return Histogram::make(exponent, first, histogram.bins(), histogram.zeros(), 0, low, high);
  };
  const auto again =
      make(histogram.exponent(), histogram.first_bin(), histogram.low(), histogram.high());
  REQUIRE(again);
  CHECK(same(*again, histogram));
  // Bins that do not cover the range, or something else.
  CHECK_FALSE(
      make(histogram.exponent(), histogram.first_bin() + 1, histogram.low(), histogram.high()));
  CHECK_FALSE(
      make(histogram.exponent() - 1, histogram.first_bin(), histogram.low(), histogram.high()));
  CHECK_FALSE(make(histogram.exponent(), histogram.first_bin(), histogram.low(), 0.0F));
  CHECK_FALSE(make(histogram.exponent(), histogram.first_bin(), 1.0F, 0.0F));
}

}  // namespace npu

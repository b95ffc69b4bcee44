// SPDX-License-Identifier: Apache-2.0
// The fit against every way to divide few points into blocks of one value.
#include "gnn/model/isotonic.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.hpp"

using namespace npu::gnn;

namespace {

bool is_monotone(const std::vector<IsotonicPoint>& points, const std::vector<double>& values) {
  for (std::size_t a = 0; a < points.size(); ++a) {
    for (std::size_t b = 0; b < points.size(); ++b) {
      const bool below = points[a].x <= points[b].x && points[a].y <= points[b].y;
      if (below && values[a] > values[b] + 1e-9) return false;
    }
  }
  return true;
}

double distance(const std::vector<IsotonicPoint>& points, const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    sum += points[i].weight * (values[i] - points[i].value) * (values[i] - points[i].value);
  }
  return sum;
}

// The least distance over all divisions into blocks: optimal values are means of blocks.
double least_distance(const std::vector<IsotonicPoint>& points) {
  std::vector<std::size_t> block(points.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  const auto extend = [&](const auto& self, std::size_t i, std::size_t blocks) -> void {
    if (i < points.size()) {
      for (std::size_t b = 0; b <= blocks; ++b) {
        block[i] = b;
        self(self, i + 1, std::max(blocks, b + 1));
      }
      return;
    }
    std::vector<double> sums(blocks, 0);
    std::vector<double> weights(blocks, 0);
    for (std::size_t p = 0; p < points.size(); ++p) {
      sums[block[p]] += points[p].weight * points[p].value;
      weights[block[p]] += points[p].weight;
    }
    std::vector<double> values;
    for (std::size_t p = 0; p < points.size(); ++p) {
      values.push_back(sums[block[p]] / weights[block[p]]);
    }
    if (is_monotone(points, values)) least = std::min(least, distance(points, values));
  };
  extend(extend, 0, 0);
  return least;
}

}  // namespace

TEST_CASE("what is in order stays", "[gnn][isotonic]") {
  CHECK(isotonic_fit({}).empty());
  CHECK(isotonic_fit({{1, 1, 5, 1}}) == std::vector<double>{5});
  // Neither point is below the other.
  CHECK(isotonic_fit({{1, 2, 5, 1}, {2, 1, 3, 1}}) == std::vector<double>{5, 3});
  CHECK(isotonic_fit({{1, 1, 0.1, 1}, {2, 2, 0.3, 7}}) == std::vector<double>{0.1, 0.3});
}

TEST_CASE("violators are pooled by weight, and no others", "[gnn][isotonic]") {
  // 5 is above 3 alone: (3 * 5 + 3) / 4 = 4.5. The 6 keeps its value.
  CHECK(isotonic_fit({{1, 1, 5, 3}, {2, 1, 3, 1}, {1, 2, 6, 1}}) ==
        std::vector<double>{4.5, 4.5, 6});
  // A spike of little weight comes down; what lies above it does not go up.
  const auto fitted = isotonic_fit({{1, 1, 1, 1}, {2, 2, 100, 1e-4}, {3, 3, 2, 1}, {4, 4, 3, 1}});
  CHECK(fitted[2] < 2.02);
  CHECK(fitted[3] == 3);
}

TEST_CASE("the fit is the nearest one there is", "[gnn][isotonic]") {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>((state >> 33) % below);
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<IsotonicPoint> points;
    for (int i = 0; i < 7; ++i) points.push_back({draw(4), draw(4), 1 + draw(9), 1 + draw(3)});
    const std::vector<double> fitted = isotonic_fit(points);
    CAPTURE(round);
    CHECK(is_monotone(points, fitted));
    CHECK(std::abs(distance(points, fitted) - least_distance(points)) < 1e-9);
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "support/statistics.hpp"

#include "catch.hpp"

using namespace npu;

TEST_CASE("Of an odd number of values all medians are the one in the middle") {
  const std::vector<double> values{9, 1, 4};
  CHECK(median(values) == 4);
  CHECK(lower_median(values) == 4);
  CHECK(median({7}) == 7);
}

TEST_CASE("Of an even number of values the medians differ as their names say") {
  const std::vector<double> values{8, 1, 4, 2};
  CHECK(median(values) == 3);  // (2 + 4) / 2
  CHECK(lower_median(values) == 2);
}

TEST_CASE("A nearest rank is the smallest value that a share does not exceed") {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(nearest_rank(values, 0.9) == 9);
  CHECK(nearest_rank(values, 0.91) == 10);
  CHECK(nearest_rank(values, 0.99) == 10);
  CHECK(nearest_rank(values, 0) == 1);
  CHECK(nearest_rank({3}, 0.5) == 3);
}

TEST_CASE("An upper percentile is the value behind that share") {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(upper_percentile(values, 90) == 10);
  CHECK(upper_percentile(values, 50) == 6);
  CHECK(upper_percentile({1, 2, 3}, 90) == 3);  // 2.7, so the third
  CHECK(upper_percentile({5}, 100) == 5);
}

TEST_CASE("The deviation is the median distance") {
  CHECK(median_absolute_deviation({1, 2, 4, 100}, 3) == 1.5);  // 1, 1, 2, 97
}

// SPDX-License-Identifier: Apache-2.0
#include "ops/hidden_score.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"

using namespace npu;

TEST_CASE("what a mask hides has no weight beside scores that it shows", "[ops]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double least = std::numeric_limits<float>::lowest();
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64}) {
    const bool is_half = dtype == DType::kFloat16;
    for (const double fill : {-kInfinity, least, -1e30, -1e9, -1e8})
      CHECK(hides_score(fill, dtype));
    CHECK(hides_score(-65504, dtype) == is_half);  // the lowest number of float16
    CHECK(hides_score(-1e4, dtype) == is_half);
    for (const double fill : {-1000.0, 0.0, 1e9, kInfinity, std::nan("")}) {
      CHECK_FALSE(hides_score(fill, dtype));
    }
  }
}

TEST_CASE("weights of hidden scores are exactly 0", "[ops]") {
  // The farthest that two scores are apart: -2^24 is seen and 2^24 hidden.
  const float largest = 0x1p24F;
  for (const float fill : {-1e9F, -1e8F, -33554536.0F, std::numeric_limits<float>::lowest()}) {
    REQUIRE(hides_score(static_cast<double>(fill), DType::kFloat32));
    CHECK(std::exp((largest + fill) - -largest) == 0.0F);
  }
  // A score of 6,000 that -1e4 is added to weighs more than one of -4,000.
  CHECK(std::exp((6000.0F - 1e4F) - -4000.0F) == 1.0F);
}

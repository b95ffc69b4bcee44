// SPDX-License-Identifier: Apache-2.0
// Rows in order.
#include <cmath>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("sorting is stable, NaN is the largest, and zeros are equal", "[onednn][kernels]") {
  const float nan = std::nanf("");
  const Floats row{2, nan, -0.0F, 1, 0, -INFINITY, nan, INFINITY};
  SortRows call{DType::kFloat32, false, false, 1, 8, 8};
  CHECK(run<std::int64_t>(call, 8, row) == Longs{5, 2, 4, 3, 0, 7, 1, 6});
  call.descending = true;
  CHECK(run<std::int64_t>(call, 8, row) == Longs{1, 6, 7, 0, 3, 2, 4, 5});
  call.kept = 3;
  auto first = run<std::int64_t>(call, 8, row);
  first.resize(3);
  CHECK(first == Longs{1, 6, 7});
  const Longs wide{3, INT64_MIN, 3, INT64_MAX, 0};
  SortRows longs{DType::kInt64, false, true, 1, 5, 5};
  CHECK(run<std::int64_t>(longs, 10, wide) == Longs{1, 4, 0, 2, 3, INT64_MIN, 0, 3, 3, INT64_MAX});
  longs.descending = true;
  CHECK(run<std::int64_t>(longs, 10, wide) == Longs{3, 0, 2, 4, 1, INT64_MAX, 3, 3, 0, INT64_MIN});
  const Longs near{INT64_MAX, INT64_MAX - 3, INT64_MAX, INT64_MAX - 1};
  CHECK(run<std::int64_t>(SortRows{DType::kInt64, true, false, 1, 4, 4}, 4, near) ==
        Longs{0, 2, 3, 1});
  CHECK(run<std::int64_t>(SortRows{DType::kBool, true, false, 2, 3, 3}, 6,
                          Bytes{0, 1, 0, 1, 1, 0}) == Longs{1, 0, 2, 0, 1, 2});
}

}  // namespace npu::onednn

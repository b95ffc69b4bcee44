// SPDX-License-Identifier: Apache-2.0
// Tensors that are put together from parts, by hand.
#include <cstdint>
#include <limits>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("parts are copied backwards and over each other", "[onednn][kernels]") {
  const CopyParts call{2, {{0, 5, 0, {4, {6}, {-1}, {1}}}, {1, 0, 1, {4, {2}, {0}, {2}}}}};
  CHECK(run<float>(call, 6, Floats{1, 2, 3, 4, 5, 6}, Floats{9}) == Floats{6, 9, 4, 9, 2, 1});
}

TEST_CASE("triangles of matrices", "[onednn][kernels]") {
  const Ints matrix{1, 2, 3, 4, 5, 6};
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, 0, false}, 6, matrix) == Ints{1, 0, 0, 4, 5, 0});
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, 1, true}, 6, matrix) == Ints{0, 2, 3, 0, 0, 6});
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, -5, true}, 6, matrix) == matrix);
}

TEST_CASE("rows behind the valid ones are written anew", "[onednn][kernels]") {
  using enum TailRows::Fill;
  const auto tail = [](DType type, TailRows::Fill fill) {
    return TailRows{type, fill, 2, 3, 2, "n"};
  };
  const Floats x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const float low = -std::numeric_limits<float>::infinity();
  CHECK(run<float>(tail(DType::kFloat32, kZero), 12, x, Longs{1}) ==
        Floats{1, 2, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0});
  CHECK(run<float>(tail(DType::kFloat32, kLowest), 12, x, Longs{2}) ==
        Floats{1, 2, 3, 4, low, low, 7, 8, 9, 10, low, low});
  CHECK(run<float>(tail(DType::kFloat32, kEdge), 12, x, Longs{2}) ==
        Floats{1, 2, 3, 4, 3, 4, 7, 8, 9, 10, 9, 10});
  CHECK(run<float>(tail(DType::kFloat32, kEdge), 12, x, Longs{3}) == x);
  CHECK(run<float>(tail(DType::kFloat32, kZero), 12, x, Longs{0}) == Floats(12, 0));
  const Longs i{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(run<std::int64_t>(tail(DType::kInt64, kEdge), 12, i, Longs{1}) ==
        Longs{1, 2, 1, 2, 1, 2, 7, 8, 7, 8, 7, 8});
  using Halves = std::vector<std::uint16_t>;
  const Halves h(12, 7);
  CHECK(run<std::uint16_t>(tail(DType::kFloat16, kLowest), 12, h, Longs{0}) == Halves(12, 0xFC00));
  CHECK(run<std::uint16_t>(tail(DType::kBFloat16, kLowest), 12, h, Longs{0}) == Halves(12, 0xFF80));
  for (const std::int64_t valid : {std::int64_t{-1}, std::int64_t{4}, INT64_MAX}) {
    CHECK_THROWS_AS(run<float>(tail(DType::kFloat32, kZero), 12, x, Longs{valid}), Error);
  }
  CHECK_THROWS_AS(run<float>(tail(DType::kFloat32, kEdge), 12, x, Longs{0}), Error);
  CHECK_THROWS_AS(footprint_of(tail(DType::kInt64, kLowest)), Error);
}

}  // namespace npu::onednn

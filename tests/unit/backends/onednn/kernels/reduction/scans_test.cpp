// SPDX-License-Identifier: Apache-2.0
// Reductions of integers, places of extrema and running sums, by hand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("a long row is reduced in parts, to what one part gives", "[onednn][kernels]") {
  const std::int64_t count = GENERATE(70001, 1 << 20, 1100003);
  Longs values(static_cast<std::size_t>(count));
  Floats floats(values.size());
  std::mt19937_64 engine(5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(engine());
    floats[i] = static_cast<float>(engine() % 1000);
  }
  std::uint64_t sum = 0;
  for (const std::int64_t value : values) sum += static_cast<std::uint64_t>(value);
  const auto reduced = [&](IntegerReduction::Op op) {
    return run<std::int64_t>(IntegerReduction{op, DType::kInt64, 1, count, 1}, 1, values)[0];
  };
  CHECK(static_cast<std::uint64_t>(reduced(IntegerReduction::Op::kSum)) == sum);
  CHECK(reduced(IntegerReduction::Op::kMinimum) == *std::min_element(values.begin(), values.end()));
  CHECK(reduced(IntegerReduction::Op::kMaximum) == *std::max_element(values.begin(), values.end()));
  const auto place = [&](bool greatest) {
    return run<std::int64_t>(ArgReduction{DType::kFloat32, greatest, false, 1, count, 1}, 1,
                             floats)[0];
  };
  CHECK(place(true) == std::max_element(floats.begin(), floats.end()) - floats.begin());
  CHECK(place(false) == std::min_element(floats.begin(), floats.end()) - floats.begin());
  floats[static_cast<std::size_t>(count) / 2] = std::nanf("");
  floats.back() = std::nanf("");
  CHECK(place(true) == count / 2);
  CHECK(place(false) == count / 2);
}

TEST_CASE("reductions and running sums of integers", "[onednn][kernels]") {
  using Reduce = IntegerReduction::Op;
  const Ints values{1, 2, 3, 4, 5, 6};  // [1, 3, 2]
  const auto reduced = [&](Reduce op) {
    return run<std::int64_t>(IntegerReduction{op, DType::kInt32, 1, 3, 2}, 2, values);
  };
  CHECK(reduced(Reduce::kSum) == Longs{9, 12});
  CHECK(reduced(Reduce::kProduct) == Longs{15, 48});
  CHECK(run<std::uint8_t>(IntegerReduction{Reduce::kAll, DType::kBool, 2, 2, 1}, 2,
                          Bytes{1, 1, 1, 0}) == Bytes{1, 0});
  CHECK(run<std::int64_t>(RunningSum{DType::kInt64, 1, 3, 1}, 3, Longs{1, 2, 3}) == Longs{1, 3, 6});
}

TEST_CASE("the first of equal extrema counts, and NaN before all", "[onednn][kernels]") {
  const float nan = std::nanf("");
  const ArgReduction call{DType::kFloat32, true, false, 2, 4, 1};
  CHECK(run<std::int64_t>(call, 2, Floats{1, 5, 5, 2, 3, nan, 9, nan}) == Longs{1, 1});
  ArgReduction least{DType::kFloat32, false, true, 1, 3, 1};
  const auto both = run<float>(least, 3, Floats{4, -2, 3});
  std::int64_t place = 0;
  std::memcpy(&place, both.data(), sizeof place);
  CHECK(place == 1);
  CHECK(both[2] == -2.0F);
}

}  // namespace npu::onednn

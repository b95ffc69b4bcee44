// SPDX-License-Identifier: Apache-2.0
// Functions of one operand where bits count; function_ulps_test.cpp has their errors.
#include <cmath>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("rounding to an integer keeps the sign of zero", "[onednn][kernels]") {
  using Function = Elementwise::Function;
  const Floats values{-0.0F, 0.0F, -0.3F, 0.3F, -0.5F, 1.5F, -2.5F, 8388609.0F};
  const auto check = [&](Function function, float (*exact)(float)) {
    const auto result =
        run<float>(Elementwise{function, DType::kFloat32, static_cast<std::int64_t>(values.size())},
                   values.size(), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO(static_cast<int>(function) << " of " << values[i] << ": " << result[i]);
      CHECK(result[i] == exact(values[i]));
      CHECK(std::signbit(result[i]) == std::signbit(exact(values[i])));
    }
  };
  check(Function::kFloor, [](float x) { return std::floor(x); });
  check(Function::kCeil, [](float x) { return std::ceil(x); });
  check(Function::kTruncate, [](float x) { return std::trunc(x); });
  check(Function::kRound, [](float x) { return std::nearbyint(x); });
}

}  // namespace npu::onednn

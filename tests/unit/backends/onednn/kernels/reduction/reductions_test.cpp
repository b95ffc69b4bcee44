// SPDX-License-Identifier: Apache-2.0
// Reductions of floats.
#include <algorithm>
#include <limits>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using namespace test;

double at(const std::vector<float>& values, std::int64_t i) {
  return static_cast<double>(values[static_cast<std::size_t>(i)]);
}

}  // namespace

TEST_CASE("MiddleReduction sums in float64", "[onednn][kernels]") {
  const auto source = random_floats(2 * 30 * 5, 1);
  for (const ReductionOp op : {ReductionOp::kMean, ReductionOp::kMaximum}) {
    std::vector<double> expected;
    for (std::int64_t outer = 0; outer < 2; ++outer) {
      for (std::int64_t inner = 0; inner < 5; ++inner) {
        double result = op == ReductionOp::kMean ? 0.0 : -std::numeric_limits<double>::infinity();
        for (std::int64_t i = 0; i < 30; ++i) {
          const double value = at(source, (outer * 30 + i) * 5 + inner);
          result = op == ReductionOp::kMean ? result + value / 30.0 : std::max(result, value);
        }
        expected.push_back(result);
      }
    }
    std::vector<float> target(10);
    MiddleReduction{op, DType::kFloat32, 2, 30, 5}.run({bytes(source), bytes(target)});
    CHECK(worst_error(target, expected) < 1e-7);
  }
}

}  // namespace npu::onednn

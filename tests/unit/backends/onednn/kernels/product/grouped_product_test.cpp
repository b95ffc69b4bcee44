// SPDX-License-Identifier: Apache-2.0
// Rows of groups times the matrices of these.
#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("rows of each group are multiplied with its matrix", "[onednn][kernels]") {
  for (const VectorIsa isa : {VectorIsa::kAny, VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    if (isa > cpu_vector_isa()) continue;
    const std::int64_t lanes = lanes_of(isa), groups = 3, rows = 40, inner = 5;
    for (const std::int64_t columns : {1L, 7L, 16L, 37L}) {
      const GroupedProduct call{groups, rows, inner, columns, "node 'n'", isa};
      CAPTURE(lanes, columns);
      Floats source(static_cast<std::size_t>(rows * inner));
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 11) - 5;
      Floats weight(static_cast<std::size_t>(groups * call.blocks() * inner * lanes));
      const auto weight_of = [](std::int64_t g, std::int64_t k, std::int64_t c) {
        return static_cast<float>((g * 7 + k * 3 + c) % 13) - 6;
      };
      for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t k = 0; k < inner; ++k) {
          for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t block = g * call.blocks() + c / lanes;
            weight[static_cast<std::size_t>((block * inner + k) * lanes + c % lanes)] =
                weight_of(g, k, c);
          }
        }
      }
      const Longs ends{17, 17, 38};
      Floats wanted(static_cast<std::size_t>(rows * columns), 0.0F);
      for (std::int64_t r = 0; r < 38; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          for (std::int64_t k = 0; k < inner; ++k) {
            wanted[static_cast<std::size_t>(r * columns + c)] +=
                source[static_cast<std::size_t>(r * inner + k)] * weight_of(r < 17 ? 0 : 2, k, c);
          }
        }
      }
      CHECK(run_for_isa<float>(call, wanted.size(), source, weight, ends) == wanted);
      CHECK_THROWS_WITH(run_for_isa<float>(call, wanted.size(), source, weight, Longs{17, 16, 38}),
                        Catch::Contains("node 'n': offsets do not ascend up to 40"));
      CHECK_THROWS_AS(run_for_isa<float>(call, wanted.size(), source, weight, Longs{1, 2, 41}),
                      Error);
    }
  }
}

}  // namespace npu::onednn

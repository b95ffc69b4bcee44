// SPDX-License-Identifier: Apache-2.0
// Tensors that are put together from parts, by hand.
#include <cstdint>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"

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

}  // namespace npu::onednn

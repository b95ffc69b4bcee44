// SPDX-License-Identifier: Apache-2.0
// Arithmetic that broadcasts.
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using namespace test;

}  // namespace

TEST_CASE("BroadcastBinary repeats operands with strides of 0", "[onednn][kernels]") {
  const auto a = random_floats(5 * 7, 1);
  const auto b = random_floats(7, 2);
  BroadcastBinary kernel;
  kernel.op = BinaryOp::kSubtract;
  kernel.alpha = 2.0F;
  kernel.extents = {5, 7};
  kernel.a_strides = {7, 1};
  kernel.b_strides = {0, 1};
  kernel.target_strides = {7, 1};
  kernel.simplify();
  std::vector<float> target(a.size());
  kernel.run({bytes(a), bytes(b), bytes(target)});
  for (std::size_t i = 0; i < target.size(); ++i) REQUIRE(target[i] == a[i] - 2.0F * b[i % 7]);
}

}  // namespace npu::onednn

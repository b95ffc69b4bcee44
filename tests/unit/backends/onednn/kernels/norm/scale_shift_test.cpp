// SPDX-License-Identifier: Apache-2.0
// Factors and terms of channels.
#include <algorithm>
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

TEST_CASE("ScaleShift works on channels wherever they lie", "[onednn][kernels]") {
  // Planes, blocks of 16 and of 8, channels last.
  const std::int64_t lanes = GENERATE(1, 8, 16, 300);
  const bool has_shift = GENERATE(false, true);
  ScaleShift kernel;
  kernel.outer = 2;
  kernel.groups = 3;
  kernel.spatial = 21;
  kernel.lanes = lanes;
  kernel.has_shift = kernel.relu = has_shift;
  const std::int64_t channels = kernel.channels();
  const auto source = random_floats(2 * channels * 21, 1);
  const auto vectors = random_floats(2 * channels, 2);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < 2 * channels * 21; ++i) {
    const std::int64_t channel = i / (21 * lanes) % 3 * lanes + i % lanes;
    const double value =
        at(source, i) * at(vectors, channel) + (has_shift ? at(vectors, channels + channel) : 0.0);
    expected.push_back(has_shift ? std::max(value, 0.0) : value);
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    kernel.isa = isa;
    auto target = source;  // in place
    kernel.run({bytes(target), bytes(vectors), bytes(target)});
    CHECK(worst_error(target, expected) < 1e-6);
  }
}

}  // namespace npu::onednn

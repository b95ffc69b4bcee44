// SPDX-License-Identifier: Apache-2.0
// RMS norms, and batch norms that are folded into weights.
#include <cmath>
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

TEST_CASE("RmsNorm scales rows; folded norms centre and scale", "[onednn][kernels]") {
  const auto source = random_floats(4 * 10, 1);
  const auto weight = random_floats(10, 2);
  RmsNorm kernel;
  kernel.rows = 4;
  kernel.inner = 10;
  kernel.epsilon = 1e-3F;
  kernel.has_weight = true;
  std::vector<float> target(source.size());
  kernel.run({bytes(source), weight.data(), bytes(target)});
  std::vector<double> expected;
  for (std::int64_t row = 0; row < 4; ++row) {
    double square = 0.0;
    for (std::int64_t i = 0; i < 10; ++i) square += std::pow(at(source, row * 10 + i), 2.0) / 10.0;
    for (std::int64_t i = 0; i < 10; ++i) {
      expected.push_back(at(source, row * 10 + i) / std::sqrt(square + 1e-3) * at(weight, i));
    }
  }
  CHECK(worst_error(target, expected) < 1e-6);

  // A batch norm behind weights [2, 3], and as factors and terms.
  const std::vector<float> weights{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
  const std::vector<float> variance{3.0F, 8.0F};
  const std::vector<float> mean{0.5F, -1.0F};
  NormFold fold;
  fold.epsilon = 1.0F;
  fold.channels = 2;
  fold.inner = 3;
  std::vector<float> folded(6);
  FoldNormWeights{fold}.run({weights.data(), variance.data(), nullptr, folded.data()});
  CHECK(worst_error(folded, {0.5, 1.0, 1.5, 4.0 / 3, 5.0 / 3, 2.0}) < 1e-6);
  std::vector<float> bias(2);
  FoldNormBias{fold}.run({variance.data(), mean.data(), nullptr, nullptr, nullptr, bias.data()});
  CHECK(worst_error(bias, {-0.25, 1.0 / 3}) < 1e-6);
  std::vector<float> vectors(6, 9.0F);
  NormVectors{1.0F, 2, 3, false, false}.run(
      {variance.data(), mean.data(), nullptr, nullptr, vectors.data()});
  CHECK(worst_error(vectors, {0.5, 1.0 / 3, 0.0, -0.25, 1.0 / 3, 0.0}) < 1e-6);
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#include "kernels/product/gemv.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;
using Kind = EpilogueStep::Kind;

TEST_CASE("Gemv multiplies a few rows on any instruction set and number of threads",
          "[onednn][kernels]") {
  const std::int64_t rows = GENERATE(1, 2, 3, 4);
  const std::int64_t inner = GENERATE(5, 64, 331);
  const std::int64_t columns = GENERATE(1, 48, 1003);
  const auto source = random_floats(rows * (inner + 3), 1);  // rows lie apart
  const auto weight = random_floats(columns * inner, 2);
  const auto bias = random_floats(columns, 3);
  const auto other = random_floats(rows * columns, 4);
  const auto held = random_floats(rows * columns, 5);
  Gemv kernel{.rows = rows, .inner = inner, .columns = columns, .source_row = inner + 3};
  kernel.has_bias = true;
  kernel.epilogue = {
      {Kind::kAccumulate, 0.5F, 0.0F}, {Kind::kMultiply, 0.0F, 0.0F}, {Kind::kClip, -2.0F, 3.0F}};
  std::vector<double> expected;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = static_cast<double>(bias[static_cast<std::size_t>(column)]);
      for (std::int64_t k = 0; k < inner; ++k) {
        sum += static_cast<double>(source[static_cast<std::size_t>(row * (inner + 3) + k)]) *
               static_cast<double>(weight[static_cast<std::size_t>(column * inner + k)]);
      }
      const auto at = static_cast<std::size_t>(row * columns + column);
      sum = (sum + 0.5 * static_cast<double>(held[at])) * static_cast<double>(other[at]);
      expected.push_back(apply_exactly(kernel.epilogue[2], sum));
    }
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      kernel.isa = isa;
      kernel.threads = threads;
      auto target = held;
      kernel.run({source.data(), weight.data(), bias.data(), {other.data()}, target.data()});
      CHECK(worst_error(target, expected) < 5e-6);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

TEST_CASE("Gemv reads weights of 16 bits as the floats that they are", "[onednn][kernels]") {
  const DType type = GENERATE(DType::kFloat16, DType::kBFloat16);
  const std::int64_t rows = GENERATE(1, 3);
  const std::int64_t inner = GENERATE(7, 64, 331);
  const std::int64_t columns = 35;
  const auto source = random_floats(rows * inner, 1);
  auto weight = random_floats(columns * inner, 2);
  weight[0] = 65504.0F;
  weight[1] = -0x1p-24F;  // the least one
  weight[2] = 0x1.8p-16F;
  const std::vector<std::uint16_t> halves = rounded_to(type, weight);
  Gemv kernel{.rows = rows, .inner = inner, .columns = columns, .source_row = inner};
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    kernel.isa = isa;
    std::vector<float> expected(static_cast<std::size_t>(rows * columns));
    std::vector<float> target(expected.size());
    kernel.weight_type = DType::kFloat32;
    kernel.run({source.data(), weight.data(), nullptr, {}, expected.data()});
    kernel.weight_type = type;
    kernel.run({source.data(), nullptr, nullptr, {}, target.data(), halves.data()});
    INFO(rows << " x " << inner << ", " << static_cast<int>(isa));
    // The last few products may be rounded before they are added, or not.
    CHECK(worst_error(target, {expected.begin(), expected.end()}) < 1e-6);
    if (inner % 64 == 0) CHECK(target == expected);
  }
}

}  // namespace npu::onednn

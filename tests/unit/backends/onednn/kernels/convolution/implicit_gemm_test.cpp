// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution/implicit_gemm.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/movement/copies.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Kind = EpilogueStep::Kind;

struct DilatedSize {
  std::int64_t source[2];
  std::int64_t taps[2];
  std::int64_t dilation[2];
  std::int64_t pad[2];
};

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kInputs = 272;  // more than the weights in the L1, and no multiple of them
constexpr std::int64_t kOutputs = 96;

/// The kernel with zeros between its taps, which needs no dilation.
std::vector<float> spread(const std::vector<float>& weight, const DilatedSize& size,
                          const std::int64_t (&extent)[2]) {
  std::vector<float> result(static_cast<std::size_t>(kOutputs * kInputs * extent[0] * extent[1]));
  std::size_t from = 0;
  for (std::int64_t pair = 0; pair < kOutputs * kInputs; ++pair) {
    for (std::int64_t y = 0; y < size.taps[0]; ++y) {
      for (std::int64_t x = 0; x < size.taps[1]; ++x) {
        const std::int64_t row = pair * extent[0] + y * size.dilation[0];
        result[static_cast<std::size_t>(row * extent[1] + x * size.dilation[1])] = weight[from++];
      }
    }
  }
  return result;
}

/// [panels, taps, inputs, panel] of [outputs, inputs, taps].
std::vector<float> in_panels(const std::vector<float>& weight, std::int64_t taps,
                             std::int64_t panel) {
  std::vector<float> result;
  for (std::int64_t first = 0; first < kOutputs; first += panel) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t input = 0; input < kInputs; ++input) {
        for (std::int64_t output = first; output < first + panel; ++output) {
          result.push_back(
              weight[static_cast<std::size_t>((output * kInputs + input) * taps + tap)]);
        }
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("ImplicitGemm gives the convolution's result on any number of threads",
          "[onednn][kernels]") {
  // Rows that lie one behind the other and others; taps that read a part of the source or nothing;
  // more pixels in a row than a piece has; padding that makes the result larger.
  const auto size = GENERATE(DilatedSize{{9, 7}, {3, 3}, {5, 4}, {5, 4}},
                             DilatedSize{{6, 5}, {3, 3}, {12, 1}, {12, 1}},
                             DilatedSize{{13, 11}, {2, 3}, {3, 2}, {0, 1}},
                             DilatedSize{{1, 401}, {1, 3}, {1, 64}, {0, 64}},
                             DilatedSize{{30, 3}, {3, 1}, {7, 1}, {9, 0}});
  std::int64_t extent[2];
  for (int i = 0; i < 2; ++i) extent[i] = (size.taps[i] - 1) * size.dilation[i] + 1;
  const ExactConvolution exact{kBatch,
                               kInputs,
                               kOutputs,
                               1,
                               {size.source[0], size.source[1]},
                               {extent[0], extent[1]},
                               {size.pad[0], size.pad[1]},
                               1};
  const std::int64_t from = size.source[0] * size.source[1];
  const std::int64_t to = exact.target(0) * exact.target(1);
  const std::int64_t taps = size.taps[0] * size.taps[1];
  const auto source = random_floats(kBatch * kInputs * from, 1);
  const auto weight = random_floats(kOutputs * kInputs * taps, 2);
  const auto bias = random_floats(kOutputs, 3);
  const auto other = random_floats(kBatch * kOutputs * to, 4);
  auto expected = exact.run(source, spread(weight, size, extent), bias);
  const std::vector<EpilogueStep> steps{{Kind::kAdd, 0.0F, 0.0F}, {Kind::kRelu, 0.25F, 0.0F}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = apply_exactly(steps[1], expected[i] + static_cast<double>(other[i]));
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(ImplicitGemm::can_run(isa));
    ImplicitGemm kernel;
    kernel.batch = kBatch;
    kernel.source_channels = kInputs;
    kernel.target_channels = kOutputs;
    for (int i = 0; i < 2; ++i) {
      kernel.source_extent[i] = size.source[i];
      kernel.target_extent[i] = exact.target(i);
      kernel.taps[i] = size.taps[i];
      kernel.dilation[i] = size.dilation[i];
      kernel.pad[i] = size.pad[i];
    }
    kernel.has_bias = true;
    kernel.epilogue = steps;
    kernel.isa = isa;
    const auto panels = in_panels(weight, taps, kernel.panel());
    const auto blocks = in_blocks(source, kBatch, kInputs, from, lanes_of(isa));
    const auto operand = in_blocks(other, kBatch, kOutputs, to, lanes_of(isa));
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      kernel.threads = threads;
      std::vector<float> target(operand.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      kernel.run({blocks.data(),
                  panels.data(),
                  bias.data(),
                  {operand.data()},
                  target.data(),
                  scratch.data()});
      INFO(size.source[0] << " x " << size.source[1] << ", " << threads << " threads");
      CHECK(worst_error(from_blocks(target, kBatch, kOutputs, to, lanes_of(isa)), expected) < 1e-5);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

}  // namespace npu::onednn

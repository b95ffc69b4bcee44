// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution/winograd.hpp"

#include <algorithm>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/convolution/winograd_weights.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Kind = EpilogueStep::Kind;

struct KernelSize {
  std::int64_t taps[2];
  std::int64_t pad[2];
  std::int64_t stride = 1;
};

/// [N, frames, blocks, plane] as [N, blocks, frames, plane].
std::vector<float> interleaved(const std::vector<float>& images, std::int64_t frames,
                               std::int64_t blocks, std::int64_t plane) {
  std::vector<float> result(images.size());
  const auto count = static_cast<std::int64_t>(images.size()) / plane;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = i / (frames * blocks);
    const std::int64_t to = (n * blocks + i % blocks) * frames + i / blocks % frames;
    std::copy_n(images.begin() + i * plane, plane, result.begin() + to * plane);
  }
  return result;
}

}  // namespace

TEST_CASE("every Winograd filter gives the convolution's result on any number of threads",
          "[onednn][kernels]") {
  const auto [taps, pad, stride] = GENERATE(
      KernelSize{{3, 3}, {1, 1}}, KernelSize{{3, 3}, {1, 0}, 2}, KernelSize{{5, 5}, {2, 0}},
      KernelSize{{1, 3}, {0, 1}}, KernelSize{{3, 1}, {1, 0}}, KernelSize{{1, 5}, {0, 2}},
      KernelSize{{5, 1}, {2, 0}}, KernelSize{{1, 7}, {0, 3}}, KernelSize{{7, 1}, {3, 0}});
  // Neither extents nor channels are multiples of anything but 16.
  const ExactConvolution exact{1,     32, 48, 1, {13, 11}, {taps[0], taps[1]}, {pad[0], pad[1]},
                               stride};
  const std::int64_t height = exact.target(0);
  const std::int64_t width = exact.target(1);
  const auto source = random_floats(32 * 13 * 11, 1);
  const auto weight = random_floats(48 * 32 * taps[0] * taps[1], 2);
  const auto bias = random_floats(48, 3);
  const auto other = random_floats(48 * height * width, 4);
  auto expected = exact.run(source, weight, bias);
  const std::vector<EpilogueStep> steps{{Kind::kAdd, 0.0F, 0.0F}, {Kind::kRelu, 0.25F, 0.0F}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = apply_exactly(steps[1], expected[i] + static_cast<double>(other[i]));
  }
  const auto filters = winograd_filters(taps[0], taps[1], stride);
  REQUIRE(!filters.empty());
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(Winograd::can_run(isa));
    for (const Winograd::Filter& filter : filters) {
      std::vector<float> first;
      for (const int threads : {1, 3}) {
        Winograd kernel;
        kernel.filter = filter;
        kernel.source_channels = 32;
        kernel.target_channels = 48;
        for (int i = 0; i < 2; ++i) {
          kernel.source_extent[i] = exact.extent[i];
          kernel.target_extent[i] = exact.target(i);
          kernel.pad[i] = pad[i];
        }
        kernel.has_bias = true;
        kernel.epilogue = steps;
        kernel.threads = threads;
        kernel.isa = isa;
        std::vector<float> transformed(kernel.weight_floats());
        WinogradWeights{kernel}.run({weight.data(), transformed.data()});
        const auto blocks = in_blocks(source, 1, 32, 13 * 11, lanes_of(isa));
        const auto operand = in_blocks(other, 1, 48, height * width, lanes_of(isa));
        std::vector<float> target(operand.size());
        std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
        kernel.run({blocks.data(),
                    transformed.data(),
                    bias.data(),
                    {operand.data()},
                    target.data(),
                    scratch.data()});
        INFO("F(" << filter.tile[0] << " x " << filter.tile[1] << ", " << taps[0] << " x "
                  << taps[1] << "), " << threads << " threads");
        CHECK(worst_error(from_blocks(target, 1, 48, height * width, lanes_of(isa)), expected) <
              2e-5);
        if (first.empty()) first = target;
        CHECK(target == first);
      }
    }
  }
}

TEST_CASE("Winograd's images may lie within blocks of channels, as frames do",
          "[onednn][kernels]") {
  const std::int64_t stride = GENERATE(1, 2);
  constexpr std::int64_t kFrames = 3;
  const ExactConvolution exact{2 * kFrames, 32, 48, 1, {13, 11}, {3, 3}, {1, 1}, stride};
  auto source = random_floats(2 * kFrames * 32 * 13 * 11, 1);
  source[5 * 32 * 13 * 11 + 100] = 1e30F;  // a tile by the definition
  const auto weight = random_floats(48 * 32 * 9, 2);
  const std::int64_t pixels = exact.target(0) * exact.target(1);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    const std::int64_t lanes = lanes_of(isa);
    for (const Winograd::Filter& filter : winograd_filters(3, 3, stride)) {
      Winograd kernel;
      kernel.filter = filter;
      kernel.batch = exact.batch;
      kernel.source_channels = 32;
      kernel.target_channels = 48;
      for (int i = 0; i < 2; ++i) {
        kernel.source_extent[i] = exact.extent[i];
        kernel.target_extent[i] = exact.target(i);
        kernel.pad[i] = exact.pad[i];
      }
      kernel.isa = isa;
      std::vector<float> transformed(kernel.weight_floats());
      WinogradWeights{kernel}.run({weight.data(), transformed.data()});
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      const auto run = [&](const std::vector<float>& blocks) {
        std::vector<float> target(static_cast<std::size_t>(exact.batch * 48 * pixels));
        kernel.run({blocks.data(), transformed.data(), nullptr, {}, target.data(), scratch.data()});
        return target;
      };
      const auto images = in_blocks(source, exact.batch, 32, 13 * 11, lanes);
      const auto expected = run(images);
      kernel.frames = kFrames;
      const auto found = run(interleaved(images, kFrames, 32 / lanes, 13 * 11 * lanes));
      CHECK(found == interleaved(expected, kFrames, 48 / lanes, pixels * lanes));
    }
  }
}

TEST_CASE("Winograd has no filter for kernels that it does not compute", "[onednn][kernels]") {
  CHECK(winograd_filters(1, 1).empty());
  CHECK(winograd_filters(4, 4).empty());
  CHECK(winograd_filters(5, 5, 2).empty());
  CHECK(winograd_filters(3, 3, 3).empty());
  CHECK(!Winograd::can_run(VectorIsa::kAny));
}

}  // namespace npu::onednn

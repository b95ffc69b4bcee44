// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution/expand_depthwise.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/base/elements.hpp"

namespace npu::onednn {

using namespace test;
using Kind = EpilogueStep::Kind;

TEST_CASE("ExpandDepthwise computes both convolutions", "[onednn][kernels]") {
  const std::int64_t taps = GENERATE(3, 5);
  const std::int64_t stride = GENERATE(1, 2);
  const std::int64_t pad = GENERATE(0, 2);
  const EpilogueStep step =
      GENERATE(EpilogueStep{Kind::kRelu, 0.0F, 0.0F},  // in registers
               EpilogueStep{Kind::kSwish, 1.0F, 0.0F}, EpilogueStep{Kind::kHardSwish, 0.0F, 0.0F});
  const std::int64_t inputs = GENERATE(20, 24);
  const std::int64_t channels = GENERATE(48, 56);  // one fills no blocks of 16
  const ExactConvolution expand{2, inputs, channels, 1, {17, 11}, {1, 1}, {0, 0}, 1};
  const ExactConvolution filter{2,          1,     channels, channels, {17, 11}, {taps, taps},
                                {pad, pad}, stride};
  const auto source = random_floats(2 * inputs * 17 * 11, 1);
  const auto expand_weight = random_floats(channels * inputs, 2);
  const auto filter_weight = random_floats(channels * taps * taps, 3);
  const auto expand_bias = random_floats(channels, 4);
  const auto filter_bias = random_floats(channels, 5);
  auto middle = expand.run(source, expand_weight, expand_bias);
  for (double& value : middle) value = apply_exactly(step, value);
  auto expected = filter.run(middle, filter_weight, filter_bias);
  for (double& value : expected) value = apply_exactly(step, value);

  ExpandDepthwise kernel;
  kernel.batch = 2;
  kernel.source_channels = inputs;
  kernel.channels = channels;
  for (int i = 0; i < 2; ++i) {
    kernel.source_extent[i] = expand.extent[i];
    kernel.target_extent[i] = filter.target(i);
    kernel.pad[i] = pad;
  }
  kernel.taps = taps;
  kernel.stride = stride;
  kernel.expand_has_bias = kernel.depthwise_has_bias = true;
  kernel.expand_epilogue = kernel.depthwise_epilogue = {step};
  std::vector<float> ordered_expand(expand_weight.size());
  std::vector<float> ordered_filter(filter_weight.size());
  const std::int64_t pixels = filter.target(0) * filter.target(1);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(ExpandDepthwise::can_run(isa));
    const std::int64_t lanes = lanes_of(isa);
    if (channels % lanes != 0 || (isa != VectorIsa::kAvx512 && inputs % lanes != 0)) continue;
    PanelWeights{channels, inputs, 2 * lanes}.run({expand_weight.data(), ordered_expand.data()});
    PanelWeights{channels, taps * taps, 2 * lanes}.run(
        {filter_weight.data(), ordered_filter.data()});
    const auto blocks = in_blocks(source, 2, inputs, 17 * 11, lanes);
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      kernel.isa = isa;
      kernel.threads = threads;
      std::vector<float> target(static_cast<std::size_t>(2 * channels * pixels));
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      kernel.run({bytes(blocks), ordered_expand.data(), ordered_filter.data(), expand_bias.data(),
                  filter_bias.data(), bytes(target), scratch.data()});
      INFO(taps << " taps, stride " << stride << ", padding " << pad);
      CHECK(worst_error(from_blocks(target, 2, channels, pixels, lanes), expected) < 1e-5);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

TEST_CASE("ExpandDepthwise of bfloat16 rounds factors and results, and nothing between",
          "[onednn][kernels]") {
  if (!cpu_multiplies_bfloat16()) return;
  const std::int64_t taps = GENERATE(3, 5);
  const std::int64_t stride = GENERATE(1, 2);
  const EpilogueStep step = GENERATE(EpilogueStep{Kind::kRelu, 0.0F, 0.0F},  // in registers
                                     EpilogueStep{Kind::kSwish, 1.0F, 0.0F});
  constexpr std::int64_t kInputs = 20;
  constexpr std::int64_t kChannels = 48;
  const ExactConvolution expand{2, kInputs, kChannels, 1, {17, 11}, {1, 1}, {0, 0}, 1};
  const ExactConvolution filter{2, 1, kChannels, kChannels, {17, 11}, {taps, taps}, {1, 1}, stride};
  const auto rounded = [](std::vector<float> values) {
    for (float& value : values) value = load(BFloat16{rounded_bits(value)});
    return values;
  };
  const auto source = rounded(random_floats(2 * kInputs * 17 * 11, 1));
  const auto expand_weight = random_floats(kChannels * kInputs, 2);
  const auto filter_weight = random_floats(kChannels * taps * taps, 3);
  const auto expand_bias = random_floats(kChannels, 4);
  auto middle = expand.run(source, rounded(expand_weight), expand_bias);
  for (double& value : middle) value = apply_exactly(step, value);
  auto expected = filter.run(middle, filter_weight, {});
  for (double& value : expected) value = apply_exactly(step, value);

  ExpandDepthwise kernel;
  kernel.batch = 2;
  kernel.source_channels = kInputs;
  kernel.channels = kChannels;
  kernel.bfloat16 = true;
  kernel.isa = VectorIsa::kAvx512;
  for (int i = 0; i < 2; ++i) {
    kernel.source_extent[i] = expand.extent[i];
    kernel.target_extent[i] = filter.target(i);
    kernel.pad[i] = 1;
  }
  kernel.taps = taps;
  kernel.stride = stride;
  kernel.expand_has_bias = true;
  kernel.expand_epilogue = kernel.depthwise_epilogue = {step};
  const PanelWeights pairs{kChannels, kInputs, 32, true};
  std::vector<float> ordered_expand(pairs.floats());
  std::vector<float> ordered_filter(filter_weight.size());
  pairs.run({expand_weight.data(), ordered_expand.data()});
  PanelWeights{kChannels, taps * taps}.run({filter_weight.data(), ordered_filter.data()});
  std::vector<std::uint16_t> blocks;
  for (const float value : in_blocks(source, 2, kInputs, 17 * 11)) {
    blocks.push_back(rounded_bits(value));
  }
  const std::int64_t pixels = filter.target(0) * filter.target(1);
  std::vector<std::uint16_t> first;
  for (const int threads : {1, 3}) {
    kernel.threads = threads;
    std::vector<std::uint16_t> target(static_cast<std::size_t>(2 * kChannels * pixels));
    std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
    kernel.run({bytes(blocks), ordered_expand.data(), ordered_filter.data(), expand_bias.data(),
                nullptr, bytes(target), scratch.data()});
    std::vector<float> results;
    for (const std::uint16_t bits : target) results.push_back(load(BFloat16{bits}));
    INFO(taps << " taps, stride " << stride);
    // Half a unit of the last of 8 bits, and the error of sums.
    CHECK(worst_error(from_blocks(results, 2, kChannels, pixels), expected) < 0x1p-8 + 1e-5);
    if (first.empty()) first = target;
    CHECK(target == first);
  }
}

}  // namespace npu::onednn

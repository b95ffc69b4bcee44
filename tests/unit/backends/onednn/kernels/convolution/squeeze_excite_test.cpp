// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution/squeeze_excite.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("SqueezeExcite scales channels by their gates", "[onednn][kernels]") {
  const bool hard_gate = GENERATE(false, true);
  const bool channels_last = GENERATE(false, true);
  const std::int64_t hidden = GENERATE(1, 10);
  constexpr std::int64_t kImages = 2;
  constexpr std::int64_t kChannels = 48;
  constexpr std::int64_t kPixels = 713;
  const auto source = random_floats(kImages * kChannels * kPixels, 1);
  const auto hidden_weight = random_floats(hidden * kChannels, 2);
  const auto gate_weight = random_floats(kChannels * hidden, 3);
  const auto hidden_bias = random_floats(hidden, 4);
  const auto gate_bias = random_floats(kChannels, 5);
  const EpilogueStep swish{EpilogueStep::Kind::kSwish, 1.0F, 0.0F};
  const auto at = [](const std::vector<float>& values, std::int64_t i) {
    return static_cast<double>(values[static_cast<std::size_t>(i)]);
  };
  std::vector<double> expected;
  for (std::int64_t n = 0; n < kImages; ++n) {
    std::vector<double> units;
    for (std::int64_t u = 0; u < hidden; ++u) {
      double sum = at(hidden_bias, u);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        double mean = 0.0;
        for (std::int64_t p = 0; p < kPixels; ++p) {
          mean += at(source, (n * kChannels + c) * kPixels + p) / kPixels;
        }
        sum += mean * at(hidden_weight, u * kChannels + c);
      }
      units.push_back(apply_exactly(swish, sum));
    }
    for (std::int64_t c = 0; c < kChannels; ++c) {
      double sum = at(gate_bias, c);
      for (std::int64_t u = 0; u < hidden; ++u) {
        sum += units[static_cast<std::size_t>(u)] * at(gate_weight, c * hidden + u);
      }
      const double gate =
          hard_gate ? std::clamp(sum / 6.0 + 0.5, 0.0, 1.0) : 1.0 / (1.0 + std::exp(-sum));
      for (std::int64_t p = 0; p < kPixels; ++p) {
        expected.push_back(gate * at(source, (n * kChannels + c) * kPixels + p));
      }
    }
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    const std::int64_t lanes = lanes_of(isa);
    REQUIRE(SqueezeExcite::supports(lanes, isa));
    CHECK(!SqueezeExcite::supports(24 - lanes, isa));
    const std::int64_t block = channels_last ? kChannels : lanes;
    const auto blocks = in_blocks(source, kImages, kChannels, kPixels, block);
    std::vector<float> ordered(gate_weight.size());
    GateWeights{kChannels, lanes, hidden}.run({gate_weight.data(), ordered.data()});
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      SqueezeExcite kernel;
      kernel.batch = kImages;
      kernel.channels = kChannels;
      kernel.lanes = lanes;
      kernel.channels_last = channels_last;
      kernel.spatial = kPixels;
      kernel.hidden = hidden;
      kernel.activation = swish;
      kernel.hard_gate = hard_gate;
      kernel.has_hidden_bias = kernel.has_gate_bias = true;
      kernel.threads = threads;
      kernel.isa = isa;
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      auto target = blocks;  // in place
      auto* bytes = static_cast<std::byte*>(static_cast<void*>(target.data()));
      kernel.run({bytes, hidden_weight.data(), ordered.data(), hidden_bias.data(), gate_bias.data(),
                  bytes, scratch.data()});
      CHECK(worst_error(from_blocks(target, kImages, kChannels, kPixels, block), expected) < 2e-6);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution/grouped_convolution.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Kind = EpilogueStep::Kind;

struct GroupedSize {
  std::int64_t groups;
  std::int64_t inputs;  ///< of a group, as the next
  std::int64_t outputs;
};

struct Walk {
  std::int64_t source[2];
  std::int64_t taps[2];
  std::int64_t stride;
  std::int64_t pad[2];
};

/// [outputs / lanes, inputs, taps, lanes] of [outputs, inputs, taps].
std::vector<float> in_order(const std::vector<float>& weight, std::int64_t inner,
                            std::int64_t lanes) {
  std::vector<float> result;
  const std::int64_t outputs = static_cast<std::int64_t>(weight.size()) / inner;
  for (std::int64_t first = 0; first < outputs; first += lanes) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        result.push_back(weight[static_cast<std::size_t>((first + lane) * inner + i)]);
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("GroupedConvolution gives the convolution's result on any number of threads",
          "[onednn][kernels]") {
  // Several groups in a vector, one that ends within one, more inputs than results and fewer,
  // inputs from several vectors.
  const auto size = GENERATE(GroupedSize{32, 4, 4}, GroupedSize{8, 2, 6}, GroupedSize{16, 1, 3},
                             GroupedSize{4, 12, 12}, GroupedSize{8, 8, 2}, GroupedSize{2, 40, 8},
                             GroupedSize{6, 8, 8}, GroupedSize{16, 3, 1});
  // Rows and columns that are all padding, tiles of columns, a stride above 2 and above the taps.
  const auto walk = GENERATE(Walk{{9, 33}, {3, 3}, 1, {1, 1}}, Walk{{7, 6}, {3, 2}, 2, {2, 0}},
                             Walk{{5, 11}, {1, 3}, 3, {0, 2}}, Walk{{8, 7}, {1, 1}, 3, {0, 0}},
                             Walk{{2, 3}, {5, 5}, 1, {4, 4}}, Walk{{1, 150}, {1, 9}, 1, {0, 4}});
  constexpr std::int64_t kBatch = 2;
  const std::int64_t from_channels = size.groups * size.inputs;
  const std::int64_t to_channels = size.groups * size.outputs;
  const ExactConvolution exact{kBatch,
                               size.inputs,
                               to_channels,
                               size.groups,
                               {walk.source[0], walk.source[1]},
                               {walk.taps[0], walk.taps[1]},
                               {walk.pad[0], walk.pad[1]},
                               walk.stride};
  const std::int64_t from = walk.source[0] * walk.source[1];
  const std::int64_t to = exact.target(0) * exact.target(1);
  const std::int64_t inner = size.inputs * walk.taps[0] * walk.taps[1];
  const auto source = random_floats(kBatch * from_channels * from, 1);
  const auto weight = random_floats(to_channels * inner, 2);
  const auto bias = random_floats(to_channels, 3);
  const auto other = random_floats(kBatch * to_channels * to, 4);
  auto expected = exact.run(source, weight, bias);
  const std::vector<EpilogueStep> steps{{Kind::kAdd, 0.0F, 0.0F}, {Kind::kRelu, 0.25F, 0.0F}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = apply_exactly(steps[1], expected[i] + static_cast<double>(other[i]));
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(GroupedConvolution::can_run(isa));
    const std::int64_t lanes = lanes_of(isa);
    if (from_channels % lanes != 0 || to_channels % lanes != 0) continue;
    GroupedConvolution kernel;
    kernel.batch = kBatch;
    kernel.groups = size.groups;
    kernel.source_channels = from_channels;
    kernel.target_channels = to_channels;
    for (int i = 0; i < 2; ++i) {
      kernel.source_extent[i] = walk.source[i];
      kernel.target_extent[i] = exact.target(i);
      kernel.taps[i] = walk.taps[i];
      kernel.stride[i] = walk.stride;
      kernel.pad[i] = walk.pad[i];
    }
    kernel.has_bias = true;
    kernel.epilogue = steps;
    kernel.isa = isa;
    const auto ordered = in_order(weight, inner, lanes);
    const auto blocks = in_blocks(source, kBatch, from_channels, from, lanes);
    const auto operand = in_blocks(other, kBatch, to_channels, to, lanes);
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      kernel.threads = threads;
      std::vector<float> target(operand.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      kernel.run({blocks.data(),
                  ordered.data(),
                  bias.data(),
                  {operand.data()},
                  target.data(),
                  scratch.data()});
      INFO(size.groups << " groups of " << size.inputs << " to " << size.outputs << ", "
                       << walk.source[0] << " x " << walk.source[1] << ", " << threads
                       << " threads");
      CHECK(worst_error(from_blocks(target, kBatch, to_channels, to, lanes), expected) < 1e-5);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

}  // namespace npu::onednn

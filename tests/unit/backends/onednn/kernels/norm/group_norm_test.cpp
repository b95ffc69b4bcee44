// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm/group_norm.hpp"

#include <cmath>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

/// The definition, of plain channels.
std::vector<double> expected_of(const GroupNorm& call, const std::vector<float>& source,
                                const std::vector<float>& weight, const std::vector<float>& bias) {
  const std::int64_t channels = call.vector;
  const std::int64_t count = call.group_size * call.spatial;
  std::vector<double> result(source.begin(), source.end());
  for (std::int64_t group = 0; group < call.outer * channels / call.group_size; ++group) {
    double* values = result.data() + group * count;
    double mean = 0.0;
    double variance = 0.0;
    for (std::int64_t i = 0; i < count; ++i) mean += values[i] / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      variance += (values[i] - mean) * (values[i] - mean) / static_cast<double>(count);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto channel =
          static_cast<std::size_t>((group * call.group_size + i / call.spatial) % channels);
      values[i] = (values[i] - mean) / std::sqrt(variance + static_cast<double>(call.epsilon)) *
                      static_cast<double>(weight[channel]) +
                  static_cast<double>(bias[channel]);
    }
  }
  return result;
}

std::vector<float> run_norm(const GroupNorm& call, const std::vector<float>& source,
                            const std::vector<float>& weight, const std::vector<float>& bias) {
  const std::vector<float> held =
      call.lanes == 1 ? source : in_blocks(source, call.outer, call.vector, call.spatial);
  std::vector<float> target(held.size(), -1.0F);
  call.run({static_cast<const std::byte*>(static_cast<const void*>(held.data())), weight.data(),
            bias.data(), static_cast<std::byte*>(static_cast<void*>(target.data()))});
  if (call.lanes == 1) return target;
  const auto plain = from_blocks(target, call.outer, call.vector, call.spatial);
  CHECK(in_blocks(plain, call.outer, call.vector, call.spatial) == target);  // zeros stay zeros
  return plain;
}

}  // namespace

TEST_CASE("GroupNorm gives every group its own mean and variance", "[onednn][kernels]") {
  struct Case {
    std::int64_t channels;
    std::int64_t group_size;
  };
  const auto [channels, group_size] =
      GENERATE(Case{24, 1}, Case{24, 4}, Case{64, 32}, Case{48, 16}, Case{15, 5});
  GroupNorm call;
  call.outer = 2;
  call.spatial = GENERATE(1, 37, 400);
  call.vector = channels;
  call.group_size = group_size;
  call.epsilon = 1e-3F;
  call.has_weight = call.has_bias = true;
  auto source = random_floats(2 * channels * call.spatial, 1);
  for (float& value : source) value = value * 0.5F + 3.0F;
  const auto weight = random_floats(channels, 2);
  const auto bias = random_floats(channels, 3);
  const auto expected = expected_of(call, source, weight, bias);
  for (const std::int64_t lanes : {1, 16}) {
    if (!GroupNorm::supports(lanes, group_size)) continue;
    call.lanes = lanes;
    call.channels = ceil_div(channels, lanes) * lanes;
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      call.isa = isa;
      CHECK(worst_error(run_norm(call, source, weight, bias), expected) < 2e-5);
    }
  }
}

TEST_CASE("a number that is none stays in its group", "[onednn][kernels]") {
  GroupNorm call;
  call.channels = call.vector = call.lanes = 16;
  call.group_size = 4;
  call.spatial = 9;
  call.has_weight = call.has_bias = true;
  auto source = random_floats(16 * 9, 1);
  source[5 * 9 + 3] = NAN;
  const std::vector<float> ones(16, 1.0F);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    call.isa = isa;
    const auto held = in_blocks(source, 1, 16, 9);
    std::vector<float> target(held.size());
    call.run({static_cast<const std::byte*>(static_cast<const void*>(held.data())), ones.data(),
              ones.data(), static_cast<std::byte*>(static_cast<void*>(target.data()))});
    for (std::size_t i = 0; i < target.size(); ++i) {
      CHECK(std::isnan(target[i]) == (i % 16 / 4 == 1));
    }
  }
}

}  // namespace npu::onednn

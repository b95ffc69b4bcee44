// SPDX-License-Identifier: Apache-2.0
#include "kernels/sampling/resample.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

/// Taps at random places, with weights that add up to about 1.
std::vector<Tap> random_taps(std::int64_t extent, std::int64_t width, std::int64_t target,
                             unsigned seed) {
  const auto numbers = random_floats(width * target * 2, seed);
  std::vector<Tap> taps;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    const auto place =
        static_cast<std::int64_t>((numbers[i] + 1.0F) / 2 * static_cast<float>(extent));
    taps.push_back({std::min(place, extent - 1), numbers[i + 1]});
  }
  return taps;
}

std::vector<double> expected_of(const Resample& call, const std::vector<float>& source) {
  std::vector<double> result;
  std::int64_t extents[3];
  for (int i = 0; i < 3; ++i) extents[i] = call.target_extent(i);
  const auto count = call.planes * extents[0] * extents[1] * extents[2] * call.lanes;
  for (std::int64_t at = 0; at < count; ++at) {
    const std::int64_t lane = at % call.lanes;
    const std::int64_t x = at / call.lanes % extents[2];
    const std::int64_t y = at / call.lanes / extents[2] % extents[1];
    const std::int64_t z = at / call.lanes / extents[2] / extents[1] % extents[0];
    const std::int64_t plane = at / call.lanes / extents[2] / extents[1] / extents[0];
    double sum = 0.0;
    for (std::int64_t i = 0; i < call.width[0] * call.width[1] * call.width[2]; ++i) {
      const auto tap = [&](int d, std::int64_t place, std::int64_t which) {
        return call.taps[d][static_cast<std::size_t>(place * call.width[d] + which)];
      };
      const Tap a = tap(0, z, i / call.width[2] / call.width[1]);
      const Tap b = tap(1, y, i / call.width[2] % call.width[1]);
      const Tap c = tap(2, x, i % call.width[2]);
      const std::int64_t from =
          (((plane * call.extents[0] + a.index) * call.extents[1] + b.index) * call.extents[2] +
           c.index) *
              call.lanes +
          lane;
      sum += static_cast<double>(a.weight) * static_cast<double>(b.weight) *
             static_cast<double>(c.weight) *
             static_cast<double>(source[static_cast<std::size_t>(from)]);
    }
    result.push_back(sum);
  }
  return result;
}

}  // namespace

TEST_CASE("Resample adds up taps along every dimension", "[onednn][kernels]") {
  const std::int64_t lanes = GENERATE(1, 16, 19);
  const std::int64_t width = GENERATE(1, 2, 3, 4);
  const bool has_volume = GENERATE(false, true);
  const bool adds = GENERATE(false, true);
  Resample call;
  call.adds = call.relu = adds;
  call.planes = 3;
  call.lanes = lanes;
  call.extents[0] = has_volume ? 3 : 1;
  call.extents[1] = 6;
  call.extents[2] = 9;
  for (int i = has_volume ? 0 : 1; i < 3; ++i) {
    call.width[i] = width;
    call.taps[i] = random_taps(call.extents[i], width, 7 + i * 11, static_cast<unsigned>(i));
  }
  const auto source =
      random_floats(call.planes * call.extents[0] * call.extents[1] * call.extents[2] * lanes, 5);
  std::vector<double> expected = expected_of(call, source);
  std::vector<float> before(expected.size());
  if (adds) {
    before = random_floats(static_cast<std::int64_t>(expected.size()), 7);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = std::max(0.0, expected[i] + static_cast<double>(before[i]));
    }
  }
  const auto bytes = [](const float* floats) {
    return static_cast<const std::byte*>(static_cast<const void*>(floats));
  };
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      call.isa = isa;
      call.threads = threads;
      std::vector<float> target = before;
      std::vector<float> scratch(call.scratch_bytes() / sizeof(float));
      call.run({bytes(source.data()), static_cast<std::byte*>(static_cast<void*>(target.data())),
                scratch.data()});
      CHECK(worst_error(target, expected) < 5e-6);
      if (first.empty()) first = target;
      CHECK(target == first);
    }
  }
}

}  // namespace npu::onednn

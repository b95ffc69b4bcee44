// SPDX-License-Identifier: Apache-2.0
#include "kernels/sampling/grid_sample.hpp"

#include <cmath>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Mode = GridSample::Mode;
using Padding = GridSample::Padding;

/// Where a position lies after padding, by reflecting it as often as needed.
double padded(const GridSample& call, double x, std::int64_t extent) {
  const auto last = static_cast<double>(extent - 1);
  const double edge = call.align_corners ? 0.0 : 0.5;
  if (call.padding == Padding::kZeros) return x;
  if (call.padding == Padding::kReflection) {
    if (extent == 1 && call.align_corners) return 0.0;
    while (x < -edge || x > last + edge) {
      x = x < -edge ? -2 * edge - x : 2 * (last + edge) - x;
    }
  }
  return std::min(std::max(x, 0.0), last);
}

/// The factors of elements along one dimension, one for each from -3 to extent + 3.
std::vector<double> factors_of(const GridSample& call, float coordinate, std::int64_t extent) {
  const auto size = static_cast<double>(extent);
  double x = call.align_corners ? (static_cast<double>(coordinate) + 1) / 2 * (size - 1)
                                : ((static_cast<double>(coordinate) + 1) * size - 1) / 2;
  std::vector<double> result(static_cast<std::size_t>(extent), 0.0);
  const auto add = [&](double place, double factor) {
    if (place < 0 || place > size - 1) return;
    result[static_cast<std::size_t>(place)] += factor;
  };
  if (call.mode == Mode::kBicubic) {
    const double below = std::floor(x);
    for (int i = -1; i <= 2; ++i) {
      const double d = std::abs(x - (below + i));
      const double factor =
          d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : ((-0.75 * d + 3.75) * d - 6) * d + 3;
      add(padded(call, below + i, extent), factor);
    }
    return result;
  }
  x = padded(call, x, extent);
  if (call.mode == Mode::kNearest) {
    add(std::nearbyint(x), 1.0);
  } else {
    add(std::floor(x), 1.0 - (x - std::floor(x)));
    add(std::floor(x) + 1, x - std::floor(x));
  }
  return result;
}

std::vector<float> run_sample(const GridSample& call, const std::vector<float>& source,
                              const std::vector<float>& grid) {
  std::vector<float> target(static_cast<std::size_t>(
      call.batch * call.channels * call.target_extent[0] * call.target_extent[1]));
  call.run({source.data(), grid.data(), target.data()});
  return target;
}

}  // namespace

TEST_CASE("GridSample interpolates at any position", "[onednn][kernels]") {
  GridSample call;
  call.mode = GENERATE(Mode::kBilinear, Mode::kNearest, Mode::kBicubic);
  call.padding = GENERATE(Padding::kZeros, Padding::kBorder, Padding::kReflection);
  call.align_corners = GENERATE(false, true);
  call.batch = 2;
  call.channels = 3;
  call.source_extent[0] = 5;
  call.source_extent[1] = 7;
  call.target_extent[0] = 9;
  call.target_extent[1] = 11;
  const std::int64_t places = 9 * 11;
  const auto source = random_floats(2 * 3 * 5 * 7, 1);
  auto grid = random_floats(2 * places * 2, 2);
  for (float& value : grid) value *= 2.5F;
  std::vector<double> expected;
  for (std::int64_t plane = 0; plane < 6; ++plane) {
    for (std::int64_t i = 0; i < places; ++i) {
      const auto at = static_cast<std::size_t>(2 * (plane / 3 * places + i));
      const auto columns = factors_of(call, grid[at], 7);
      const auto rows = factors_of(call, grid[at + 1], 5);
      double sum = 0.0;
      for (std::size_t k = 0; k < 35; ++k) {
        sum += rows[k / 7] * columns[k % 7] *
               static_cast<double>(source[static_cast<std::size_t>(plane) * 35 + k]);
      }
      expected.push_back(sum);
    }
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    call.isa = isa;
    CHECK(worst_error(run_sample(call, source, grid), expected) < 1e-5);
  }
}

TEST_CASE("GridSample takes positions that are no number as PyTorch does", "[onednn][kernels]") {
  GridSample call;
  call.source_extent[0] = call.source_extent[1] = 3;
  call.target_extent[1] = 4;
  const std::vector<float> source{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> grid{NAN, 0.0F, 0.0F, NAN, 1e30F, 0.0F, -1e30F, -1e30F};
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    call.isa = isa;
    call.padding = Padding::kZeros;
    auto result = run_sample(call, source, grid);
    CHECK(std::isnan(result[0]));
    CHECK(std::isnan(result[1]));
    CHECK(result[2] == 0.0F);
    CHECK(result[3] == 0.0F);
    call.padding = Padding::kBorder;  // NaN becomes the first element
    CHECK(run_sample(call, source, grid) == std::vector<float>{4, 2, 6, 1});
  }
}

}  // namespace npu::onednn

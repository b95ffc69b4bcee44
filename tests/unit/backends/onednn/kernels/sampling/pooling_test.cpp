// SPDX-License-Identifier: Apache-2.0
// Pooling of planes in rows, beside its definition in float64.
#include "kernels/sampling/pooling.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;

std::vector<double> pooled_exactly(const WindowPool& call, const std::vector<float>& source) {
  const auto joined = [&](std::int64_t plane, const Window& slice, const Window& row,
                          const Window& column) {
    double result = call.is_maximum ? -std::numeric_limits<double>::infinity() : 0.0;
    for (std::int64_t z = slice.begin; z < slice.end; z += call.step[0]) {
      for (std::int64_t y = row.begin; y < row.end; y += call.step[1]) {
        for (std::int64_t x = column.begin; x < column.end; x += call.step[2]) {
          const std::int64_t at =
              ((plane * call.extents[0] + z) * call.extents[1] + y) * call.extents[2] + x;
          const auto value = static_cast<double>(source[static_cast<std::size_t>(at)]);
          result = call.is_maximum ? std::max(result, value) : result + value;
        }
      }
    }
    const std::int64_t divisor = call.divisor_override != 0
                                     ? call.divisor_override
                                     : slice.divisor * row.divisor * column.divisor;
    return call.is_maximum ? result : result / static_cast<double>(divisor);
  };
  std::vector<double> result;
  for (std::int64_t plane = 0; plane < call.planes; ++plane) {
    for (const Window& slice : call.windows[0]) {
      for (const Window& row : call.windows[1]) {
        for (const Window& column : call.windows[2]) {
          result.push_back(joined(plane, slice, row, column));
        }
      }
    }
  }
  return result;
}

/// Windows of `kernel` elements, `dilation` apart, as pooling with padding has them.
std::vector<Window> even_windows(std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t padding, std::int64_t dilation) {
  std::vector<Window> result;
  const std::int64_t span = dilation * (kernel - 1) + 1;
  for (std::int64_t start = -padding; start + span <= extent + padding; start += stride) {
    std::int64_t begin = start;
    while (begin < 0) begin += dilation;
    const std::int64_t end = std::min(start + span, extent);
    result.push_back({begin, end, kernel});
  }
  return result;
}

void check_pool(WindowPool call) {
  const auto source =
      random_floats(call.planes * call.extents[0] * call.extents[1] * call.extents[2], 3);
  const auto expected = pooled_exactly(call, source);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    call.isa = isa;
    std::vector<float> target(expected.size());
    call.run({bytes(source), bytes(target)});
    CHECK(worst_error(target, expected) < (call.is_maximum ? 1e-30 : 1e-7));
  }
}

}  // namespace

TEST_CASE("WindowPool joins windows of every stride, step and padding", "[onednn][kernels]") {
  WindowPool call;
  call.is_maximum = GENERATE(false, true);
  call.planes = 2;
  call.extents[0] = 3;
  call.extents[1] = 9;
  call.extents[2] = 37;
  const std::int64_t stride = GENERATE(1, 2, 3, 5);
  const std::int64_t dilation = GENERATE(1, 2, 4);
  const std::int64_t padding = GENERATE(0, 1);
  call.step[1] = call.step[2] = dilation;
  call.windows = {even_windows(3, 2, 1, 0, 1), even_windows(9, 3, stride, padding, dilation),
                  even_windows(37, 3, stride, padding, dilation)};
  check_pool(call);
}

TEST_CASE("WindowPool joins uneven windows and those wider than it takes at a time",
          "[onednn][kernels]") {
  WindowPool call;
  call.is_maximum = GENERATE(false, true);
  call.planes = 2;
  call.extents[1] = 2;
  call.extents[2] = 5000;
  call.windows[1] = {{0, 2, 2}, {1, 2, 1}};
  call.step[2] = GENERATE(1, 3, 1024, 2500);
  call.divisor_override = GENERATE(0, -7);
  call.windows[2] = {{0, 5000, 100}, {10, 1034, 3}, {11, 1036, 3}, {4000, 4001, 1},
                     {0, 3, 5},      {3, 5, 5},     {5, 8, 5},     {2, 2000, 9},
                     {7, 9, 2},      {7, 9, 2},     {7, 9, 2},     {6, 8, 2}};
  check_pool(call);
  for (std::int64_t i = 0; i < 3000; ++i) call.windows[2].push_back({i, i + 1, 1});
  check_pool(call);
}

TEST_CASE("WindowPool of a maximum keeps NaN and has -inf of nothing", "[onednn][kernels]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  WindowPool call;
  call.is_maximum = true;
  call.extents[2] = 6;
  call.windows[2] = {{0, 2, 1}, {1, 3, 1}, {3, 5, 1}, {5, 6, 1}, {2, 2, 1}};
  const std::vector<float> source{1.0F, nan, 3.0F, -infinity, -infinity, infinity};
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    call.isa = isa;
    std::vector<float> target(5);
    call.run({bytes(source), bytes(target)});
    CHECK(std::isnan(target[0]));
    CHECK(std::isnan(target[1]));
    CHECK(target[2] == -infinity);
    CHECK(target[3] == infinity);
    CHECK(target[4] == -infinity);
  }
}

}  // namespace npu::onednn

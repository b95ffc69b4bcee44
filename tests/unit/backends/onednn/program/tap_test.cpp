// SPDX-License-Identifier: Apache-2.0
// Intermediate results are copied out of any layout, row-major and in their own dtype.
#include "program/tap.hpp"

#include <numeric>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

template <typename T>
std::vector<T> copied(const TapRecord& tap, const std::vector<float>& memory, std::size_t count) {
  REQUIRE(tap_span(tap) <= memory.size() * sizeof(float));
  std::vector<T> target(count);
  copy_tap(tap, reinterpret_cast<const std::byte*>(memory.data()),
           reinterpret_cast<std::byte*>(target.data()));
  return target;
}

TapRecord float_tap(const Shape& shape, const LayoutRecord& layout) {
  return {{"t", DType::kFloat32, shape}, DType::kFloat32, layout, {}, 0};
}

/// 0, 1, 2 ...
std::vector<float> counted(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

}  // namespace

TEST_CASE("a tap is row-major whatever its layout", "[onednn][plan]") {
  SECTION("strides") {
    // [2, 3], columns first: element (r, c) at r + 2 c.
    const TapRecord tap = float_tap({2, 3}, {DType::kFloat32, {2, 3}, {1, 2}, {}, {}, 0, 0, 0, 0});
    CHECK(tap_span(tap) == 24);
    CHECK(copied<float>(tap, counted(6), 6) == std::vector<float>{0, 2, 4, 1, 3, 5});
  }
  SECTION("blocks that channels do not fill") {
    // nCw4c of [1, 5, 2]: channel c, place w at 8 (c / 4) + 4 w + c % 4.
    const TapRecord tap =
        float_tap({1, 5, 2}, {DType::kFloat32, {1, 5, 2}, {16, 8, 4}, {4}, {1}, 0, 0, 0, 0});
    CHECK(copied<float>(tap, counted(16), 10) == std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7, 8, 12});
  }
  SECTION("blocks within blocks") {
    // [4, 2], blocks of 2 rows by 2 columns, then 2 rows: row r, column c at
    // 4 (r / 2 % 2) + 2 c + r % 2.
    const TapRecord tap =
        float_tap({4, 2}, {DType::kFloat32, {4, 2}, {8, 8}, {2, 2, 2}, {0, 1, 0}, 0, 0, 0, 0});
    CHECK(copied<float>(tap, counted(8), 8) == std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  }
  SECTION("a scalar") {
    const TapRecord tap = float_tap({}, {DType::kFloat32, {1}, {1}, {}, {}, 0, 0, 0, 0});
    CHECK(copied<float>(tap, {7}, 1) == std::vector<float>{7});
  }
}

TEST_CASE("a tap has the dtype of its tensor", "[onednn][plan]") {
  const LayoutRecord layout{DType::kFloat32, {3}, {1}, {}, {}, 0, 0, 0, 0};
  const TapRecord rounded{{"t", DType::kBFloat16, {3}}, DType::kFloat32, layout, {}, 0};
  CHECK(copied<std::uint16_t>(rounded, {1.0F, -2.0F, 0.5F}, 3) ==
        std::vector<std::uint16_t>{0x3f80, 0xc000, 0x3f00});
  // Of int64 the descriptor is float32's, for strides alone.
  const TapRecord wide{{"t", DType::kInt64, {3}}, DType::kInt64, layout, {}, 0};
  CHECK(tap_span(wide) == 24);
  const TapRecord other{{"t", DType::kInt32, {3}}, DType::kFloat32, layout, {}, 0};
  CHECK_THROWS_AS(tap_span(other), Error);
}

}  // namespace npu::onednn

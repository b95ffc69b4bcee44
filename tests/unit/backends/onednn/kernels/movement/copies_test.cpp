// SPDX-License-Identifier: Apache-2.0
// Copies and conversions.
#include <algorithm>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("CopyBytes copies every byte and none behind them", "[onednn][kernels]") {
  const std::int64_t count = GENERATE(0, 1, 63, 64, 4097, 3'000'001);
  std::vector<std::uint8_t> source(static_cast<std::size_t>(count) + 64);
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::uint8_t>(i * 131 % 251);
  }
  std::vector<std::uint8_t> target(source.size(), 255);
  CopyBytes{count}.run({bytes(source), bytes(target)});
  const auto end = source.begin() + count;
  CHECK(std::equal(source.begin(), end, target.begin()));
  CHECK(std::all_of(target.begin() + count, target.end(), [](int each) { return each == 255; }));
}

TEST_CASE("StridedCopy transposes, PaddedCopy fills around", "[onednn][kernels]") {
  const auto source = random_floats(60 * 50, 1);
  std::vector<float> target(source.size());
  StridedCopy copy{sizeof(float), {50, 60}, {1, 50}, {60, 1}};
  copy.simplify();
  copy.run({bytes(source), bytes(target)});
  for (std::size_t i = 0; i < target.size(); ++i) {
    REQUIRE(target[i] == source[i % 60 * 50 + i / 60]);
  }
  std::vector<float> padded(62 * 54, 9.0F);
  PaddedCopy{DType::kFloat32, 0.5F, 62 * 54, 54 + 2,
             StridedCopy{sizeof(float), {60, 50}, {50, 1}, {54, 1}}}
      .run({bytes(source), bytes(padded)});
  for (std::size_t i = 0; i < padded.size(); ++i) {
    const std::size_t row = i / 54;
    const std::size_t column = i % 54;
    const bool is_inside = row >= 1 && row <= 60 && column >= 2 && column < 52;
    REQUIRE(padded[i] == (is_inside ? source[(row - 1) * 50 + column - 2] : 0.5F));
  }
}

TEST_CASE("StridedCopy finds every row, in pieces of many short ones", "[onednn][kernels]") {
  // [a, b, c, d, e] to [b, d, a, c, e]: rows of 64 bytes, of 12, and planes that are transposed.
  for (const std::int64_t width : {16, 3, 1}) {
    const std::vector<std::int64_t> extents{5, 7, 6, 9, width};
    const auto source = random_floats(static_cast<std::size_t>(5 * 7 * 6 * 9 * width), 4);
    std::vector<float> target(source.size());
    const std::vector<std::int64_t> from{378 * width, 54 * width, 9 * width, width, 1};
    const std::vector<std::int64_t> to{6 * width, 270 * width, width, 30 * width, 1};
    StridedCopy copy{sizeof(float), extents, from, to};
    copy.simplify();
    copy.run({bytes(source), bytes(target)});
    std::vector<std::int64_t> at(5);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(source.size()); ++i) {
      std::int64_t rest = i;
      std::int64_t offset = 0;
      for (std::size_t k = 5; k > 0; --k) {
        offset += rest % extents[k - 1] * to[k - 1];
        rest /= extents[k - 1];
      }
      REQUIRE(target[static_cast<std::size_t>(offset)] == source[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("Convert, RoundToBFloat16 and Cast round to nearest even", "[onednn][kernels]") {
  const std::vector<float> source{1.0F, 1.00390625F, 1.01171875F, -3.1415927F};
  const std::vector<float> rounded{1.0F, 1.0F, 1.015625F, -3.140625F};
  std::vector<std::uint16_t> half(4);
  Convert{DType::kFloat32, DType::kBFloat16, 4}.run({bytes(source), bytes(half)});
  std::vector<float> back(4);
  Convert{DType::kBFloat16, DType::kFloat32, 4}.run({bytes(half), bytes(back)});
  CHECK(back == rounded);
  auto in_place = source;
  RoundToBFloat16{4}.run({bytes(in_place), bytes(in_place)});
  CHECK(in_place == rounded);
  std::vector<std::int64_t> whole(4);
  Cast{DType::kFloat32, DType::kInt64, 4}.run({bytes(source), bytes(whole)});
  CHECK(whole == std::vector<std::int64_t>{1, 1, 1, -3});
}

}  // namespace npu::onednn

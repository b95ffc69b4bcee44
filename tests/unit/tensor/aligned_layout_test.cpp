// SPDX-License-Identifier: Apache-2.0
#include "tensor/aligned_layout.hpp"

#include <limits>
#include <random>

#include "catch.hpp"
#include "slow_layout.hpp"

namespace npu {
namespace {

struct Case {
  AlignedLayout layout;
  test::SlowLayout slow;
};

std::vector<Case> cases() {
  std::vector<Case> list{{{.family = LayoutFamily::kTx8}, {"tx8", 0}},
                         {{.family = LayoutFamily::kChannelsLast}, {"channels_last", 0}}};
  for (const std::int64_t block : {1, 3, 8, 16, 32}) {
    list.push_back({{.family = LayoutFamily::kBlocked, .block = block}, {"blocked", block}});
  }
  return list;
}

void check(const Case& with, DType dtype, const Shape& shape) {
  CAPTURE(aligned_layout_name(with.layout), shape_text(shape), dtype_name(dtype));
  CHECK(aligned_bytes(with.layout, dtype, shape) ==
        with.slow.bytes(shape, static_cast<std::int64_t>(dtype_size(dtype))));
}

TEST_CASE("sizes equal a slow implementation's") {
  const std::vector<Shape> shapes{{1, 1, 1, 1},
                                  {2, 3, 5, 7},
                                  {3, 31, 3, 3},
                                  {2, 32, 2, 5},
                                  {2, 33, 4, 1},
                                  {1, 64, 3, 3},
                                  {3, 65, 2, 2},
                                  {2, 96, 1, 3},
                                  {2, 97, 3, 2},
                                  {1, 100, 5, 5},
                                  {2, 127, 2, 2},
                                  {2, 128, 2, 1},
                                  {2, 129, 1, 2},
                                  {1, 160, 2, 2},
                                  {1, 193, 2, 2},
                                  {4, 5},
                                  {2, 64},
                                  {3, 130},
                                  {7},
                                  {200},
                                  {},
                                  {2, 3, 4},
                                  {2, 20, 2, 3, 4},
                                  {0, 3, 2, 2},
                                  {2, 0, 3, 3},
                                  {2, 3, 0, 3}};
  for (const Case& with : cases()) {
    for (const Shape& shape : shapes) {
      for (const DType dtype : {DType::kInt8, DType::kBFloat16, DType::kFloat32}) {
        check(with, dtype, shape);
      }
    }
  }
}

TEST_CASE("sizes equal a slow implementation's on random shapes") {
  std::mt19937 random(11);
  const std::vector<Case> list = cases();
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    for (auto rank = random() % 6; rank > 0; --rank) {
      shape.push_back(static_cast<std::int64_t>(random() % (shape.size() == 1 ? 200 : 6)) + 1);
    }
    const DType dtype =
        std::vector{DType::kInt8,  DType::kUInt8,    DType::kBool,  DType::kFloat16,
                    DType::kInt16, DType::kBFloat16, DType::kInt32, DType::kFloat32}[random() % 8];
    check(list[random() % list.size()], dtype, shape);
  }
}

TEST_CASE("sizes of tx8") {
  const AlignedLayout tx8;
  const auto channels = [&](std::int64_t c, DType dtype) {
    return aligned_bytes(tx8, dtype, {1, c, 16, 16}) / 256 /
           static_cast<std::int64_t>(dtype_size(dtype));
  };
  for (const auto& [c, padded] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 4},
                                                                                    {4, 4},
                                                                                    {5, 8},
                                                                                    {9, 16},
                                                                                    {17, 32},
                                                                                    {32, 32},
                                                                                    {33, 64},
                                                                                    {64, 64},
                                                                                    {65, 68},
                                                                                    {96, 96},
                                                                                    {97, 128},
                                                                                    {128, 128},
                                                                                    {129, 132}}) {
    CAPTURE(c);
    CHECK(channels(c, DType::kFloat32) == padded);
    CHECK(channels(c, DType::kBFloat16) == padded);
  }
  for (const auto& [c, padded] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {33, 64}, {64, 64}, {65, 128}, {128, 128}, {129, 132}, {192, 192}, {193, 256}}) {
    CAPTURE(c);
    CHECK(channels(c, DType::kInt8) == padded);
  }
  // 3 channels padded to 4, 3 pixels of float32: 48 bytes, each item rounded up to 256.
  CHECK(aligned_bytes(tx8, DType::kFloat32, {5, 3, 1, 3}) == 5 * 256);
}

TEST_CASE("sizes that do not fit saturate") {
  const std::int64_t huge = std::int64_t{1} << 57;
  CHECK(aligned_bytes({.family = LayoutFamily::kBlocked, .block = 1024}, DType::kFloat32,
                      {huge, 1, 1}) == std::numeric_limits<std::int64_t>::max());
  CHECK(aligned_bytes({.family = LayoutFamily::kTx8}, DType::kInt8, {huge, 1, 1}) ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("names of layouts") {
  CHECK(aligned_layout_name({.family = LayoutFamily::kTx8}) == "tx8");
  CHECK(aligned_layout_name({.family = LayoutFamily::kBlocked, .block = 16}) == "blocked16");
  CHECK(aligned_layout_name({.family = LayoutFamily::kChannelsLast}) == "channels_last");
  CHECK(has_aligned_form(DType::kInt8));
  CHECK(has_aligned_form(DType::kFloat32));
  CHECK_FALSE(has_aligned_form(DType::kInt64));
  CHECK_FALSE(has_aligned_form(DType::kComplex64));
}

}  // namespace
}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#include "tensor/aligned_layout.hpp"

#include <cstring>
#include <limits>
#include <random>

#include "catch.hpp"
#include "slow_layout.hpp"

namespace npu {
namespace {

using Bytes = std::vector<std::byte>;

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

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 255 + 1);  // never 0
  return bytes;
}

void check(const Case& with, DType dtype, const Shape& shape, std::mt19937& random) {
  CAPTURE(aligned_layout_name(with.layout), shape_text(shape), dtype_name(dtype));
  const auto element = static_cast<std::int64_t>(dtype_size(dtype));
  std::int64_t items = 1;
  std::int64_t channels = 1;
  std::int64_t pixels = 1;
  if (shape.size() == 1) channels = shape[0];
  if (shape.size() > 1) {
    items = shape[0];
    channels = shape[1];
    for (std::size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  }
  const std::int64_t size = aligned_bytes(with.layout, dtype, shape);
  REQUIRE(size == with.slow.bytes(shape, element));
  const Bytes plain =
      random_bytes(random, static_cast<std::size_t>(items * channels * pixels * element));
  Bytes expected(static_cast<std::size_t>(size), std::byte{0});
  for (std::int64_t n = 0; n < items; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::int64_t from = ((n * channels + c) * pixels + p) * element;
        const std::int64_t to = with.slow.offset(n, c, p, channels, pixels, element);
        REQUIRE(to + element <= size);
        std::memcpy(expected.data() + to, plain.data() + from, static_cast<std::size_t>(element));
      }
    }
  }
  Bytes aligned = random_bytes(random, static_cast<std::size_t>(size));  // padding is written
  to_aligned(with.layout, dtype, shape, plain.data(), aligned.data());
  CHECK(aligned == expected);
  // The way back does not read padding.
  for (std::size_t i = 0; i < aligned.size(); ++i) {
    if (expected[i] == std::byte{0}) aligned[i] = std::byte{0x5a};
  }
  Bytes again = random_bytes(random, plain.size());
  from_aligned(with.layout, dtype, shape, aligned.data(), again.data());
  CHECK(again == plain);
}

TEST_CASE("converters equal a slow implementation element by element") {
  std::mt19937 random(7);
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
        check(with, dtype, shape, random);
      }
    }
  }
}

TEST_CASE("converters equal a slow implementation on random shapes") {
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
    check(list[random() % list.size()], dtype, shape, random);
  }
}

TEST_CASE("the bytes of small tensors, written out") {
  // Channels a b c of two pixels each: row-major a0 a1 b0 b1 c0 c1.
  const std::vector<std::uint8_t> plain{10, 11, 20, 21, 30, 31};
  const auto aligned = [&](const AlignedLayout& layout) {
    std::vector<std::uint8_t> bytes(
        static_cast<std::size_t>(aligned_bytes(layout, DType::kUInt8, {1, 3, 1, 2})), 9);
    to_aligned(layout, DType::kUInt8, {1, 3, 1, 2},
               reinterpret_cast<const std::byte*>(plain.data()),
               reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
  };
  using V = std::vector<std::uint8_t>;
  CHECK(aligned({.family = LayoutFamily::kChannelsLast}) == V{10, 20, 30, 11, 21, 31});
  CHECK(aligned({.family = LayoutFamily::kBlocked, .block = 2}) == V{10, 20, 11, 21, 30, 0, 31, 0});
  V tx8 = aligned({.family = LayoutFamily::kTx8});
  REQUIRE(tx8.size() == 256);  // an item begins at a multiple of 2048 bits
  tx8.resize(10);
  CHECK(tx8 == V{10, 20, 30, 0, 11, 21, 31, 0, 0, 0});
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
  for (const char* name : {"tx8", "blocked8", "channels_last"}) {
    CHECK(aligned_layout_name(parse_aligned_layout(name).value()) == name);
  }
  for (const char* name : {"", "blocked", "blocked0", "blocked-1", "blocked1x", "nchw", "TX8"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_aligned_layout(name));
  }
  CHECK(has_aligned_form(DType::kInt8));
  CHECK(has_aligned_form(DType::kFloat32));
  CHECK_FALSE(has_aligned_form(DType::kInt64));
  CHECK_FALSE(has_aligned_form(DType::kComplex64));
}

}  // namespace
}  // namespace npu

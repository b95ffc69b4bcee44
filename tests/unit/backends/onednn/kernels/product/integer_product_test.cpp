// SPDX-License-Identifier: Apache-2.0
// Products of integers against their definition, number by number: every type of factor, zero
// points of all kinds, sizes around those of blocks, and sums that float32 does not hold.
#include "kernels/product/integer_product.hpp"

#include <cstring>
#include <random>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using Ints = std::vector<std::int32_t>;

/// Numbers of a type, as int32 and as the type's bytes.
struct Numbers {
  DType type;
  Ints values;
  std::vector<std::byte> bytes;
};

Numbers draw(DType type, std::int64_t count, std::mt19937& random) {
  Numbers numbers{type, Ints(static_cast<std::size_t>(count)), {}};
  const auto size = dtype_size(type);
  numbers.bytes.resize(numbers.values.size() * size);
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    std::int32_t& value = numbers.values[i];
    value = static_cast<std::int32_t>(random());
    if (type == DType::kInt8) value = static_cast<std::int8_t>(value);
    if (type == DType::kUInt8) value = static_cast<std::uint8_t>(value);
    std::memcpy(numbers.bytes.data() + i * size, &value, size);  // little-endian
  }
  return numbers;
}

std::byte* address(const auto& data) {
  return static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(data.data())));
}

/// Memory of what a kernel writes, in words.
Ints target_of(const Kernel& kernel) {
  return Ints(footprint_of(kernel).write.bytes / sizeof(std::int32_t), -1);
}

Ints run(const Kernel& kernel, std::vector<std::byte*> reads) {
  Ints target = target_of(kernel);
  reads.push_back(address(target));
  run_kernel(kernel, reads);
  return target;
}

struct Sizes {
  std::int64_t batch, rows, inner, columns;
};

/// The product by the kernels.
Ints product_of(const Sizes& sizes, const Numbers& left, const Numbers& right,
                const Ints& left_zeros, const Ints& right_zeros, VectorIsa isa, bool uses_vnni) {
  IntegerRows rows;
  rows.type = left.type;
  rows.batch = sizes.batch;
  rows.channels = sizes.inner;
  rows.extents[2] = sizes.rows;
  rows.windows[2] = sizes.rows;
  rows.isa = isa;
  const Ints zero{0};
  const Ints left_rows = run(rows, {address(left.bytes), address(zero)});
  IntegerProduct call;
  call.batch = sizes.batch;
  call.rows = sizes.rows;
  call.inner = sizes.inner;
  call.columns = sizes.columns;
  call.target_batch = sizes.rows * sizes.columns;
  call.target_row = sizes.columns;
  call.isa = isa;
  if (left.type == DType::kInt32) {
    call.type = DType::kInt32;
    return run(call, {address(left_rows), address(right.bytes)});
  }
  const Ints panels = run(IntegerPanels{right.type, sizes.batch, sizes.inner, sizes.columns},
                          {address(right.bytes)});
  call.left_zeros = left_zeros.size() > 1;
  call.right_zeros = right_zeros.size() > 1;
  call.left_shift = left.type == DType::kInt8 ? 128 : 0;
  call.right_shift = right.type == DType::kUInt8 ? -128 : 0;
  call.uses_vnni = uses_vnni;
  return run(call,
             {address(left_rows), address(panels), address(left_zeros), address(right_zeros)});
}

/// The same by its definition, modulo 2^32.
Ints expected_product(const Sizes& sizes, const Numbers& left, const Numbers& right,
                      const Ints& left_zeros, const Ints& right_zeros) {
  Ints result;
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t m = 0; m < sizes.rows; ++m) {
      for (std::int64_t n = 0; n < sizes.columns; ++n) {
        std::uint32_t sum = 0;
        const auto left_zero = left_zeros[left_zeros.size() > 1 ? static_cast<std::size_t>(m) : 0];
        const auto right_zero =
            right_zeros[right_zeros.size() > 1 ? static_cast<std::size_t>(n) : 0];
        for (std::int64_t k = 0; k < sizes.inner; ++k) {
          const auto l = static_cast<std::size_t>((b * sizes.rows + m) * sizes.inner + k);
          const auto r = static_cast<std::size_t>((b * sizes.inner + k) * sizes.columns + n);
          sum +=
              (static_cast<std::uint32_t>(left.values[l]) - static_cast<std::uint32_t>(left_zero)) *
              (static_cast<std::uint32_t>(right.values[r]) -
               static_cast<std::uint32_t>(right_zero));
        }
        result.push_back(static_cast<std::int32_t>(sum));
      }
    }
  }
  return result;
}

/// With VNNI, where this CPU has it, and without.
std::vector<bool> ways(VectorIsa isa) {
  if (isa == VectorIsa::kAvx512 && cpu_has_vnni()) return {false, true};
  return {false};
}

}  // namespace

TEST_CASE("products of integers are those of their definition", "[onednn][kernels][integers]") {
  std::mt19937 random(7);
  const Sizes all[]{{1, 1, 1, 1},    {2, 7, 5, 3},    {1, 8, 64, 32}, {1, 9, 63, 33},
                    {3, 1, 130, 17}, {1, 65, 12, 48}, {2, 70, 31, 31}};
  for (const Sizes& sizes : all) {
    for (const DType left_type : {DType::kUInt8, DType::kInt8}) {
      for (const DType right_type : {DType::kUInt8, DType::kInt8}) {
        const Numbers left = draw(left_type, sizes.batch * sizes.rows * sizes.inner, random);
        const Numbers right = draw(right_type, sizes.batch * sizes.inner * sizes.columns, random);
        for (const bool has_many : {false, true}) {
          const Ints left_zeros = draw(left_type, has_many ? sizes.rows : 1, random).values;
          const Ints right_zeros = draw(right_type, has_many ? sizes.columns : 1, random).values;
          const Ints expected = expected_product(sizes, left, right, left_zeros, right_zeros);
          for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
            for (const bool uses_vnni : ways(isa)) {
              INFO(sizes.rows << " " << sizes.inner << " " << sizes.columns << " " << has_many
                              << " " << uses_vnni);
              REQUIRE(product_of(sizes, left, right, left_zeros, right_zeros, isa, uses_vnni) ==
                      expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("sums of integers are exact where float32 is not", "[onednn][kernels][integers]") {
  const Sizes sizes{1, 2, 4099, 3};
  Numbers left{DType::kUInt8, Ints(2 * 4099, 255),
               std::vector<std::byte>(2 * 4099, std::byte{255})};
  Numbers right{DType::kInt8, Ints(4099 * 3, -127),
                std::vector<std::byte>(4099 * 3, std::byte{0x81})};
  left.values[0] = 254;
  left.bytes[0] = std::byte{254};
  const Ints zeros{0};
  // 4099 * 255 * -127 and 127 more, of which float32 holds neither
  const Ints expected{-132745988, -132745988, -132745988, -132746115, -132746115, -132746115};
  CHECK(expected_product(sizes, left, right, zeros, zeros) == expected);
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    for (const bool uses_vnni : ways(isa)) {
      CHECK(product_of(sizes, left, right, zeros, zeros, isa, uses_vnni) == expected);
    }
  }
}

TEST_CASE("products of int32 are those of their definition", "[onednn][kernels][integers]") {
  std::mt19937 random(8);
  for (const Sizes& sizes : {Sizes{1, 1, 1, 1}, Sizes{2, 5, 19, 33}}) {
    const Numbers left = draw(DType::kInt32, sizes.batch * sizes.rows * sizes.inner, random);
    const Numbers right = draw(DType::kInt32, sizes.batch * sizes.inner * sizes.columns, random);
    const Ints expected = expected_product(sizes, left, right, {0}, {0});
    for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
      CHECK(product_of(sizes, left, right, {0}, {0}, isa, false) == expected);
    }
  }
}

TEST_CASE("windows become rows, with what stands for zero around them",
          "[onednn][kernels][integers]") {
  // One row of three pixels of two channels, one group for each; three taps, one pixel of padding.
  IntegerRows call;
  call.type = DType::kInt8;
  call.groups = 2;
  call.channels = 2;
  call.extents[2] = 3;
  call.taps[2] = 3;
  call.pad[2] = 1;
  call.stride[2] = 2;
  call.windows[2] = 2;
  const std::vector<std::int8_t> source{1, -1, 2, -2, 3, -3};
  const Ints zero{-5};
  const Ints target = run(call, {address(source), address(zero)});
  std::vector<std::uint8_t> bytes(16);
  std::memcpy(bytes.data(), target.data(), bytes.size());
  CHECK(bytes == std::vector<std::uint8_t>{123, 129, 130, 0, 130, 131, 123, 0,    // channel 0
                                           123, 127, 126, 0, 126, 125, 123, 0});  // channel 1
  CHECK(Ints(target.begin() + 4, target.end()) == Ints{382, 384, 376, 374});
}

}  // namespace npu::onednn

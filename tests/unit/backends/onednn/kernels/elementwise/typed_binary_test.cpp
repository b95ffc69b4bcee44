// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers and floats in their own type, comparisons and selections, by hand.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backends/onednn/kernels/kernel_runs.hpp"
#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

using namespace test;

using Op = TypedBinary::Op;

TypedBinary pairwise(Op op, DType type, std::int64_t count) {
  return {op, type, 1, {count}, {1}, {1}, {1}, "node 'n'"};
}

}  // namespace

TEST_CASE("integers are divided as PyTorch rounds", "[onednn][kernels]") {
  const Ints a{7, -7, 7, -7, 6, INT32_MIN};
  const Ints b{2, 2, -2, -2, 3, -1};
  const auto result = [&](Op op) {
    return run<std::int32_t>(pairwise(op, DType::kInt32, 6), 6, a, b);
  };
  CHECK(result(Op::kFloorDivide) == Ints{3, -4, -4, 3, 2, INT32_MIN});
  CHECK(result(Op::kTruncateDivide) == Ints{3, -3, -3, 3, 2, INT32_MIN});
  CHECK(result(Op::kRemainder) == Ints{1, 1, -1, -1, 0, 0});
  CHECK(result(Op::kFmod) == Ints{1, -1, 1, -1, 0, 0});
  CHECK_THROWS_WITH(
      run<std::int64_t>(pairwise(Op::kRemainder, DType::kInt64, 2), 2, Longs{1, 2}, Longs{3, 0}),
      Catch::Contains("node 'n': an integer is divided by zero"));
}

TEST_CASE("integers of any size are divided exactly", "[onednn][kernels]") {
  // Rows of small numbers, which take a division in float64, and of others; whole quotients and
  // their neighbours among them.
  std::mt19937_64 engine(11);
  Longs a;
  Longs b;
  for (int i = 0; i < 20000; ++i) {
    const int bits = i / 64 % 2 == 0 ? 50 : 62;
    const auto magnitude = [&](int most) {
      return static_cast<std::int64_t>(engine() >> (64 - 1 - engine() % most));
    };
    std::int64_t divisor = std::max<std::int64_t>(1, magnitude(bits));
    std::int64_t dividend = magnitude(bits);
    if (i % 3 == 0) dividend = dividend / divisor * divisor - (i % 2);
    if (i % 5 == 0) divisor = -divisor;
    a.push_back(i % 7 == 0 ? -dividend : dividend);
    b.push_back(divisor);
  }
  for (const VectorIsa isa : {VectorIsa::kAny, VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    if (isa > cpu_vector_isa()) continue;
    for (const Op op : {Op::kFloorDivide, Op::kTruncateDivide, Op::kRemainder, Op::kFmod}) {
      TypedBinary call = pairwise(op, DType::kInt64, static_cast<std::int64_t>(a.size()));
      call.isa = isa;
      Longs target(a.size());
      const auto bytes = [](Longs& longs) {
        return static_cast<std::byte*>(static_cast<void*>(longs.data()));
      };
      call.run({bytes(a), bytes(b), bytes(target)});
      for (std::size_t i = 0; i < a.size(); ++i) {
        const std::int64_t quotient = a[i] / b[i];
        const std::int64_t rest = a[i] % b[i];
        const bool rounds = rest != 0 && (rest < 0) != (b[i] < 0);
        std::int64_t expected = rest;
        if (op == Op::kTruncateDivide) expected = quotient;
        if (op == Op::kFloorDivide) expected = quotient - (rounds ? 1 : 0);
        if (op == Op::kRemainder) expected = rest + (rounds ? b[i] : 0);
        INFO(a[i] << " and " << b[i]);
        REQUIRE(target[i] == expected);
      }
    }
  }
}

TEST_CASE("integers wrap around", "[onednn][kernels]") {
  TypedBinary add = pairwise(Op::kAdd, DType::kInt64, 2);
  add.alpha = -1;
  CHECK(run<std::int64_t>(add, 2, Longs{INT64_MIN, 5}, Longs{1, 7}) == Longs{INT64_MAX, -2});
  CHECK(run<std::int32_t>(pairwise(Op::kMultiply, DType::kInt32, 1), 1, Ints{1 << 30}, Ints{4}) ==
        Ints{0});
  CHECK(run<std::int32_t>(pairwise(Op::kAbsoluteDifference, DType::kInt32, 2), 2,
                          Ints{INT32_MIN, -3}, Ints{0, 0}) == Ints{INT32_MIN, 3});
}

TEST_CASE("floats are divided as PyTorch rounds", "[onednn][kernels]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Floats a{7.5F, -7.5F, 1.0F, -1.0F};
  const Floats b{2.0F, 2.0F, 0.0F, 0.5F};
  const auto result = [&](Op op) { return run<float>(pairwise(op, DType::kFloat32, 4), 4, a, b); };
  CHECK(result(Op::kFloorDivide) == Floats{3.0F, -4.0F, kInfinity, -2.0F});
  CHECK(result(Op::kTruncateDivide) == Floats{3.0F, -3.0F, kInfinity, -2.0F});
  const Floats rest = result(Op::kRemainder);
  CHECK(rest[0] == 1.5F);
  CHECK(rest[1] == 0.5F);
  CHECK(std::isnan(rest[2]));
}

TEST_CASE("rests of floats are those of fmod, bit for bit", "[onednn][kernels]") {
  // Quotients from 2^-30 to 2^30, whole numbers and their neighbours among them.
  std::mt19937 engine(3);
  Floats a;
  Floats b;
  for (int i = 0; i < 60000; ++i) {
    const auto mantissa = [&] { return 1.0F + static_cast<float>(engine() % 8388608) * 0x1p-23F; };
    const float divisor = std::ldexp(mantissa(), static_cast<int>(engine() % 20) - 10);
    const auto whole = static_cast<float>(engine() % (i % 3 == 0 ? 40U : 4000000U));
    float dividend = std::ldexp(mantissa(), static_cast<int>(engine() % 40) - 20);
    if (i % 2 == 0) dividend = divisor * whole;
    if (i % 8 == 2) dividend = std::nextafter(dividend, -1.0F);
    if (i % 8 == 4) dividend = std::nextafter(dividend, 1e30F);
    a.push_back(i % 5 == 0 ? -dividend : dividend);
    b.push_back(i % 7 == 0 ? -divisor : divisor);
  }
  for (const VectorIsa isa : {VectorIsa::kAny, VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    if (isa > cpu_vector_isa()) continue;
    TypedBinary call = pairwise(Op::kFmod, DType::kFloat32, static_cast<std::int64_t>(a.size()));
    call.isa = isa;
    Floats target(a.size());
    const auto bytes = [](Floats& floats) {
      return static_cast<std::byte*>(static_cast<void*>(floats.data()));
    };
    call.run({bytes(a), bytes(b), bytes(target)});
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO(a[i] << " and " << b[i]);
      REQUIRE(std::bit_cast<std::uint32_t>(target[i]) ==
              std::bit_cast<std::uint32_t>(std::fmod(a[i], b[i])));
    }
  }
}

TEST_CASE("comparisons with NaN are false but for inequality", "[onednn][kernels]") {
  const float nan = std::nanf("");
  const Floats a{1.0F, nan, 2.0F};
  const Floats b{2.0F, 1.0F, 2.0F};
  const auto result = [&](Op op) {
    return run<std::uint8_t>(pairwise(op, DType::kFloat32, 3), 3, a, b);
  };
  CHECK(result(Op::kLess) == Bytes{1, 0, 0});
  CHECK(result(Op::kGreaterEqual) == Bytes{0, 0, 1});
  CHECK(result(Op::kEqual) == Bytes{0, 0, 1});
  CHECK(result(Op::kNotEqual) == Bytes{1, 1, 0});
  CHECK(result(Op::kLogicalAnd) == Bytes{1, 1, 1});  // NaN is not 0
}

TEST_CASE("a selection broadcasts", "[onednn][kernels]") {
  Select call;
  call.element_size = 4;
  call.extents = {2, 3};
  call.condition_strides = {0, 1};
  call.a_strides = {0, 0};
  call.b_strides = {3, 1};
  call.target_strides = {3, 1};
  CHECK(run<float>(call, 6, Bytes{1, 0, 1}, Floats{9.0F}, Floats{1, 2, 3, 4, 5, 6}) ==
        Floats{9, 2, 9, 9, 5, 9});
}

}  // namespace npu::onednn

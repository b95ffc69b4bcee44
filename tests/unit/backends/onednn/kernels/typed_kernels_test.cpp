// SPDX-License-Identifier: Apache-2.0
// Kernels on integers, truth and indices, and those that put tensors together from parts, by hand.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "catch.hpp"
#include "kernels/kernel.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

/// Runs a kernel on vectors; `count` elements of the target.
template <typename To, typename... From>
std::vector<To> run_for_isa(const Kernel& kernel, std::size_t count, std::vector<From>... reads) {
  std::vector<To> target(count);
  std::vector<std::byte*> addresses{static_cast<std::byte*>(static_cast<void*>(reads.data()))...};
  addresses.push_back(static_cast<std::byte*>(static_cast<void*>(target.data())));
  run_kernel(kernel, addresses);
  return target;
}
template <typename To, typename... From>
std::vector<To> run(Kernel kernel, std::size_t count, const std::vector<From>&... reads) {
  set_isa(kernel, cpu_vector_isa());
  return run_for_isa<To>(kernel, count, reads...);
}

using Longs = std::vector<std::int64_t>;
using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;
using Op = TypedBinary::Op;

TypedBinary pairwise(Op op, DType type, std::int64_t count) {
  return {op, type, 1, {count}, {1}, {1}, {1}, "node 'n'"};
}

}  // namespace

TEST_CASE("integers are divided as PyTorch rounds", "[onednn][kernels][typed]") {
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

TEST_CASE("integers of any size are divided exactly", "[onednn][kernels][typed]") {
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

TEST_CASE("integers wrap around", "[onednn][kernels][typed]") {
  TypedBinary add = pairwise(Op::kAdd, DType::kInt64, 2);
  add.alpha = -1;
  CHECK(run<std::int64_t>(add, 2, Longs{INT64_MIN, 5}, Longs{1, 7}) == Longs{INT64_MAX, -2});
  CHECK(run<std::int32_t>(pairwise(Op::kMultiply, DType::kInt32, 1), 1, Ints{1 << 30}, Ints{4}) ==
        Ints{0});
  CHECK(run<std::int32_t>(pairwise(Op::kAbsoluteDifference, DType::kInt32, 2), 2,
                          Ints{INT32_MIN, -3}, Ints{0, 0}) == Ints{INT32_MIN, 3});
}

TEST_CASE("floats are divided as PyTorch rounds", "[onednn][kernels][typed]") {
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

TEST_CASE("rests of floats are those of fmod, bit for bit", "[onednn][kernels][typed]") {
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

TEST_CASE("a long row is reduced in parts, to what one part gives", "[onednn][kernels][typed]") {
  const std::int64_t count = GENERATE(70001, 1 << 20, 1100003);
  Longs values(static_cast<std::size_t>(count));
  Floats floats(values.size());
  std::mt19937_64 engine(5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(engine());
    floats[i] = static_cast<float>(engine() % 1000);
  }
  std::uint64_t sum = 0;
  for (const std::int64_t value : values) sum += static_cast<std::uint64_t>(value);
  const auto reduced = [&](IntegerReduction::Op op) {
    return run<std::int64_t>(IntegerReduction{op, DType::kInt64, 1, count, 1}, 1, values)[0];
  };
  CHECK(static_cast<std::uint64_t>(reduced(IntegerReduction::Op::kSum)) == sum);
  CHECK(reduced(IntegerReduction::Op::kMinimum) == *std::min_element(values.begin(), values.end()));
  CHECK(reduced(IntegerReduction::Op::kMaximum) == *std::max_element(values.begin(), values.end()));
  const auto place = [&](bool greatest) {
    return run<std::int64_t>(ArgReduction{DType::kFloat32, greatest, false, 1, count, 1}, 1,
                             floats)[0];
  };
  CHECK(place(true) == std::max_element(floats.begin(), floats.end()) - floats.begin());
  CHECK(place(false) == std::min_element(floats.begin(), floats.end()) - floats.begin());
  floats[static_cast<std::size_t>(count) / 2] = std::nanf("");
  floats.back() = std::nanf("");
  CHECK(place(true) == count / 2);
  CHECK(place(false) == count / 2);
}

TEST_CASE("comparisons with NaN are false but for inequality", "[onednn][kernels][typed]") {
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

TEST_CASE("a selection broadcasts", "[onednn][kernels][typed]") {
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

TEST_CASE("elements are read and written by index", "[onednn][kernels][typed]") {
  // x[[2, -1], :] of a 3 x 2 tensor.
  using Combine = IndexedCopy::Combine;
  IndexedCopy read{DType::kFloat32, false,  Combine::kReplace, true,      6, {2, 2},
                   {0, 1},          {2, 1}, {{3, 2, {1, 0}}},  "node 'n'"};
  CHECK(run<float>(read, 4, Floats{1, 2, 3, 4, 5, 6}, Longs{2, -1}) == Floats{5, 6, 5, 6});
  read.wraps = false;
  CHECK_THROWS_WITH(run<float>(read, 4, Floats{1, 2, 3, 4, 5, 6}, Longs{2, -1}),
                    Catch::Contains("node 'n': an index is outside its dimension"));
  // x[[0, 0, 2]] = values, and += values: of two for one element the later one counts.
  IndexedCopy written{DType::kInt64, true, Combine::kReplace, true,      3, {3},
                      {0},           {1},  {{3, 1, {1}}},     "node 'n'"};
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 0, -1}) ==
        Longs{2, 8, 3});
  written.combine = Combine::kAdd;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 0, 2}) ==
        Longs{10, 8, 12});
  written.combine = Combine::kMaximum;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{8, 11, -3}, Longs{0, 0, 2}) ==
        Longs{11, 8, 9});
  written.combine = Combine::kMinimum;
  CHECK(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{8, 11, -3}, Longs{0, 0, 2}) ==
        Longs{7, 8, -3});
  written.type = DType::kFloat32;
  const float nan = std::nanf("");
  const auto least = run<float>(written, 3, Floats{7, nan, 9}, Floats{8, 1, nan}, Longs{0, 1, 2});
  CHECK((least[0] == 7 && std::isnan(least[1]) && std::isnan(least[2])));
  CHECK_THROWS_AS(run<std::int64_t>(written, 3, Longs{7, 8, 9}, Longs{1, 2, 3}, Longs{0, 3, 2}),
                  Error);
}

TEST_CASE("several indices, of which some stay the same along a row", "[onednn][kernels][typed]") {
  // x[:, rows[2, 1], columns[1, 3]] of a 2 x 2 x 4 tensor, in rows of 3.
  IndexedCopy call{
      DType::kFloat32, false,     IndexedCopy::Combine::kReplace,         false,     16, {2, 2, 3},
      {8, 0, 0},       {6, 3, 1}, {{2, 4, {0, 1, 0}}, {4, 1, {0, 0, 1}}}, "node 'n'"};
  Floats x(16);
  std::iota(x.begin(), x.end(), 0.0F);
  CHECK(run<float>(call, 12, x, Longs{1, 0}, Longs{3, 0, 2}) ==
        Floats{7, 4, 6, 3, 0, 2, 15, 12, 14, 11, 8, 10});
  CHECK_THROWS_AS(run<float>(call, 12, x, Longs{1, 2}, Longs{3, 0, 2}), Error);
}

TEST_CASE("windows that overlap are added up in their order, each plane on its own",
          "[onednn][kernels][typed]") {
  // target[p, i + j] += values[p, j, i] for 3 windows of 400 in each of 40 planes.
  const auto planes = static_cast<std::int64_t>(40);
  IndexedCopy call{DType::kFloat32, true,           IndexedCopy::Combine::kAdd,
                   false,           planes * 402,   {planes, 3, 400},
                   {402, 0, 0},     {1200, 400, 1}, {{402, 1, {0, 400, 1}}},
                   "node 'n'"};
  Longs numbers;
  for (std::int64_t j = 0; j < 3; ++j) {
    for (std::int64_t i = 0; i < 400; ++i) numbers.push_back(i + j);
  }
  Floats values(static_cast<std::size_t>(planes * 1200));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977) * 0.37F;
  Floats expected(static_cast<std::size_t>(planes * 402), 0.5F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[i / 1200 * 402 + static_cast<std::size_t>(numbers[i % 1200])] += values[i];
  }
  const Floats start(expected.size(), 0.5F);
  CHECK(run<float>(call, planes * 402, start, values, numbers) == expected);
  call.combine = IndexedCopy::Combine::kReplace;
  const Floats replaced = run<float>(call, planes * 402, start, values, numbers);
  CHECK(replaced[402] == values[1200]);
  CHECK(replaced[402 + 2] == values[1200 + 800]);  // the last of three windows
  CHECK(replaced[402 + 401] == values[2399]);
}

TEST_CASE("sorting is stable, NaN is the largest, and zeros are equal",
          "[onednn][kernels][typed]") {
  const float nan = std::nanf("");
  const Floats row{2, nan, -0.0F, 1, 0, -INFINITY, nan, INFINITY};
  SortRows call{DType::kFloat32, false, false, 1, 8, 8};
  CHECK(run<std::int64_t>(call, 8, row) == Longs{5, 2, 4, 3, 0, 7, 1, 6});
  call.descending = true;
  CHECK(run<std::int64_t>(call, 8, row) == Longs{1, 6, 7, 0, 3, 2, 4, 5});
  call.kept = 3;
  auto first = run<std::int64_t>(call, 8, row);
  first.resize(3);
  CHECK(first == Longs{1, 6, 7});
  const Longs wide{3, INT64_MIN, 3, INT64_MAX, 0};
  SortRows longs{DType::kInt64, false, true, 1, 5, 5};
  CHECK(run<std::int64_t>(longs, 10, wide) == Longs{1, 4, 0, 2, 3, INT64_MIN, 0, 3, 3, INT64_MAX});
  longs.descending = true;
  CHECK(run<std::int64_t>(longs, 10, wide) == Longs{3, 0, 2, 4, 1, INT64_MAX, 3, 3, 0, INT64_MIN});
  const Longs near{INT64_MAX, INT64_MAX - 3, INT64_MAX, INT64_MAX - 1};
  CHECK(run<std::int64_t>(SortRows{DType::kInt64, true, false, 1, 4, 4}, 4, near) ==
        Longs{0, 2, 3, 1});
  CHECK(run<std::int64_t>(SortRows{DType::kBool, true, false, 2, 3, 3}, 6,
                          Bytes{0, 1, 0, 1, 1, 0}) == Longs{1, 0, 2, 0, 1, 2});
}

TEST_CASE("rows of each group are multiplied with its matrix", "[onednn][kernels][typed]") {
  for (const VectorIsa isa : {VectorIsa::kAny, VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    if (isa > cpu_vector_isa()) continue;
    const std::int64_t lanes = lanes_of(isa), groups = 3, rows = 40, inner = 5;
    for (const std::int64_t columns : {1L, 7L, 16L, 37L}) {
      const GroupedProduct call{groups, rows, inner, columns, "node 'n'", isa};
      CAPTURE(lanes, columns);
      Floats source(static_cast<std::size_t>(rows * inner));
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 11) - 5;
      Floats weight(static_cast<std::size_t>(groups * call.blocks() * inner * lanes));
      const auto weight_of = [](std::int64_t g, std::int64_t k, std::int64_t c) {
        return static_cast<float>((g * 7 + k * 3 + c) % 13) - 6;
      };
      for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t k = 0; k < inner; ++k) {
          for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t block = g * call.blocks() + c / lanes;
            weight[static_cast<std::size_t>((block * inner + k) * lanes + c % lanes)] =
                weight_of(g, k, c);
          }
        }
      }
      const Longs ends{17, 17, 38};
      Floats wanted(static_cast<std::size_t>(rows * columns), 0.0F);
      for (std::int64_t r = 0; r < 38; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          for (std::int64_t k = 0; k < inner; ++k) {
            wanted[static_cast<std::size_t>(r * columns + c)] +=
                source[static_cast<std::size_t>(r * inner + k)] * weight_of(r < 17 ? 0 : 2, k, c);
          }
        }
      }
      CHECK(run_for_isa<float>(call, wanted.size(), source, weight, ends) == wanted);
      CHECK_THROWS_WITH(run_for_isa<float>(call, wanted.size(), source, weight, Longs{17, 16, 38}),
                        Catch::Contains("node 'n': offsets do not ascend up to 40"));
      CHECK_THROWS_AS(run_for_isa<float>(call, wanted.size(), source, weight, Longs{1, 2, 41}),
                      Error);
    }
  }
}

TEST_CASE("parts are copied backwards and over each other", "[onednn][kernels][typed]") {
  const CopyParts call{2, {{0, 5, 0, {4, {6}, {-1}, {1}}}, {1, 0, 1, {4, {2}, {0}, {2}}}}};
  CHECK(run<float>(call, 6, Floats{1, 2, 3, 4, 5, 6}, Floats{9}) == Floats{6, 9, 4, 9, 2, 1});
}

TEST_CASE("triangles of matrices", "[onednn][kernels][typed]") {
  const Ints matrix{1, 2, 3, 4, 5, 6};
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, 0, false}, 6, matrix) == Ints{1, 0, 0, 4, 5, 0});
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, 1, true}, 6, matrix) == Ints{0, 2, 3, 0, 0, 6});
  CHECK(run<std::int32_t>(Triangle{4, 1, 2, 3, -5, true}, 6, matrix) == matrix);
}

TEST_CASE("reductions and running sums of integers", "[onednn][kernels][typed]") {
  using Reduce = IntegerReduction::Op;
  const Ints values{1, 2, 3, 4, 5, 6};  // [1, 3, 2]
  const auto reduced = [&](Reduce op) {
    return run<std::int64_t>(IntegerReduction{op, DType::kInt32, 1, 3, 2}, 2, values);
  };
  CHECK(reduced(Reduce::kSum) == Longs{9, 12});
  CHECK(reduced(Reduce::kProduct) == Longs{15, 48});
  CHECK(run<std::uint8_t>(IntegerReduction{Reduce::kAll, DType::kBool, 2, 2, 1}, 2,
                          Bytes{1, 1, 1, 0}) == Bytes{1, 0});
  CHECK(run<std::int64_t>(RunningSum{DType::kInt64, 1, 3, 1}, 3, Longs{1, 2, 3}) == Longs{1, 3, 6});
}

TEST_CASE("the first of equal extrema counts, and NaN before all", "[onednn][kernels][typed]") {
  const float nan = std::nanf("");
  const ArgReduction call{DType::kFloat32, true, false, 2, 4, 1};
  CHECK(run<std::int64_t>(call, 2, Floats{1, 5, 5, 2, 3, nan, 9, nan}) == Longs{1, 1});
  ArgReduction least{DType::kFloat32, false, true, 1, 3, 1};
  const auto both = run<float>(least, 3, Floats{4, -2, 3});
  std::int64_t place = 0;
  std::memcpy(&place, both.data(), sizeof place);
  CHECK(place == 1);
  CHECK(both[2] == -2.0F);
}

TEST_CASE("rounding to an integer keeps the sign of zero", "[onednn][kernels][typed]") {
  using Function = Elementwise::Function;
  const Floats values{-0.0F, 0.0F, -0.3F, 0.3F, -0.5F, 1.5F, -2.5F, 8388609.0F};
  const auto check = [&](Function function, float (*exact)(float)) {
    const auto result =
        run<float>(Elementwise{function, DType::kFloat32, static_cast<std::int64_t>(values.size())},
                   values.size(), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO(static_cast<int>(function) << " of " << values[i] << ": " << result[i]);
      CHECK(result[i] == exact(values[i]));
      CHECK(std::signbit(result[i]) == std::signbit(exact(values[i])));
    }
  };
  check(Function::kFloor, [](float x) { return std::floor(x); });
  check(Function::kCeil, [](float x) { return std::ceil(x); });
  check(Function::kTruncate, [](float x) { return std::trunc(x); });
  check(Function::kRound, [](float x) { return std::nearbyint(x); });
}

}  // namespace npu::onednn

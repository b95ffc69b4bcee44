// SPDX-License-Identifier: Apache-2.0
// Element-wise comparison at its edges.
#include "npu/runtime/compare.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "catch.hpp"

using namespace npu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename T>
Tensor tensor_of(DType dtype, const std::vector<T>& values) {
  Tensor tensor(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as_mutable<T>()[i] = values[i];
  return tensor;
}
Tensor doubles(const std::vector<double>& values) { return tensor_of(DType::kFloat64, values); }

Comparison one(double actual, double expected, const Tolerance& tolerance) {
  return compare_tensors(doubles({actual}), doubles({expected}), tolerance);
}

}  // namespace

TEST_CASE("compare: equal tensors, also without elements") {
  for (const std::vector<double>& values : {std::vector<double>{}, {1, -2, 0}}) {
    const Comparison result = compare_tensors(doubles(values), doubles(values), {0, 0});
    CHECK(result.ok);
    CHECK(result.mismatch.empty());
    CHECK(result.elements == static_cast<std::int64_t>(values.size()));
    CHECK(result.out_of_tolerance == 0);
    CHECK(result.max_abs == 0);
    CHECK(result.max_rel == 0);
    CHECK(result.worst_index == -1);
  }
}

TEST_CASE("compare: another dtype or shape is a mismatch") {
  const Comparison dtype =
      compare_tensors(Tensor(DType::kFloat32, {2}), Tensor(DType::kFloat64, {2}), {});
  CHECK_FALSE(dtype.ok);
  CHECK(dtype.mismatch == "is float32 [2], expected float64 [2]");
  const Comparison shape =
      compare_tensors(Tensor(DType::kInt8, {2, 1}), Tensor(DType::kInt8, {2}), {});
  CHECK_FALSE(shape.ok);
  CHECK(shape.mismatch == "is int8 [2, 1], expected int8 [2]");
}

TEST_CASE("compare: the tolerance is atol + rtol * |expected|, inclusive") {
  // Powers of two, so that every sum is exact. Expected 8: the bound is 0.25 + 0.125 * 8 = 1.25.
  const Tolerance tolerance{.rtol = 0.125, .atol = 0.25};
  CHECK(one(9.25, 8, tolerance).ok);
  CHECK(one(6.75, 8, tolerance).ok);
  CHECK_FALSE(one(std::nextafter(9.25, 10.0), 8, tolerance).ok);
  CHECK_FALSE(one(std::nextafter(6.75, 0.0), 8, tolerance).ok);
  CHECK(one(-9.25, -8, tolerance).ok);
  CHECK_FALSE(one(-9.5, -8, tolerance).ok);
  // It is not symmetric: |expected| counts. 10 against 8 is 2 > 1.25; 8 against 16: 8 > 2.25.
  CHECK_FALSE(one(10, 8, tolerance).ok);
  CHECK(one(8, 9.25, tolerance).ok);  // 1.25 <= 0.25 + 1.15625
  // Around zero only atol counts.
  CHECK(one(0.25, 0, tolerance).ok);
  CHECK_FALSE(one(0.3, 0, tolerance).ok);
  CHECK(one(-0.0, 0.0, {0, 0}).ok);
}

TEST_CASE("compare: NaN equals NaN and nothing else") {
  const Tolerance wide{1, 1e300};
  CHECK(one(kNaN, kNaN, {0, 0}).ok);
  CHECK_FALSE(one(kNaN, 1, wide).ok);
  CHECK_FALSE(one(1, kNaN, wide).ok);
  CHECK_FALSE(one(kNaN, kInfinity, wide).ok);
  CHECK(one(kNaN, 1, wide).max_abs == kInfinity);
}

TEST_CASE("compare: an infinity equals only itself, whatever the tolerance") {
  const Tolerance wide{1, 1e300};
  CHECK(one(kInfinity, kInfinity, {0, 0}).ok);
  CHECK(one(-kInfinity, -kInfinity, {0, 0}).ok);
  CHECK_FALSE(one(kInfinity, -kInfinity, wide).ok);
  CHECK_FALSE(one(1, kInfinity, wide).ok);
  CHECK_FALSE(one(kInfinity, 1, wide).ok);
  CHECK_FALSE(one(std::numeric_limits<double>::max(), kInfinity, wide).ok);
}

TEST_CASE("compare: integers and bools are exact") {
  const Tolerance wide{1, 100};
  CHECK_FALSE(compare_tensors(tensor_of<std::int32_t>(DType::kInt32, {5}),
                              tensor_of<std::int32_t>(DType::kInt32, {6}), wide)
                  .ok);
  CHECK_FALSE(compare_tensors(tensor_of<std::uint8_t>(DType::kBool, {1}),
                              tensor_of<std::uint8_t>(DType::kBool, {0}), wide)
                  .ok);
  CHECK(compare_tensors(tensor_of<std::uint8_t>(DType::kUInt8, {255}),
                        tensor_of<std::uint8_t>(DType::kUInt8, {255}), {0, 0})
            .ok);
}

TEST_CASE("compare: 64-bit integers above 2^53 are told apart") {
  const auto differ = [](std::int64_t a, std::int64_t b) {
    const Comparison result = compare_tensors(tensor_of<std::int64_t>(DType::kInt64, {0, a}),
                                              tensor_of<std::int64_t>(DType::kInt64, {0, b}), {});
    if (!result.ok) CHECK(result.worst_index == 1);
    return !result.ok;
  };
  const std::int64_t limit = std::int64_t{1} << 53;
  CHECK(differ(limit, limit + 1));  // equal as doubles
  CHECK(differ(limit + 1, limit));
  CHECK(differ(INT64_MAX, INT64_MAX - 1));
  CHECK(differ(INT64_MIN, INT64_MIN + 1));
  CHECK_FALSE(differ(INT64_MAX, INT64_MAX));
  CHECK_FALSE(differ(limit + 1, limit + 1));
}

TEST_CASE("compare: 16-bit floats go by their values") {
  const auto halves = [](std::uint16_t bits) {
    return tensor_of<std::uint16_t>(DType::kFloat16, {bits});
  };
  const auto bfloats = [](std::uint16_t bits) {
    return tensor_of<std::uint16_t>(DType::kBFloat16, {bits});
  };
  CHECK(compare_tensors(halves(0x0000), halves(0x8000), {0, 0}).ok);    // 0 and -0
  CHECK(compare_tensors(bfloats(0x7fc0), bfloats(0xffc1), {0, 0}).ok);  // NaNs
  // 1 and the next: 2^-10 and 2^-7 apart.
  CHECK(compare_tensors(halves(0x3c01), halves(0x3c00), {0, 0}).max_abs == std::ldexp(1.0, -10));
  CHECK(compare_tensors(bfloats(0x3f81), bfloats(0x3f80), {0, 0}).max_abs == std::ldexp(1.0, -7));
}

TEST_CASE("compare: complex numbers in both parts") {
  const Tensor expected = [] {
    Tensor tensor(DType::kComplex64, {2});
    for (int i = 0; i < 4; ++i) tensor.as_mutable<float>()[i] = static_cast<float>(i);
    return tensor;
  }();
  CHECK(compare_tensors(expected, expected, {0, 0}).ok);
  Tensor other(DType::kComplex64, {2});
  for (int i = 0; i < 4; ++i) other.as_mutable<float>()[i] = static_cast<float>(i == 3 ? 4 : i);
  const Comparison result = compare_tensors(other, expected, {0, 0});
  CHECK_FALSE(result.ok);
  CHECK(result.worst_index == 1);  // the imaginary part of element 1
  CHECK(result.max_abs == 1);
  Tensor wide(DType::kComplex128, {1});
  wide.as_mutable<double>()[1] = 1;
  CHECK_FALSE(compare_tensors(wide, Tensor(DType::kComplex128, {1}), {0, 0.5}).ok);
}

TEST_CASE("compare: counts, maxima and the element that is furthest out") {
  const Comparison result = compare_tensors(doubles({1, 2.5, 30, 4, 0.5}),
                                            doubles({1, 2, 20, 4, 0}), {.rtol = 0, .atol = 0.5});
  CHECK_FALSE(result.ok);
  CHECK(result.elements == 5);
  CHECK(result.out_of_tolerance == 1);
  CHECK(result.max_abs == 10);
  CHECK(result.max_rel == 0.5);  // 10 / 20; 0.5 / 2 is less, and where 0 is expected there is none
  CHECK(result.worst_index == 2);
  CHECK(result.worst_actual == 30);
  CHECK(result.worst_expected == 20);
  // Furthest beyond its own bound, not the largest difference: 100 is within 0.1 * 1000 + 0.
  const Comparison relative =
      compare_tensors(doubles({1100, 3}), doubles({1000, 2}), {.rtol = 0.1, .atol = 0});
  CHECK(relative.worst_index == 1);
  CHECK(relative.out_of_tolerance == 1);
  CHECK(relative.max_abs == 100);
}

TEST_CASE("the relative error of a result is against its largest magnitude", "[runtime][compare]") {
  const auto floats = [](std::initializer_list<float> values) {
    Tensor tensor(DType::kFloat32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.as_mutable<float>());
    return tensor;
  };
  const float nan = std::nanf("");
  CHECK(relative_error(floats({1, 2, -4}), floats({1, 2, -4})) == 0);
  CHECK(relative_error(floats({1, 2.5F, -4}), floats({1, 2, -4})) == 0.125);  // 0.5 of 4
  CHECK(relative_error(floats({0.5F, 8}), floats({0, 8})) == 0.0625);         // near 0: 0.5 of 8
  CHECK(relative_error(floats({0, 0}), floats({0, 0})) == 0);
  CHECK(std::isinf(relative_error(floats({1}), floats({0}))));
  CHECK(std::isinf(relative_error(floats({nan}), floats({1}))));
  CHECK(relative_error(floats({nan, 1}), floats({nan, 1})) == 0);
  CHECK(relative_error(floats({}), floats({})) == 0);
}

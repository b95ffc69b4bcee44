// SPDX-License-Identifier: Apache-2.0
// Element types, host tensors, and the 16-bit formats against arithmetic that knows only their
// definition.
#include "npu/tensor/tensor.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A 16-bit format: 1 sign bit, the given exponent bits, the rest mantissa.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int top() const { return (1 << exponent_bits) - 1; }
};
constexpr Format kHalf{5, 10};
constexpr Format kBFloat{8, 7};

// The value of a pattern by the definition of IEEE 754: (-1)^s * 2^(e - bias) * (1 + m / 2^bits),
// without the 1 and with e = 1 where the exponent field is 0.
double value_of(const Format& format, unsigned bits) {
  const unsigned mantissa = bits & ((1U << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & format.top();
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == format.top()) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits) + (exponent == 0 ? 0 : 1);
  return sign * std::ldexp(fraction, (exponent == 0 ? 1 : exponent) - format.bias());
}

// The nearest pattern by looking at both neighbours: `below` and the pattern after it, ties to the
// even one. Patterns of one sign are ordered like their values, and infinity stands where the next
// power would.
unsigned nearest(const Format& format, double magnitude) {
  unsigned below = 0;
  for (unsigned step = 1U << 14; step != 0; step >>= 1) {
    const unsigned candidate = below + step;
    if (candidate < static_cast<unsigned>(format.top()) << format.mantissa_bits &&
        value_of(format, candidate) <= magnitude) {
      below = candidate;
    }
  }
  const double low = value_of(format, below);
  const unsigned above = below + 1;
  const bool above_is_infinity = above == static_cast<unsigned>(format.top())
                                              << format.mantissa_bits;
  const double high =
      above_is_infinity ? std::ldexp(1.0, format.top() - format.bias()) : value_of(format, above);
  const double middle = (low + high) / 2;
  if (magnitude < middle) return below;
  if (magnitude > middle) return above;
  return below % 2 == 0 ? below : above;
}

}  // namespace

TEST_CASE("dtype: names, sizes and kinds of all twelve") {
  struct Row {
    DType dtype;
    const char* name;
    std::size_t size;
    bool floating;
    bool integer;
  };
  const std::vector<Row> rows{{DType::kFloat32, "float32", 4, true, false},
                              {DType::kFloat64, "float64", 8, true, false},
                              {DType::kFloat16, "float16", 2, true, false},
                              {DType::kBFloat16, "bfloat16", 2, true, false},
                              {DType::kInt8, "int8", 1, false, true},
                              {DType::kUInt8, "uint8", 1, false, true},
                              {DType::kInt16, "int16", 2, false, true},
                              {DType::kInt32, "int32", 4, false, true},
                              {DType::kInt64, "int64", 8, false, true},
                              {DType::kBool, "bool", 1, false, false},
                              {DType::kComplex64, "complex64", 8, false, false},
                              {DType::kComplex128, "complex128", 16, false, false}};
  REQUIRE(rows.size() == kDTypeCount);
  std::string all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    CAPTURE(row.name);
    CHECK(static_cast<std::size_t>(row.dtype) == i);  // the numbers of the backend ABI
    CHECK(dtype_name(row.dtype) == row.name);
    CHECK(dtype_size(row.dtype) == row.size);
    CHECK(is_floating_point(row.dtype) == row.floating);
    CHECK(is_integer(row.dtype) == row.integer);
    CHECK(parse_dtype(row.name) == row.dtype);
    CHECK(parse_dtype("torch." + std::string(row.name)) == row.dtype);
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  }
  CHECK(dtype_names() == all);
  for (const char* name : {"", "float", "Float32", "torch.", "torch.float", "float32 ",
                           "torch.torch.float32", "uint16", "qint8"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_dtype(name).has_value());
  }
}

TEST_CASE("tensor: shapes as text") {
  CHECK(shape_text({}) == "[]");
  CHECK(shape_text({7}) == "[7]");
  CHECK(shape_text({1, 3, 224, 224}) == "[1, 3, 224, 224]");
}

TEST_CASE("tensor: a default tensor has no elements") {
  const Tensor tensor;
  CHECK(tensor.element_count() == 0);
  CHECK(tensor.bytes() == 0);
  CHECK(tensor.shape() == Shape{0});
  CHECK(tensor.data() == nullptr);
}

TEST_CASE("tensor: sizes of scalars, empty and other shapes") {
  const Tensor scalar(DType::kComplex128, {});
  CHECK(scalar.element_count() == 1);
  CHECK(scalar.bytes() == 16);
  const Tensor empty(DType::kInt64, {3, 0, 5});
  CHECK(empty.element_count() == 0);
  CHECK(empty.bytes() == 0);
  CHECK(empty.data() != nullptr);
  const Tensor cube(DType::kBFloat16, {2, 3, 5});
  CHECK(cube.element_count() == 30);
  CHECK(cube.bytes() == 60);
}

TEST_CASE("tensor: memory is zero and aligned to 64 bytes") {
  for (std::int64_t size : {1, 63, 64, 65, 1000}) {
    const Tensor tensor(DType::kUInt8, {size});
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    for (std::int64_t i = 0; i < size; ++i) CHECK(tensor.as<std::uint8_t>()[i] == 0);
  }
}

TEST_CASE("tensor: copies share their bytes and outlive each other") {
  Tensor copy;
  {
    Tensor tensor(DType::kInt32, {2});
    tensor.as_mutable<std::int32_t>()[1] = 7;
    copy = tensor;
    CHECK(copy.data() == tensor.data());
  }
  CHECK(copy.as<std::int32_t>()[1] == 7);
}

TEST_CASE("tensor: bytes that somebody else owns stay where they are") {
  const auto owner = std::make_shared<std::vector<std::byte>>(8);
  (*owner)[4] = std::byte{3};
  const Tensor tensor(DType::kInt32, {2}, std::shared_ptr<const std::byte>(owner, owner->data()));
  CHECK(tensor.data() == owner->data());
  CHECK(tensor.as<std::int32_t>()[1] == 3);
  CHECK(owner.use_count() == 2);
}

TEST_CASE("tensor: shapes that do not fit are errors") {
  const std::int64_t big = std::int64_t{1} << 32;
  const auto code = [](DType dtype, const Shape& shape) {
    try {
      Tensor tensor(dtype, shape);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUsage;
  };
  CHECK(code(DType::kInt8, {big, big}) == ErrorCode::kInvalidGraph);          // 2^64 elements
  CHECK(code(DType::kInt8, {big, big / 2}) == ErrorCode::kInvalidGraph);      // 2^63
  CHECK(code(DType::kFloat64, {big, big / 16}) == ErrorCode::kInvalidGraph);  // 2^60 * 8 bytes
  CHECK(code(DType::kInt8, {-1}) == ErrorCode::kInvalidGraph);
  CHECK(code(DType::kInt8, {0, -1}) == ErrorCode::kInvalidGraph);
  CHECK(code(DType::kInt8, {big, big, 0}) == ErrorCode::kInvalidGraph);  // strides would not fit
  CHECK_NOTHROW(Tensor(DType::kInt8, {big, 0}));
}

// Checks the limits of memory, where sanitizers end the program instead of refusing.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("tensor: more memory than there is, is an error that says how much") {
  for (const std::int64_t size : {std::int64_t{1} << 62, INT64_MAX}) {
    try {
      Tensor tensor(DType::kInt8, {size});
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInfeasible);
      CHECK(error.message() == "out of memory for a tensor of " + std::to_string(size) +
                                   " bytes, shape " + shape_text({size}));
    }
  }
}
#endif

TEST_CASE("tensor: elements as doubles, whatever the dtype") {
  const auto value = [](DType dtype, auto stored) {
    Tensor tensor(dtype, {2});
    std::memcpy(tensor.mutable_data() + dtype_size(dtype), &stored, sizeof(stored));
    CHECK(tensor.value_as_double(0) == 0);
    return tensor.value_as_double(1);
  };
  CHECK(value(DType::kFloat32, 1.5F) == 1.5);
  CHECK(value(DType::kFloat64, -0.1) == -0.1);
  CHECK(value(DType::kFloat16, std::uint16_t{0x3e00}) == 1.5);   // 1 + 512/1024
  CHECK(value(DType::kBFloat16, std::uint16_t{0x3fc0}) == 1.5);  // 1 + 64/128
  CHECK(value(DType::kInt8, std::int8_t{-128}) == -128);
  CHECK(value(DType::kUInt8, std::uint8_t{255}) == 255);
  CHECK(value(DType::kInt16, std::int16_t{-32768}) == -32768);
  CHECK(value(DType::kInt32, std::int32_t{INT32_MIN}) == -2147483648.0);
  CHECK(value(DType::kInt64, std::int64_t{INT64_MIN}) == -9223372036854775808.0);
  CHECK(value(DType::kBool, std::uint8_t{1}) == 1);
  CHECK(value(DType::kComplex64, std::array<float, 2>{2.5F, 9.0F}) == 2.5);
  CHECK(value(DType::kComplex128, std::array<double, 2>{2.5, 9.0}) == 2.5);
}

TEST_CASE("bfloat16 and float16: every pattern has the value that the definition gives") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    for (const bool half : {false, true}) {
      const double expected = value_of(half ? kHalf : kBFloat, bits);
      const auto pattern = static_cast<std::uint16_t>(bits);
      const float actual = half ? float16_to_float(pattern) : bfloat16_to_float(pattern);
      const bool same = std::isnan(expected) ? std::isnan(actual)
                                             : static_cast<double>(actual) == expected &&
                                                   std::signbit(actual) == std::signbit(expected);
      if (!same && ++wrong < 5) FAIL_CHECK("pattern " << bits << (half ? " float16" : " bfloat16"));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16 and float16: every pattern survives the way to float and back") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const std::uint16_t bfloat = float_to_bfloat16(bfloat16_to_float(pattern));
    const std::uint16_t half = float_to_float16(float16_to_float(pattern));
    // A NaN stays a NaN of its sign; which one is not promised.
    const bool bfloat_good = std::isnan(value_of(kBFloat, bits))
                                 ? std::isnan(value_of(kBFloat, bfloat)) && (bfloat ^ bits) < 0x8000
                                 : bfloat == bits;
    const bool half_good = std::isnan(value_of(kHalf, bits))
                               ? std::isnan(value_of(kHalf, half)) && (half ^ bits) < 0x8000
                               : half == bits;
    if (!(bfloat_good && half_good) && ++wrong < 5) FAIL_CHECK("pattern " << bits);
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "bfloat16 and float16: values between two neighbours round to the nearest, ties to even") {
  int wrong = 0;
  for (const bool half : {false, true}) {
    const Format& format = half ? kHalf : kBFloat;
    const unsigned infinity = static_cast<unsigned>(format.top()) << format.mantissa_bits;
    for (unsigned bits = 0; bits < infinity; ++bits) {
      const double low = value_of(format, bits);
      const double high = bits + 1 == infinity ? std::ldexp(1.0, format.top() - format.bias())
                                               : value_of(format, bits + 1);
      // The middle is exact in float; its neighbours in float are on either side of it.
      const auto middle = static_cast<float>((low + high) / 2);
      REQUIRE(static_cast<double>(middle) == (low + high) / 2);
      const unsigned even = bits % 2 == 0 ? bits : bits + 1;
      struct Sample {
        float value;
        unsigned expected;
      };
      for (const Sample& sample : {Sample{middle, even}, Sample{std::nextafter(middle, 0.0F), bits},
                                   Sample{std::nextafter(middle, kInfinity), bits + 1},
                                   Sample{static_cast<float>(low), bits}}) {
        const auto convert = half ? float_to_float16 : float_to_bfloat16;
        if (convert(sample.value) != sample.expected && ++wrong < 5) {
          FAIL_CHECK("near pattern " << bits << (half ? " float16" : " bfloat16"));
        }
        if (convert(-sample.value) != (sample.expected | 0x8000) && ++wrong < 5) {
          FAIL_CHECK("near pattern -" << bits << (half ? " float16" : " bfloat16"));
        }
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16 and float16: floats of every exponent round as the definition says") {
  int wrong = 0;
  std::uint32_t state = 12345;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 60; ++i) {
      state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
      const std::uint32_t mantissa = i == 0 ? 0 : i == 1 ? 0x7fffff : state >> 9;
      const auto value = std::bit_cast<float>(exponent << 23 | mantissa);
      if (float_to_float16(value) != nearest(kHalf, value) && ++wrong < 5)
        FAIL_CHECK("float16 of " << value);
      if (float_to_bfloat16(value) != nearest(kBFloat, value) && ++wrong < 5)
        FAIL_CHECK("bfloat16 of " << value);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16 and float16: limits") {
  CHECK(float_to_float16(65504.0F) == 0x7bff);                        // the largest
  CHECK(float_to_float16(std::nextafter(65520.0F, 0.0F)) == 0x7bff);  // below half a step more
  CHECK(float_to_float16(65520.0F) == 0x7c00);  // a tie goes to infinity, the even one
  CHECK(float_to_float16(std::numeric_limits<float>::max()) == 0x7c00);
  CHECK(float_to_float16(-kInfinity) == 0xfc00);
  CHECK(float_to_float16(0x1p-24F) == 1);  // the smallest subnormal
  CHECK(float_to_float16(0x1p-25F) == 0);  // a tie goes to zero, the even one
  CHECK(float_to_float16(std::nextafter(0x1p-25F, 1.0F)) == 1);
  CHECK(float_to_float16(0x1.8p-24F) == 2);  // between 1 and 2: even
  CHECK(float_to_float16(-0.0F) == 0x8000);
  CHECK(float_to_float16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) ==
        0x7f80);  // above the largest by half a step
  CHECK(float_to_bfloat16(-kInfinity) == 0xff80);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_bfloat16(-0.0F) == 0x8000);
  CHECK(std::isnan(float16_to_float(float_to_float16(kNaN))));
  CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(kNaN))));
  // A NaN whose payload lies in the bits that are cut must not become infinity.
  CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
  CHECK(std::isnan(float16_to_float(float_to_float16(std::bit_cast<float>(0xff800001U)))));
}

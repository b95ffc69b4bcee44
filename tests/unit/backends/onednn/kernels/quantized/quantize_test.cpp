// SPDX-License-Identifier: Apache-2.0
// Conversions from and to quantized numbers: rounding, ties, cuts and special values, by hand and
// against the definitions, on every instruction set.
#include "kernels/quantized/quantize.hpp"

#include <cmath>
#include <limits>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using Signed = std::vector<std::int8_t>;

template <typename To, typename... From>
std::vector<To> run(const Kernel& kernel, std::size_t count, std::vector<From>... reads) {
  std::vector<To> target(count);
  std::vector<std::byte*> addresses{static_cast<std::byte*>(static_cast<void*>(reads.data()))...};
  addresses.push_back(static_cast<std::byte*>(static_cast<void*>(target.data())));
  run_kernel(kernel, addresses);
  return target;
}

Quantize plain(DType to, std::int64_t count, VectorIsa isa) {
  const bool is_signed = to == DType::kInt8;
  return {to, false, 1, 1, count, is_signed ? -128 : 0, is_signed ? 127 : 255, isa};
}

}  // namespace

TEST_CASE("ties go to even numbers, and what is too large is cut", "[onednn][kernels][quantize]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Floats x{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 1e30F, -1e30F, kInfinity, -kInfinity, kNan, 300.F};
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    Quantize call = plain(DType::kInt8, 11, isa);
    CHECK(run<std::int8_t>(call, 11, x, Floats{1.0F}, Floats{3.0F}) ==
          Signed{3, 5, 5, 3, 1, 127, -128, 127, -128, 0, 127});
    call.divides = true;  // NaN is the least number
    call.least = -100;
    call.most = 100;
    CHECK(run<std::int8_t>(call, 11, x, Floats{1.0F}, Floats{3.0F}) ==
          Signed{3, 5, 5, 3, 1, 100, -100, 100, -100, -100, 100});
    CHECK(run<std::uint8_t>(plain(DType::kUInt8, 11, isa), 11, x, Floats{1.0F}, Floats{3.0F}) ==
          Bytes{3, 5, 5, 3, 1, 255, 0, 255, 0, 0, 255});
  }
}

TEST_CASE("a quotient is rounded where it is one, a product where that is",
          "[onednn][kernels][quantize]") {
  // 0.1F * (1 / 0.02F) and 0.1F / 0.02F are on both sides of ties for some numbers.
  Floats x;
  for (int i = 0; i < 5000; ++i) x.push_back(static_cast<float>(i - 2500) * 0.005F);
  const float scale = 0.01F;
  bool differ = false;
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    for (const bool divides : {false, true}) {
      Quantize call = plain(DType::kUInt8, 5000, isa);
      call.divides = divides;
      const float factor = divides ? scale : 1.0F / scale;
      const Bytes result = run<std::uint8_t>(call, 5000, x, Floats{factor}, Floats{128.0F});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float quotient = divides ? x[i] / scale : x[i] * (1.0F / scale);
        differ = differ || std::nearbyint(x[i] / scale) != std::nearbyint(x[i] * (1.0F / scale));
        const float whole = std::min(std::max(std::nearbyint(quotient) + 128.0F, 0.0F), 255.0F);
        REQUIRE(static_cast<float>(result[i]) == whole);
      }
    }
  }
  CHECK(differ);
}

TEST_CASE("each channel has its factor and zero", "[onednn][kernels][quantize]") {
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    const Quantize call{DType::kInt8, true, 2, 2, 2, -128, 127, isa};
    const Floats x{1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(run<std::int8_t>(call, 8, x, Floats{1, 0.5F}, Floats{0, 10}) ==
          Signed{1, 2, 16, 18, 5, 6, 24, 26});
    const Dequantize back{DType::kInt8, 2, 2, 2, isa};
    CHECK(run<float>(back, 8, Signed{1, 2, 16, 18, 5, 6, 24, 26}, Floats{1, 0.5F}, Floats{0, 10}) ==
          x);
    const Dequantize wide{DType::kInt32, 1, 1, 3, isa};
    CHECK(run<float>(wide, 3, std::vector<std::int32_t>{-70000, 0, 5}, Floats{2}, Floats{1}) ==
          Floats{-140002, -2, 8});
  }
}

TEST_CASE("sums, products and tables of quantized numbers", "[onednn][kernels][quantize]") {
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    QuantizedBinary call;
    call.a_type = DType::kInt8;
    call.a_factor = 0.5F;
    call.b_factor = 2.0F;
    call.a_zero = -1;
    call.b_zero = 100;
    call.zero = 7;
    call.least = 5;
    call.most = 200;
    call.inner = 19;
    call.isa = isa;
    Signed a(19);
    Bytes b(19);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::int8_t>(static_cast<int>(i) * 13 - 120);
      b[i] = static_cast<std::uint8_t>(i * 11);
    }
    const Bytes sums = run<std::uint8_t>(call, 19, a, b);
    call.multiplies = true;
    const Bytes products = run<std::uint8_t>(call, 19, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = (a[i] + 1) * 0.5;
      const double y = (b[i] - 100) * 2.0;
      const auto number = [](double value) {
        return static_cast<int>(std::min(std::max(std::nearbyint(value) + 7, 5.0), 200.0));
      };
      CHECK(int{sums[i]} == number(x + y));
      CHECK(int{products[i]} == number(x * y));
    }
    Bytes table(256);
    for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(255 - i * 3);
    Bytes every(300);
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::uint8_t>(i * 7);
    const Bytes found = run<std::uint8_t>(ByteTable{300, isa}, 300, every, table);
    for (std::size_t i = 0; i < every.size(); ++i) CHECK(found[i] == table[every[i]]);
  }
}

TEST_CASE("quantized numbers beside some that are broadcast", "[onednn][kernels][quantize]") {
  struct Runs {
    std::int64_t repeat;
    std::int64_t outer;
    std::int64_t inner_repeat;
    std::int64_t inner;
  };
  // The last two have more elements than one thread's piece.
  const Runs runs =
      GENERATE(Runs{1, 3, 5, 7}, Runs{2, 3, 35, 1}, Runs{4, 1, 1, 19}, Runs{2, 3, 4, 5},
               Runs{1, 1, 40, 1}, Runs{3, 70, 130, 1}, Runs{2, 2, 90, 75});
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    QuantizedBinary call;
    call.b_type = DType::kInt8;
    call.a_factor = 0.125F;
    call.b_factor = 0.0625F;
    call.a_zero = 90;
    call.b_zero = -7;
    call.zero = 100;
    call.repeat = runs.repeat;
    call.outer = runs.outer;
    call.inner_repeat = runs.inner_repeat;
    call.inner = runs.inner;
    call.isa = isa;
    const auto count =
        static_cast<std::size_t>(runs.repeat * runs.outer * runs.inner_repeat * runs.inner);
    Bytes a(count);
    Signed b(static_cast<std::size_t>(runs.outer * runs.inner));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(i * i * 7 % 253);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int8_t>(i * 37 % 256);
    for (const bool multiplies : {false, true}) {
      call.multiplies = multiplies;
      const Bytes found = run<std::uint8_t>(call, count, a, b);
      const auto inner = static_cast<std::size_t>(runs.inner);
      const auto row = static_cast<std::size_t>(runs.inner_repeat) * inner;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t outer = i / row % static_cast<std::size_t>(runs.outer);
        const double x = (a[i] - 90) * 0.125;
        const double y = (b[outer * inner + i % inner] + 7) * 0.0625;
        const double number = std::nearbyint(multiplies ? x * y : x + y) + 100;
        wrong += found[i] != std::min(std::max(number, 0.0), 255.0) ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("averages of windows of quantized numbers", "[onednn][kernels][quantize]") {
  for (const VectorIsa isa : test::instruction_sets(VectorIsa::kAny)) {
    QuantizedAverage call;
    call.to = DType::kInt8;
    call.batch = 2;
    call.channels = 70;
    call.extents[1] = 5;
    call.extents[2] = 4;
    call.windows[1] = {{0, 2, 3}, {2, 5, 3}};  // the first reaches into padding
    call.windows[2] = {{0, 4, 4}};
    call.factor = 0.75F;
    call.source_zero = 100;
    call.zero = -3;
    call.least = -100;
    call.most = 90;
    call.isa = isa;
    Bytes source(2 * 20 * 70);
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<std::uint8_t>(i * i * 31 % 251);
    }
    const Signed found = run<std::int8_t>(call, 2 * 2 * 70, source);
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t w = 0; w < 2; ++w) {
        for (std::size_t c = 0; c < 70; ++c) {
          double sum = 0;
          for (std::size_t y = w == 0 ? 0 : 2; y < (w == 0 ? 2U : 5U); ++y) {
            for (std::size_t x = 0; x < 4; ++x) {
              sum += source[((n * 5 + y) * 4 + x) * 70 + c] - 100.0;
            }
          }
          const double number = std::nearbyint(sum * 0.75 / 12) - 3;
          const int wanted = static_cast<int>(std::min(std::max(number, -100.0), 90.0));
          REQUIRE(std::abs(int{found[(n * 2 + w) * 70 + c]} - wanted) <= 1);
        }
      }
    }
  }
}

}  // namespace npu::onednn

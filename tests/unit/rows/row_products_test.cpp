// SPDX-License-Identifier: Apache-2.0
// Products of rows with weights against sums in double precision at every level of instructions,
// and that nothing but the row decides its bits.
#include "rows/row_products.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "catch.hpp"
#include "set_variable.hpp"

using namespace npu;
using npu::test::IsaLimit;

namespace {

std::vector<float> normal_values(std::int64_t count, std::mt19937& engine) {
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(normal(engine));
  return values;
}

Tensor matrix(std::int64_t rows, std::int64_t columns, std::mt19937& engine) {
  Tensor tensor(DType::kFloat32, {rows, columns});
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < rows * columns; ++i) tensor.as_mutable<float>()[i] = normal(engine);
  return tensor;
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

TEST_CASE("rows times weights are as in double precision", "[rows]") {
  const std::string level = GENERATE("generic", "avx2", "amx");
  const std::int64_t inner = GENERATE(0, 1, 16, 33, 257, 600);
  const std::int64_t columns = GENERATE(1, 7, 16, 40, 71, 128);
  const bool is_plain = GENERATE(true, false);
  CAPTURE(level, inner, columns, is_plain);
  const IsaLimit limit(level);
  std::mt19937 engine(3);
  constexpr std::int64_t kRows = 20;
  // Two matrices below each other.
  const Tensor first = matrix(columns / 2, inner, engine);
  const Tensor second = matrix(columns - columns / 2, inner, engine);
  const ProductWeights weights = pack_weights({{first}, {second}});
  const std::vector<float> x = normal_values(kRows * inner, engine);
  const std::vector<float> bias = normal_values(columns, engine);
  const std::vector<float> addend = normal_values(kRows * columns, engine);
  std::vector<float> out(at(kRows * columns), std::numeric_limits<float>::quiet_NaN());
  RowProduct product{.weights = &weights, .x = x.data(), .rows = kRows, .out = out.data()};
  if (!is_plain) {
    product.bias = bias.data();
    product.addend = addend.data();
    product.relu = true;
  }
  multiply_rows(product, 2);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const float* weight = c < columns / 2 ? first.as<float>() + c * inner
                                            : second.as<float>() + (c - columns / 2) * inner;
      double sum = 0;
      double magnitude = 0;
      const auto add = [&](double term) {
        sum += term;
        magnitude += std::abs(term);
      };
      for (std::int64_t k = 0; k < inner; ++k) {
        add(static_cast<double>(x[at(r * inner + k)]) * static_cast<double>(weight[k]));
      }
      if (!is_plain) {
        add(static_cast<double>(bias[at(c)]));
        add(static_cast<double>(addend[at(r * columns + c)]));
        sum = std::max(sum, 0.0);
      }
      // Each term is rounded at most once for every addition behind it, and once as a product.
      const double bound = static_cast<double>(inner + 3) * std::ldexp(magnitude, -24);
      REQUIRE(std::abs(static_cast<double>(out[at(r * columns + c)]) - sum) <= bound);
    }
  }
}

TEST_CASE("a row's product has the same bits among any rows, on any threads", "[rows]") {
  const std::string level = GENERATE("generic", "avx2", "amx");
  CAPTURE(level);
  const IsaLimit limit(level);
  std::mt19937 engine(4);
  constexpr std::int64_t kRows = 700;
  constexpr std::int64_t kInner = 300;
  constexpr std::int64_t kColumns = 90;
  const ProductWeights weights = pack_weights({{matrix(kColumns, kInner, engine)}});
  const std::vector<float> x = normal_values(kRows * kInner, engine);
  const std::vector<float> bias = normal_values(kColumns, engine);
  const auto multiply = [&](std::int64_t begin, std::int64_t rows, std::int32_t threads) {
    std::vector<float> out(at(rows * kColumns));
    multiply_rows({.weights = &weights,
                   .x = x.data() + begin * kInner,
                   .rows = rows,
                   .bias = bias.data(),
                   .out = out.data()},
                  threads);
    return out;
  };
  const std::vector<float> whole = multiply(0, kRows, 1);
  CHECK(multiply(0, kRows, 3) == whole);
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 13, 64, 193, 500}) {
    for (const std::int64_t begin : {0, 1, 4, 199}) {
      CAPTURE(rows, begin);
      const std::vector<float> some = multiply(begin, rows, 2);
      CHECK(std::memcmp(some.data(), whole.data() + begin * kColumns,
                        some.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("NaN and infinity pass through a product and its relu", "[rows]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor weight(DType::kFloat32, {1, 2});
  weight.as_mutable<float>()[0] = 1;
  weight.as_mutable<float>()[1] = -1;
  const ProductWeights weights = pack_weights({{weight}});
  const std::vector<float> x{nan, 0, infinity, 0, 0, infinity, infinity, infinity};
  std::vector<float> out(4);
  multiply_rows({.weights = &weights, .x = x.data(), .rows = 4, .relu = true, .out = out.data()},
                1);
  CHECK(std::isnan(out[0]));
  CHECK(out[1] == infinity);
  CHECK(out[2] == 0);
  CHECK(std::isnan(out[3]));
}

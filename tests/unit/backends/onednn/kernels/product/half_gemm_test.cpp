// SPDX-License-Identifier: Apache-2.0
#include "kernels/product/half_gemm.hpp"

#include <cstring>
#include <limits>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Kind = EpilogueStep::Kind;

struct HalfProduct {
  HalfGemm gemm;
  std::vector<float> source;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> other;

  HalfProduct(std::int64_t rows, std::int64_t inner, std::int64_t columns)
      : source(random_floats(rows * inner, 1)),
        weight(random_floats(columns * inner, 2)),
        bias(random_floats(columns, 4)),
        other(random_floats(rows * columns, 5)) {
    gemm.rows = rows;
    gemm.inner = inner;
    gemm.columns = columns;
    gemm.source.row = inner;
    gemm.target.row = columns;
    gemm.has_bias = true;
  }

  std::vector<float> run(VectorIsa isa, int threads) {
    gemm.isa = isa;
    gemm.threads = threads;
    if (gemm.source.row == gemm.inner) gemm.source.block = gemm.target.block = lanes_of(isa);
    std::vector<std::uint16_t> halves(gemm.weight_halves());
    HalfGemmWeights{gemm.columns, gemm.inner, threads}.run({weight.data(), halves.data()});
    std::vector<float> scales(gemm.scales());
    ColumnScales{gemm.columns, gemm.inner}.run({weight.data(), scales.data()});
    std::vector<float> target(static_cast<std::size_t>(gemm.images * gemm.rows * gemm.columns),
                              7.0F);
    std::vector<float> scratch(gemm.scratch_bytes() / sizeof(float));
    gemm.run({source.data(),
              halves.data(),
              scales.data(),
              bias.data(),
              {other.data()},
              target.data(),
              scratch.data()});
    return target;
  }

  std::vector<double> expected() const {
    std::vector<double> result;
    for (std::int64_t row = 0; row < gemm.images * gemm.rows; ++row) {
      for (std::int64_t column = 0; column < gemm.columns; ++column) {
        double sum = static_cast<double>(bias[static_cast<std::size_t>(column)]);
        for (std::int64_t k = 0; k < gemm.inner; ++k) {
          sum += static_cast<double>(source[static_cast<std::size_t>(row * gemm.inner + k)]) *
                 static_cast<double>(weight[static_cast<std::size_t>(column * gemm.inner + k)]);
        }
        for (const EpilogueStep& step : gemm.epilogue) {
          if (step.kind == Kind::kAdd) {
            sum +=
                static_cast<double>(other[static_cast<std::size_t>(row * gemm.columns + column)]);
          }
          sum = apply_exactly(step, sum);
        }
        result.push_back(sum);
      }
    }
    return result;
  }
};

NPU_TARGET_AVX2 void round_avx2(const float* from, std::size_t count, std::uint16_t* to) {
  constexpr auto kLanes = static_cast<std::size_t>(kLanesOf<NarrowFloats>);
  for (std::size_t i = 0; i < count; i += kLanes) {
    store_halves(to + i, load_vector<NarrowFloats>(from + i));
  }
}
NPU_TARGET_AVX512 void round_avx512(const float* from, std::size_t count, std::uint16_t* to) {
  for (std::size_t i = 0; i < count; i += 16) store_halves(to + i, load_vector<Float16>(from + i));
}

/// Of sums of products of numbers in [-1, 1], relative to the largest.
constexpr double kMostError = 4e-3;

struct HalfSize {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

}  // namespace

TEST_CASE("HalfGemm multiplies, the same on any number of threads", "[onednn][kernels]") {
  // One row, tiles of several sizes, half a panel, and more rows than a task may copy.
  const auto [rows, inner, columns] =
      GENERATE(HalfSize{1, 16, 16}, HalfSize{57, 96, 80}, HalfSize{113, 1040, 64},
               HalfSize{31, 144, 1040}, HalfSize{40, 20000, 32});
  const auto steps =
      GENERATE(std::vector<EpilogueStep>{}, std::vector<EpilogueStep>{{Kind::kRelu, 0.0F, 0.0F}},
               std::vector<EpilogueStep>{{Kind::kAdd, 0.0F, 0.0F}, {Kind::kSwish, 1.0F, 0.0F}});
  HalfProduct product(rows, inner, columns);
  product.gemm.epilogue = steps;
  const auto expected = product.expected();
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(HalfGemm::can_run(isa));
    const auto target = product.run(isa, 1);
    INFO(rows << " x " << inner << " x " << columns << ", " << steps.size() << " steps");
    const double error = worst_error(target, expected);
    CHECK(error < kMostError);
    CHECK(error > 1e-6);  // it is float16
    CHECK(product.run(isa, 3) == target);
    CHECK(product.run(isa, 7) == target);
  }
}

TEST_CASE("HalfGemm reads and writes channels in blocks", "[onednn][kernels]") {
  constexpr std::int64_t kImages = 2;
  constexpr std::int64_t kPixels = 49;
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    HalfProduct product(kImages * kPixels, 64, 48);
    product.bias.assign(product.bias.size(), 0.5F);
    const auto rows = product.run(isa, 1);
    // [image, pixel, channel] as [image, channel, pixel] as blocks.
    const auto turned = [](const std::vector<float>& values, std::int64_t channels, bool back) {
      std::vector<float> result(values.size());
      for (std::int64_t n = 0; n < kImages; ++n) {
        for (std::int64_t p = 0; p < kPixels; ++p) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const auto last = static_cast<std::size_t>((n * kPixels + p) * channels + c);
            const auto first = static_cast<std::size_t>((n * channels + c) * kPixels + p);
            result[back ? last : first] = values[back ? first : last];
          }
        }
      }
      return result;
    };
    const std::int64_t lanes = lanes_of(isa);
    product.source = in_blocks(turned(product.source, 64, false), kImages, 64, kPixels, lanes);
    product.gemm.images = kImages;
    product.gemm.rows = kPixels;
    product.gemm.source = {kPixels * 64, lanes, kPixels * lanes};
    product.gemm.target = {kPixels * 48, lanes, kPixels * lanes};
    const auto blocks = from_blocks(product.run(isa, 2), kImages, 48, kPixels, lanes);
    CHECK(turned(blocks, 48, true) == rows);
  }
}

TEST_CASE("HalfGemm takes rows and columns of any magnitude", "[onednn][kernels][special]") {
  HalfProduct product(20, 208, 48);
  product.bias.assign(product.bias.size(), 0.0F);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    HalfProduct scaled = product;
    // Row i times 2^(6 i - 60), column j times 2^(2 j - 48).
    for (std::size_t i = 0; i < scaled.source.size(); ++i) {
      scaled.source[i] = std::ldexp(scaled.source[i], 6 * static_cast<int>(i / 208) - 60);
    }
    for (std::size_t i = 0; i < scaled.weight.size(); ++i) {
      scaled.weight[i] = std::ldexp(scaled.weight[i], 2 * static_cast<int>(i / 208) - 48);
    }
    const auto expected = product.run(isa, 1);
    const auto target = scaled.run(isa, 1);
    std::size_t unlike = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const int exponent = 6 * static_cast<int>(i / 48) - 60 + 2 * static_cast<int>(i % 48) - 48;
      if (target[i] != std::ldexp(expected[i], exponent)) ++unlike;
    }
    CHECK(unlike == 0);
  }
}

TEST_CASE("HalfGemm keeps rows and columns apart", "[onednn][kernels][special]") {
  const float changed =
      GENERATE(1e30F, 3e38F, std::numeric_limits<float>::infinity(),
               -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    HalfProduct product(30, 64, 32);
    const auto before = product.run(isa, 1);
    product.source[7 * 64 + 5] = changed;
    product.weight[9 * 64 + 5] = changed;
    const auto after = product.run(isa, 1);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t row = i / 32;
      const std::size_t column = i % 32;
      if (row != 7 && column != 9) {
        CHECK(after[i] == before[i]);
      } else if (!std::isfinite(changed)) {
        CHECK_FALSE(std::isfinite(after[i]));
      } else if (row != 7 || column != 9) {  // else it overflows
        CHECK(std::isfinite(after[i]));
      }
    }
  }
}

TEST_CASE("store_halves rounds to the nearest float16", "[onednn][kernels]") {
  std::vector<float> values{0.0F,
                            -0.0F,
                            1.0F,
                            65504.0F,
                            65519.9F,
                            65520.0F,
                            1e30F,
                            2e-8F,
                            2.98e-8F,
                            6e-8F,
                            6.1e-5F,
                            6.2e-5F,
                            -1.5F,
                            1.00048828F,
                            2.00146F,
                            -3e-5F,
                            std::numeric_limits<float>::infinity()};
  const auto more = random_floats(4096, 3);
  for (std::size_t i = 0; i < more.size(); ++i) {
    values.push_back(std::ldexp(more[i], static_cast<int>(i % 48) - 28));
  }
  values.resize(values.size() / 16 * 16);
  std::vector<std::uint16_t> halves(values.size());
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    const auto round = isa == VectorIsa::kAvx512 ? round_avx512 : round_avx2;
    round(values.data(), values.size(), halves.data());
    std::size_t unlike = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (halves[i] != float_to_float16(values[i])) ++unlike;
    }
    CHECK(unlike == 0);
  }
}

}  // namespace npu::onednn

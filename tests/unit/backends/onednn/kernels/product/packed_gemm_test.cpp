// SPDX-License-Identifier: Apache-2.0
#include "kernels/product/packed_gemm.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/product/packed_gemm_weights.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Kind = EpilogueStep::Kind;

struct Product {
  PackedGemm gemm;
  std::vector<float> source;
  std::vector<float> weight;
  std::vector<float> norm;
  std::vector<float> bias;
  std::vector<float> other;

  Product(std::int64_t rows, std::int64_t inner, std::int64_t columns, bool use_strassen)
      : source(random_floats(rows * inner, 1)),
        weight(random_floats(columns * inner, 2)),
        norm(random_floats(2 * inner, 3)),
        bias(random_floats(columns, 4)),
        other(random_floats(rows * columns, 5)) {
    gemm.rows = rows;
    gemm.inner = inner;
    gemm.columns = columns;
    gemm.source.row = inner;
    gemm.target.row = columns;
    gemm.use_strassen = use_strassen;
    gemm.has_bias = true;
  }

  std::vector<float> run(VectorIsa isa, int threads) {
    gemm.isa = isa;
    gemm.source.block = gemm.target.block = lanes_of(isa);
    gemm.threads = threads;
    std::vector<float> packed(gemm.weight_floats() + 4096);  // what lies behind is fetched
    PackedGemmWeights{gemm}.run({weight.data(), packed.data()});
    const bool is_narrow = gemm.weight_type != DType::kFloat32;
    std::vector<std::uint16_t> halves(is_narrow ? packed.size() : 0);
    if (is_narrow) {
      const auto count = static_cast<std::int64_t>(packed.size());
      HalfWeights{count, gemm.weight_type}.run({packed.data(), halves.data()});
    }
    std::vector<float> target(static_cast<std::size_t>(gemm.rows * gemm.columns), 7.0F);
    std::vector<float> scratch(gemm.scratch_bytes() / sizeof(float));
    gemm.run({source.data(),
              packed.data(),
              gemm.has_norm ? norm.data() : nullptr,
              bias.data(),
              {other.data()},
              target.data(),
              scratch.data(),
              is_narrow ? halves.data() : nullptr});
    return target;
  }

  std::vector<double> expected() const {
    std::vector<double> result;
    const auto at = [](const std::vector<float>& values, std::int64_t i) {
      return static_cast<double>(values[static_cast<std::size_t>(i)]);
    };
    for (std::int64_t row = 0; row < gemm.rows; ++row) {
      for (std::int64_t column = 0; column < gemm.columns; ++column) {
        double sum = at(bias, column);
        for (std::int64_t k = 0; k < gemm.inner; ++k) {
          double value = at(source, row * gemm.inner + k);
          if (gemm.has_norm) value = value * at(norm, k) + at(norm, gemm.inner + k);
          if (gemm.norm_relu) value = std::max(value, 0.0);
          sum += value * at(weight, column * gemm.inner + k);
        }
        for (const EpilogueStep& step : gemm.epilogue) {
          if (step.kind == Kind::kAdd) sum += at(other, row * gemm.columns + column);
          if (step.kind == Kind::kMultiply) sum *= at(other, row * gemm.columns + column);
          sum = apply_exactly(step, sum);
        }
        result.push_back(sum);
      }
    }
    return result;
  }
};

struct GemmSize {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

}  // namespace

TEST_CASE("PackedGemm multiplies, by the definition and by Strassen's step", "[onednn][kernels]") {
  const bool use_strassen = GENERATE(false, true);
  // One task and several, an odd number of rows, one KC block and two.
  const auto [rows, inner, columns] = GENERATE(GemmSize{1, 32, 64}, GemmSize{57, 96, 192},
                                               GemmSize{113, 1632, 128}, GemmSize{230, 64, 64});
  const auto steps =
      GENERATE(std::vector<EpilogueStep>{}, std::vector<EpilogueStep>{{Kind::kRelu, 0.0F, 0.0F}},
               std::vector<EpilogueStep>{{Kind::kAdd, 0.0F, 0.0F}, {Kind::kSwish, 1.0F, 0.0F}});
  const bool has_norm = GENERATE(false, true);
  Product product(rows, inner, columns, use_strassen);
  product.gemm.epilogue = steps;
  product.gemm.has_norm = product.gemm.norm_relu = has_norm;
  CHECK(product.gemm.name() == (use_strassen ? "strassen" : "packed-gemm"));
  const auto expected = product.expected();
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    REQUIRE(PackedGemm::can_run(isa));
    const auto target = product.run(isa, 1);
    INFO(rows << " x " << inner << " x " << columns << ", " << steps.size() << " steps");
    CHECK(worst_error(target, expected) < 1e-5);
    CHECK(product.run(isa, 3) == target);
    CHECK(product.run(isa, 7) == target);
  }
}

TEST_CASE("PackedGemm by the definition reads the weights of Strassen's step",
          "[onednn][kernels]") {
  // One run of k for the definition alone, and two as the step reads them.
  const auto [rows, inner, columns] = GENERATE(GemmSize{1, 896, 192}, GemmSize{3, 32, 64},
                                               GemmSize{29, 1632, 128}, GemmSize{120, 896, 64});
  Product product(rows, inner, columns, false);
  const auto expected = product.expected();
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    product.gemm.isa = isa;
    PackedGemm step = product.gemm;
    step.use_strassen = true;
    product.gemm.strassen_order = true;
    std::vector<float> packed[2];
    for (auto& each : packed) each.resize(step.weight_floats());
    PackedGemmWeights{step}.run({product.weight.data(), packed[0].data()});
    PackedGemmWeights{product.gemm}.run({product.weight.data(), packed[1].data()});
    CHECK(packed[0] == packed[1]);
    const auto target = product.run(isa, 1);
    CHECK(product.gemm.name() == "packed-gemm");
    CHECK(worst_error(target, expected) < 1e-5);
    CHECK(product.run(isa, 3) == target);
  }
}

TEST_CASE("PackedGemm's swish is four units in the last place away at most", "[onednn][kernels]") {
  // Rows of one number: a product with the identity.
  constexpr std::int64_t kSize = 64;
  Product product(512, kSize, kSize, false);
  product.gemm.has_bias = false;
  product.gemm.epilogue = {{Kind::kSwish, 1.0F, 0.0F}};
  for (float& each : product.source) each *= 90.0F;
  for (std::int64_t i = 0; i < kSize * kSize; ++i)
    product.weight[static_cast<std::size_t>(i)] = i / kSize == i % kSize ? 1.0F : 0.0F;
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    const auto target = product.run(isa, 1);
    double worst = 0.0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const auto x = static_cast<double>(product.source[i]);
      const double exact = x / (1.0 + std::exp(-x));
      const double unit = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), 0x1p-121);
      worst = std::max(worst, std::abs(static_cast<double>(target[i]) - exact) / unit);
    }
    CHECK(worst <= 4.0);
  }
}

TEST_CASE("PackedGemm reads weights of 16 bits as the floats that they are", "[onednn][kernels]") {
  const bool use_strassen = GENERATE(false, true);
  const auto [rows, inner, columns] =
      GENERATE(GemmSize{5, 32, 64}, GemmSize{57, 96, 192}, GemmSize{113, 1632, 128});
  Product product(rows, inner, columns, use_strassen);
  const DType type = GENERATE(DType::kFloat16, DType::kBFloat16);
  rounded_to(type, product.weight);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    product.gemm.weight_type = DType::kFloat32;
    const auto expected = product.run(isa, 1);
    product.gemm.weight_type = type;
    CHECK(product.run(isa, 1) == expected);
    CHECK(product.run(isa, 3) == expected);
  }
}

TEST_CASE("PackedGemm by the definition takes columns that do not fill panels",
          "[onednn][kernels]") {
  Product product(20, 48, 80, false);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    CHECK(worst_error(product.run(isa, 2), product.expected()) < 1e-5);
  }
}

TEST_CASE("Strassen's step keeps rows apart that are unlike", "[onednn][kernels]") {
  const float factor = GENERATE(1e8F, 0.0F, std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity());
  const std::int64_t changed = GENERATE(0, 33, 64);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
    Product product(65, 64, 64, true);  // the first row and the 34th are paired
    const auto before = product.run(isa, 1);
    for (std::int64_t k = 0; k < 64; ++k) {
      product.source[static_cast<std::size_t>(changed * 64 + k)] *= factor;
    }
    const auto after = product.run(isa, 1);
    double worst = 0.0;
    for (std::int64_t i = 0; i < 65 * 64; ++i) {
      if (i / 64 == changed) continue;
      const auto at = static_cast<std::size_t>(i);
      worst = std::max(worst, static_cast<double>(std::abs(after[at] - before[at])));
    }
    CHECK(worst < 1e-4);
  }
}

}  // namespace npu::onednn

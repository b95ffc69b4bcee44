// SPDX-License-Identifier: Apache-2.0
// Products with constant weights: the choices of all machines.
#include "lowering/product/choose_product.hpp"

#include <string>

#include "backends/onednn/lowering/choice_fixture.hpp"
#include "catch.hpp"
#include "kernels/product/half_gemm.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("weights of float16 are multiplied in float16 where the CPU computes in it",
          "[onednn][choose]") {
  Machine half = machine(VectorIsa::kAvx512);
  half.weight_type = DType::kFloat16;
  const auto taken_product = [&](std::int64_t rows, std::int64_t inner) {
    const auto candidates = choose_product({rows, inner, 768, inner}, {}, half);
    const auto* gemm = candidates.front().as<HalfGemm>();
    if (gemm != nullptr) {
      CHECK(gemm->rows == rows);
      CHECK(gemm->inner == inner);
      CHECK(gemm->columns == 768);
      CHECK(gemm->source.row == inner);
      CHECK(gemm->target.row == 768);
    }
    return std::string(candidates.front().name);
  };
  CHECK(taken_product(197, 768) == "strassen");
  CHECK(taken_product(20, 768) == "packed-gemm");
  half.multiplies_float16 = true;
  CHECK(taken_product(197, 768) == "float16-gemm");
  CHECK(taken_product(20, 768) == "float16-gemm");
  CHECK(taken_product(2, 768) == "gemv");
  CHECK(taken_product(20, 760) == "onednn");
  const auto pointwise = choose_convolution(convolution(64, 96, 1, 14), {}, half).front();
  REQUIRE(pointwise.name == "float16-gemm");
  CHECK(pointwise.as<HalfGemm>()->target.block == 14 * 14 * 16);
  half.weight_type = DType::kFloat32;
  CHECK(taken_product(20, 768) == "onednn");
}

TEST_CASE("a product without AVX-512 is one of our own", "[onednn][choose]") {
  const auto taken_product = [](std::int64_t rows, std::int64_t inner, VectorIsa isa) {
    return std::string(choose_product({rows, inner, 512, inner}, {}, machine(isa)).front().name);
  };
  CHECK(taken_product(48, 256, VectorIsa::kAvx2) == "packed-gemm");
  CHECK(taken_product(48, 768, VectorIsa::kAvx2) == "strassen");
  CHECK(taken_product(3, 256, VectorIsa::kAvx2) == "gemv");
  CHECK(taken_product(48, 250, VectorIsa::kAvx2) == "onednn");
  CHECK(taken_product(48, 256, VectorIsa::kAvx512) == "onednn");
  CHECK(taken_product(48, 256, VectorIsa::kAny) == "onednn");
  CHECK(refusal_of("packed-gemm",
                   choose_product({48, 250, 512, 250}, {}, machine(VectorIsa::kAvx2))) ==
        "the features are no multiples of 16");
}

TEST_CASE("a few rows are a gemv on any machine, many rows Strassen's with AVX2",
          "[onednn][choose]") {
  const auto name = [](std::int64_t rows, VectorIsa isa) {
    return std::string(
        choose_product({rows, 512, 1000 / 64 * 64, 512}, {}, machine(isa)).front().name);
  };
  CHECK(name(1, VectorIsa::kAny) == "gemv");
  CHECK(name(4, VectorIsa::kAvx512) == "gemv");
  CHECK(name(5, VectorIsa::kAvx512) == "onednn");
  CHECK(name(32, VectorIsa::kAvx512) == "strassen");
  CHECK(name(32, VectorIsa::kAvx2) == "strassen");
  CHECK(name(32, VectorIsa::kAny) == "onednn");
  const auto candidates = choose_product({5, 512, 960, 512}, {}, machine(VectorIsa::kAvx512));
  CHECK(refusal_of("gemv", candidates) == "it takes 4 rows at most, found 5");
}

TEST_CASE("entries that share weights take products that read them in one order",
          "[onednn][choose]") {
  const auto taken = [](std::int64_t rows, RowRange entries, std::int64_t inner, VectorIsa isa) {
    ProductShape shape{rows, inner, 960, inner};
    shape.entries = entries;
    return choose_product(shape, {}, machine(isa));
  };
  for (const VectorIsa isa : {VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    CAPTURE(isa);
    for (const std::int64_t rows : {1, 8, 31}) {
      const auto candidates = taken(rows, {1, 256}, 512, isa);
      REQUIRE(candidates.front().name == "packed-gemm");
      CHECK(candidates.front().as<PackedGemm>()->strassen_order);
      CHECK(refusal_of("gemv", candidates) ==
            "entries of 1 to 256 rows read the weights in one order");
      CHECK(refusal_of("onednn", candidates) == refusal_of("gemv", candidates));
    }
    CHECK(taken(256, {1, 256}, 512, isa).front().name == "strassen");
    // Where no entry has Strassen's step, weights are in the order of the definition.
    CHECK_FALSE(taken(1, {1, 8}, 512, isa).front().as<PackedGemm>()->strassen_order);
    CHECK_FALSE(taken(8, {1, 256}, 496, isa).front().as<PackedGemm>()->strassen_order);
    // Each is what it is alone where all are alike, or weights do not fill blocks.
    CHECK(taken(1, {1, 4}, 512, isa).front().name == "gemv");
    CHECK(taken(64, {48, 256}, 512, isa).front().name == "strassen");
    CHECK(taken(1, {1, 256}, 500, isa).front().name == "gemv");
  }
  CHECK(taken(1, {1, 256}, 512, VectorIsa::kAny).front().name == "gemv");
}

}  // namespace npu::onednn

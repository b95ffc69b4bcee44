// SPDX-License-Identifier: Apache-2.0
// Convolutions: the choice depends only on the machine and the shape, so the choices of all
// machines are tested.
#include "lowering/convolution/choose_convolution.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "backends/onednn/lowering/choice_fixture.hpp"
#include "catch.hpp"
#include "kernels/base/simd.hpp"
#include "kernels/kernel.hpp"
#include "lowering/product/choose_product.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("a convolution's kernel is the cheapest of those that can compute it",
          "[onednn][choose]") {
  CHECK(taken(convolution(64, 64, 3, 56)) == "winograd");
  CHECK(taken(convolution(64, 64, 5, 28)) == "winograd");
  CHECK(taken(convolution(512, 512, 1, 14)) == "strassen");
  CHECK(taken(convolution(512, 512, 1, 1)) == "gemv");
  CHECK(taken(convolution(64, 64, 1, 56)) == "onednn");
  CHECK(taken(convolution(64, 64, 7, 28)) == "onednn");
  CHECK(taken(convolution(512, 512, 3, 14), VectorIsa::kAvx2) == "winograd");
  CHECK(taken(convolution(512, 512, 1, 14), VectorIsa::kAvx2) == "strassen");
  for (const std::int64_t taps : {1, 3}) {
    CHECK(taken(convolution(512, 512, taps, 14), VectorIsa::kAny) == "onednn");
  }
}

TEST_CASE("Winograd's filter depends on how much its weights outweigh its products",
          "[onednn][choose]") {
  const auto filter = [](const ConvolutionShape& shape) {
    return choose_convolution(shape, {}, machine(VectorIsa::kAvx512))
        .front()
        .as<Winograd>()
        ->filter;
  };
  CHECK(filter(convolution(64, 64, 3, 56)).tile[0] == 4);
  CHECK(filter(convolution(160, 272, 3, 9)).tile[0] == 2);
  CHECK(taken(convolution(160, 272, 3, 3)) == "onednn");
  CHECK(refusal_of("winograd", convolution(160, 272, 3, 3)).starts_with("its estimate is 1."));
}

TEST_CASE("Winograd's filter depends on how much it rounds and how much is behind one another",
          "[onednn][choose]") {
  // One by seven, many channels: F(1 x 4, 1 x 7) rounds by 43 units of 2^-24.
  ConvolutionShape shape = convolution(192, 192, 1, 17);
  shape.weight[3] = 7;
  shape.source[3] = 17 + 6;
  const auto first = [&](std::int64_t depth) {
    shape.depth = depth;
    return choose_convolution(shape, {}, machine(VectorIsa::kAvx512)).front();
  };
  const auto tile = [&](std::int64_t depth) { return first(depth).as<Winograd>()->filter.tile[1]; };
  CHECK(tile(1) == 4);
  CHECK(tile(30) == 4);                 // 256 / sqrt(30) = 46.7
  CHECK(tile(40) == 2);                 // 256 / sqrt(40) = 40.5
  CHECK(first(1000).name == "onednn");  // 8.1
  CHECK(refusal_of("winograd", choose_convolution(shape, {}, machine(VectorIsa::kAvx512))) ==
        "F(1 x 4, 1 x 7) rounds by 42 units of 2^-24, 8 are allowed");
  CHECK(!first(1000).rounding);
  // The choice states the estimate: it grows with the tile, and with channels only up to 128.
  CHECK(*first(1).rounding > 2.0 * *first(40).rounding);
  const auto rounding = [](std::int64_t channels) {
    return *choose_convolution(convolution(channels, channels, 3, 56), {},
                               machine(VectorIsa::kAvx512))
                .front()
                .rounding;
  };
  CHECK(rounding(32) < rounding(64));
  CHECK(rounding(256) == rounding(512));
  CHECK(choice_of({first(1)}).rounding == first(1).rounding);
}

TEST_CASE("a convolution with dilation is many without", "[onednn][choose]") {
  ConvolutionShape shape = convolution(512, 512, 3, 28);
  shape.source = shape.target = {3, 512, 28, 24};
  shape.spatial = {{1, 1}, {4, 2}, {4, 2}, {4, 2}};
  const auto first = choose_convolution(shape, {}, machine(VectorIsa::kAvx512)).front();
  REQUIRE(first.name == "winograd");
  const auto& kernel = *first.as<Winograd>();
  CHECK(kernel.batch == 3 * 4 * 2);
  CHECK(kernel.source_extent[0] == 7);
  CHECK(kernel.target_extent[1] == 12);
  CHECK(kernel.pad[0] == 1);
  CHECK(kernel.pad[1] == 1);
  shape.spatial.pad_begin[0] = 3;
  CHECK(refusal_of("winograd", shape).starts_with("the convolution has dilation"));
}

TEST_CASE("a convolution whose taps read much padding is one product for each of them",
          "[onednn][choose]") {
  ConvolutionShape shape = convolution(960, 256, 3, 14);
  shape.source = {2, 960, 14, 13};
  shape.target = {2, 256, 14, 13};
  shape.spatial = {{1, 1}, {12, 11}, {12, 11}, {12, 11}};
  for (const VectorIsa isa : {VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    const auto candidates = choose_convolution(shape, {}, machine(isa));
    REQUIRE(candidates.front().name == "implicit-gemm");
    const auto& kernel = *candidates.front().as<ImplicitGemm>();
    CHECK(kernel.batch == 2);
    CHECK(kernel.source_channels == 960);
    CHECK(kernel.target_channels == 256);
    CHECK(kernel.source_extent[0] == 14);
    CHECK(kernel.target_extent[1] == 13);
    CHECK(kernel.taps[0] == 3);
    CHECK(kernel.dilation[1] == 11);
    CHECK(kernel.pad[0] == 12);
  }
  // Taps that read the source: oneDNN's convolution is faster, if it has one.
  shape.spatial = {{1, 1}, {3, 3}, {3, 3}, {3, 3}};
  shape.source[2] = shape.source[3] = shape.target[2] = shape.target[3] = 64;
  CHECK(taken(shape) == "onednn");
  CHECK(taken(shape, VectorIsa::kAvx2) == "implicit-gemm");
  // One dimension.
  shape.source = shape.target = {1, 64, 1000};
  shape.weight = {64, 64, 2};
  shape.spatial = {{1}, {8}, {0}, {8}};
  const auto first = choose_convolution(shape, {}, machine(VectorIsa::kAvx2)).front();
  REQUIRE(first.name == "implicit-gemm");
  const auto& line = *first.as<ImplicitGemm>();
  CHECK(line.taps[0] == 1);
  CHECK(line.taps[1] == 2);
  CHECK(line.dilation[0] == 1);
  CHECK(line.pad[1] == 8);
  CHECK(line.source_extent[0] == 1);
  CHECK(line.source_extent[1] == 1000);
}

TEST_CASE("an implicit GEMM says what it does not compute", "[onednn][choose]") {
  ConvolutionShape shape = convolution(64, 48, 3, 14);
  CHECK(refusal_of("implicit-gemm", shape) == "the convolution has no dilation");
  shape.spatial.dilation = {2, 2};
  CHECK(refusal_of("implicit-gemm", shape) == "the target channels are no multiple of 32");
  CHECK(refusal_of("implicit-gemm", shape, VectorIsa::kAvx2).empty());
  shape.spatial.stride = {2, 1};
  CHECK(refusal_of("implicit-gemm", shape) == "the stride is not 1");
  shape.weight.push_back(3);
  CHECK(refusal_of("implicit-gemm", shape) == "it convolves in one or two dimensions only");
}

TEST_CASE("groups that do not fill vectors have a kernel", "[onednn][choose]") {
  const auto grouped = [](std::int64_t channels, std::int64_t groups) {
    ConvolutionShape shape = convolution(channels, channels, 3, 28);
    shape.groups = groups;
    shape.weight[1] /= groups;
    return shape;
  };
  const ConvolutionShape resnext = grouped(128, 32);
  for (const VectorIsa isa : {VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    CHECK(taken(resnext, isa) == "grouped-convolution");
    CHECK(taken(grouped(48, 4), isa) == "grouped-convolution");  // groups of 12
    CHECK(refusal_of("grouped-convolution", grouped(64, 64), isa) ==
          "the convolution is depthwise");
    CHECK(refusal_of("grouped-convolution", grouped(64, 1), isa) ==
          "the convolution has no groups");
    if constexpr (NPU_HAS_X86 == 0)
      continue;  // oneDNN has fast ones for it alone, and vectors of 4 have others
    CHECK(taken(grouped(128, 2), isa) == "onednn");
    CHECK(taken(grouped(128, 16), isa) == "onednn");  // of 8, which fill vectors of AVX2
    CHECK(
        refusal_of("grouped-convolution", grouped(36, 9), isa).starts_with("the channels are no"));
  }
  CHECK(taken(resnext, VectorIsa::kAny) == "onednn");
  ConvolutionShape doubled = grouped(64, 64);  // two results of a channel
  doubled.weight[0] = doubled.target[1] = 128;
  doubled.spatial.stride = {2, 1};
  doubled.spatial.dilation = {1, 3};
  const auto first = choose_convolution(doubled, {}, machine(VectorIsa::kAvx2)).front();
  REQUIRE(first.name == "grouped-convolution");
  const auto& kernel = *first.as<GroupedConvolution>();
  CHECK(kernel.inputs() == 1);
  CHECK(kernel.stride[0] == 2);
  CHECK(kernel.dilation[1] == 3);
  CHECK(kernel.target_channels == 128);
}

TEST_CASE("a smaller tile is taken where it costs next to nothing", "[onednn][choose]") {
  ConvolutionShape shape = convolution(64, 64, 3, 56);
  const auto tile = [&](double flops) {
    shape.sub_ir_flops = flops;
    const auto first = choose_convolution(shape, {}, machine(VectorIsa::kAvx512)).front();
    return first.as<Winograd>()->filter.tile[0];
  };
  CHECK(tile(0.0) == 4);
  CHECK(tile(4e9) == 4);  // of a ResNet-50
  CHECK(tile(5e11) < 4);
}

TEST_CASE("a convolution with stride 2 has a filter where it is faster", "[onednn][choose]") {
  const auto strided = [](std::int64_t source, std::int64_t target, std::int64_t taps,
                          std::int64_t extent) {
    ConvolutionShape shape = convolution(source, target, taps, extent);
    shape.spatial.stride = {2, 2};
    shape.source[2] = shape.source[3] = 2 * extent;
    return shape;
  };
  const auto first =
      choose_convolution(strided(128, 256, 3, 14), {}, machine(VectorIsa::kAvx2)).front();
  REQUIRE(first.name == "winograd");
  const auto& kernel = *first.as<Winograd>();
  CHECK(kernel.filter.stride == 2);
  CHECK(kernel.source_extent[1] == 28);
  CHECK(kernel.target_extent[1] == 14);
  // Five by five: none; two by two results: too much of a tile lies outside.
  CHECK(refusal_of("winograd", strided(128, 256, 5, 14), VectorIsa::kAvx2) ==
        "it has no filter of 5 by 5 with stride 2");
  CHECK(refusal_of("winograd", strided(512, 512, 3, 1), VectorIsa::kAvx2)
            .starts_with("its estimate is"));
}

TEST_CASE("a convolution of a video with taps in space or in time is one of images",
          "[onednn][choose]") {
  ConvolutionShape shape;
  shape.source = {2, 64, 8, 28, 30};
  shape.weight = {128, 64, 1, 3, 3};
  shape.target = {2, 128, 8, 28, 30};
  shape.spatial = {{1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}};
  const auto in_space = choose_convolution(shape, {}, machine(VectorIsa::kAvx2)).front();
  REQUIRE(in_space.name == "winograd");
  const auto& images = *in_space.as<Winograd>();
  CHECK(images.batch == 16);
  CHECK(images.frames == 8);
  CHECK(images.source_extent[0] == 28);
  CHECK(images.source_extent[1] == 30);
  shape.source[0] = shape.target[0] = 0;  // no video at all
  CHECK(!choose_convolution(shape, {}, machine(VectorIsa::kAvx2)).empty());
  shape.source[0] = shape.target[0] = 2;
  shape.weight = {128, 64, 3, 1, 1};
  shape.spatial.pad_begin = shape.spatial.pad_end = {1, 0, 0};
  const auto in_time = choose_convolution(shape, {}, machine(VectorIsa::kAvx2)).front();
  REQUIRE(in_time.name == "winograd");
  const auto& frames = *in_time.as<Winograd>();
  CHECK(frames.batch == 2);
  CHECK(frames.frames == 1);
  CHECK(frames.source_extent[0] == 8);
  CHECK(frames.target_extent[1] == 28 * 30);
  CHECK(frames.pad[0] == 1);
  CHECK(frames.pad[1] == 0);
  // In both; or with dilation.
  shape.weight = {128, 64, 3, 3, 3};
  shape.spatial.pad_begin = shape.spatial.pad_end = {1, 1, 1};
  CHECK(refusal_of("winograd", shape) ==
        "it convolves in two dimensions, or in three with taps in time or space alone");
  shape.weight = {128, 64, 1, 3, 3};
  shape.spatial = {{1, 1, 1}, {0, 2, 2}, {0, 2, 2}, {1, 2, 2}};
  CHECK(!refusal_of("winograd", shape).empty());
}

namespace {

/// A convolution whose numbers lie at the edges of the kernels' rules: padding below, at and above
/// the taps, few pixels, strides, dilation, groups, channels around multiples of vectors.
ConvolutionShape drawn_convolution(std::minstd_rand& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  ConvolutionShape shape;
  const auto rank = static_cast<std::size_t>(one_of({1, 2, 2, 2, 3}));
  const std::int64_t inputs = one_of({1, 8, 15, 16, 32, 64, 512});
  const std::int64_t outputs = one_of({1, 8, 16, 17, 32, 64, 512});
  shape.groups = one_of({1, 1, 1, 2, 4});
  shape.source = {one_of({1, 2, 3}), inputs * shape.groups};
  shape.weight = {outputs * shape.groups, inputs};
  shape.target = {shape.source[0], shape.weight[0]};
  const std::int64_t stride = one_of({1, 1, 2, 3});
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t taps = one_of({1, 1, 2, 3, 3, 5, 7});
    const std::int64_t dilation = one_of({1, 1, 2, 3});
    const std::int64_t span = dilation * (taps - 1) + 1;
    shape.source.push_back(one_of({1, taps, span, span + 1, 13, 28}));
    shape.weight.push_back(taps);
    shape.spatial.stride.push_back(random() % 4 == 0 ? one_of({1, 2, 3}) : stride);
    shape.spatial.dilation.push_back(dilation);
    for (auto* pad : {&shape.spatial.pad_begin, &shape.spatial.pad_end}) {
      pad->push_back(one_of({0, taps / 2, taps - 1, taps, span, span + 1}));
    }
    const std::int64_t padded =
        shape.source.back() + shape.spatial.pad_begin.back() + shape.spatial.pad_end.back();
    const std::int64_t room = std::max(padded, span) - span;
    shape.source.back() += std::max(padded, span) - padded;
    shape.target.push_back(room / shape.spatial.stride.back() + 1);
  }
  return shape;
}

/// Names of the candidates with an estimate, whose numbers their kernels have to take.
std::set<std::string> check_candidates(const std::vector<Candidate>& candidates) {
  std::set<std::string> names;
  for (const Candidate& each : candidates) {
    if (!each.cycles) {
      CHECK_FALSE(each.refusal.empty());
      continue;
    }
    names.emplace(each.name);
    if (each.is_own()) CHECK(kernel_refusal(*each.kernel).empty());
  }
  return names;
}

}  // namespace

TEST_CASE("what is chosen is taken where a plan is loaded", "[onednn][choose]") {
  std::minstd_rand random(7);
  std::set<std::string> names;
  for (int i = 0; i < 20000; ++i) {
    Machine any = machine(static_cast<VectorIsa>(random() % 3));
    constexpr std::array kTypes{DType::kFloat32, DType::kFloat32, DType::kFloat16,
                                DType::kBFloat16};
    any.weight_type = kTypes[random() % 4];
    any.multiplies_float16 = any.weight_type == DType::kFloat16 && any.isa == VectorIsa::kAvx512;
    names.merge(check_candidates(choose_convolution(drawn_convolution(random), {}, any)));
    const auto extent = [&] { return static_cast<std::int64_t>(random() % 70 + 1) * 8; };
    const std::int64_t inner = extent();
    const ProductShape product{static_cast<std::int64_t>(random() % 40 + 1), inner, extent(),
                               inner + static_cast<std::int64_t>(random() % 2) * 16};
    names.merge(check_candidates(choose_product(product, {}, any)));
  }
  CHECK(names.size() == 8);  // each kernel of our own, and oneDNN's
  ConvolutionShape flat = convolution(64, 64, 1, 14);
  flat.weight[3] = 3;
  flat.spatial.pad_begin = flat.spatial.pad_end = {1, 1};
  flat.source = {1, 64, 14, 14};
  flat.target = {1, 64, 16, 14};
  CHECK(refusal_of("winograd", flat) == "'pad' is not below the taps");
  CHECK(taken(flat) == "onednn");
}

TEST_CASE("every candidate says why it was not taken", "[onednn][choose]") {
  ConvolutionShape shape = convolution(64, 64, 3, 56);
  CHECK(refusal_of("winograd", shape, VectorIsa::kAny) == "it needs AVX2, AVX-512 or NEON");
  CHECK(refusal_of("strassen", shape) == "the convolution is not one of one by one");
  shape.spatial.stride = {2, 2};
  CHECK(refusal_of("winograd", shape) == "the stride is not 1");
  shape.spatial.stride = {1, 2};
  CHECK(refusal_of("winograd", shape, VectorIsa::kAvx2) == "the strides are neither 1 nor 2");
  shape = convolution(64, 64, 3, 55);
  shape.target[2] = shape.target[3] = 53;
  shape.spatial.dilation = {2, 2};
  CHECK(refusal_of("winograd", shape).starts_with("the convolution has dilation"));
  shape = convolution(64, 64, 3, 56);
  shape.type = DType::kBFloat16;
  CHECK(refusal_of("winograd", shape) == "it computes in float32 only");
  shape = convolution(64, 64, 3, 56);
  shape.has_constant_weight = false;
  CHECK(refusal_of("winograd", shape) == "the weight is not constant");
  shape = convolution(64, 64, 3, 56);
  shape.groups = 2;
  CHECK(refusal_of("winograd", shape) == "the convolution has groups");
  shape = convolution(64, 64, 3, 56);
  shape.is_pinned = true;
  CHECK(refusal_of("winograd", shape) == "npu-align keeps the node row-major");
  CHECK(refusal_of("winograd", convolution(3, 64, 3, 56)) == "the channels are no multiples of 16");
  CHECK(refusal_of("winograd", convolution(64, 64, 4, 56)) ==
        "it has no filter of 4 by 4 with stride 1");
  CHECK(refusal_of("strassen", convolution(64, 512, 1, 14)) ==
        "it needs 512 source features, found 64");
  CHECK(refusal_of("strassen", convolution(512, 64, 1, 14)) ==
        "it needs 256 target features, found 64");
  CHECK(refusal_of("strassen", convolution(512, 512, 1, 5)) ==
        "it needs 32 rows or pixels, found 25");
  CHECK(refusal_of("strassen", convolution(528, 512, 1, 14)) ==
        "the features are no multiples of 32 (source) and 64 (target)");
  CHECK(refusal_of("gemv", convolution(512, 512, 1, 14)) == "an image has more than one pixel");
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// The memory-bound kernels: scale and shift, copies, broadcasts,
// norms, reductions, gathers.
#include <cstring>
#include <limits>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

using namespace test;

double at(const std::vector<float>& values, std::int64_t i) {
  return static_cast<double>(values[static_cast<std::size_t>(i)]);
}

}  // namespace

TEST_CASE("ScaleShift works on channels wherever they lie", "[onednn][kernels]") {
  // Planes, blocks of 16 and of 8, channels last.
  const std::int64_t lanes = GENERATE(1, 8, 16, 300);
  const bool has_shift = GENERATE(false, true);
  ScaleShift kernel;
  kernel.outer = 2;
  kernel.groups = 3;
  kernel.spatial = 21;
  kernel.lanes = lanes;
  kernel.has_shift = kernel.relu = has_shift;
  const std::int64_t channels = kernel.channels();
  const auto source = random_floats(2 * channels * 21, 1);
  const auto vectors = random_floats(2 * channels, 2);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < 2 * channels * 21; ++i) {
    const std::int64_t channel = i / (21 * lanes) % 3 * lanes + i % lanes;
    const double value =
        at(source, i) * at(vectors, channel) + (has_shift ? at(vectors, channels + channel) : 0.0);
    expected.push_back(has_shift ? std::max(value, 0.0) : value);
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    kernel.isa = isa;
    auto target = source;  // in place
    kernel.run({bytes(target), bytes(vectors), bytes(target)});
    CHECK(worst_error(target, expected) < 1e-6);
  }
}

TEST_CASE("CopyBytes copies every byte and none behind them", "[onednn][kernels]") {
  const std::int64_t count = GENERATE(0, 1, 63, 64, 4097, 3'000'001);
  std::vector<std::uint8_t> source(static_cast<std::size_t>(count) + 64);
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::uint8_t>(i * 131 % 251);
  }
  std::vector<std::uint8_t> target(source.size(), 255);
  CopyBytes{count}.run({bytes(source), bytes(target)});
  const auto end = source.begin() + count;
  CHECK(std::equal(source.begin(), end, target.begin()));
  CHECK(std::all_of(target.begin() + count, target.end(), [](int each) { return each == 255; }));
}

TEST_CASE("StridedCopy transposes, PaddedCopy fills around", "[onednn][kernels]") {
  const auto source = random_floats(60 * 50, 1);
  std::vector<float> target(source.size());
  StridedCopy copy{sizeof(float), {50, 60}, {1, 50}, {60, 1}};
  copy.simplify();
  copy.run({bytes(source), bytes(target)});
  for (std::size_t i = 0; i < target.size(); ++i) {
    REQUIRE(target[i] == source[i % 60 * 50 + i / 60]);
  }
  std::vector<float> padded(62 * 54, 9.0F);
  PaddedCopy{DType::kFloat32, 0.5F, 62 * 54, 54 + 2,
             StridedCopy{sizeof(float), {60, 50}, {50, 1}, {54, 1}}}
      .run({bytes(source), bytes(padded)});
  for (std::size_t i = 0; i < padded.size(); ++i) {
    const std::size_t row = i / 54;
    const std::size_t column = i % 54;
    const bool is_inside = row >= 1 && row <= 60 && column >= 2 && column < 52;
    REQUIRE(padded[i] == (is_inside ? source[(row - 1) * 50 + column - 2] : 0.5F));
  }
}

TEST_CASE("StridedCopy finds every row, in pieces of many short ones", "[onednn][kernels]") {
  // [a, b, c, d, e] to [b, d, a, c, e]: rows of 64 bytes, of 12, and planes that are transposed.
  for (const std::int64_t width : {16, 3, 1}) {
    const std::vector<std::int64_t> extents{5, 7, 6, 9, width};
    const auto source = random_floats(static_cast<std::size_t>(5 * 7 * 6 * 9 * width), 4);
    std::vector<float> target(source.size());
    const std::vector<std::int64_t> from{378 * width, 54 * width, 9 * width, width, 1};
    const std::vector<std::int64_t> to{6 * width, 270 * width, width, 30 * width, 1};
    StridedCopy copy{sizeof(float), extents, from, to};
    copy.simplify();
    copy.run({bytes(source), bytes(target)});
    std::vector<std::int64_t> at(5);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(source.size()); ++i) {
      std::int64_t rest = i;
      std::int64_t offset = 0;
      for (std::size_t k = 5; k > 0; --k) {
        offset += rest % extents[k - 1] * to[k - 1];
        rest /= extents[k - 1];
      }
      REQUIRE(target[static_cast<std::size_t>(offset)] == source[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("Convert, RoundToBFloat16 and Cast round to nearest even", "[onednn][kernels]") {
  const std::vector<float> source{1.0F, 1.00390625F, 1.01171875F, -3.1415927F};
  const std::vector<float> rounded{1.0F, 1.0F, 1.015625F, -3.140625F};
  std::vector<std::uint16_t> half(4);
  Convert{DType::kFloat32, DType::kBFloat16, 4}.run({bytes(source), bytes(half)});
  std::vector<float> back(4);
  Convert{DType::kBFloat16, DType::kFloat32, 4}.run({bytes(half), bytes(back)});
  CHECK(back == rounded);
  auto in_place = source;
  RoundToBFloat16{4}.run({bytes(in_place), bytes(in_place)});
  CHECK(in_place == rounded);
  std::vector<std::int64_t> whole(4);
  Cast{DType::kFloat32, DType::kInt64, 4}.run({bytes(source), bytes(whole)});
  CHECK(whole == std::vector<std::int64_t>{1, 1, 1, -3});
}

TEST_CASE("BroadcastBinary repeats operands with strides of 0", "[onednn][kernels]") {
  const auto a = random_floats(5 * 7, 1);
  const auto b = random_floats(7, 2);
  BroadcastBinary kernel;
  kernel.op = BinaryOp::kSubtract;
  kernel.alpha = 2.0F;
  kernel.extents = {5, 7};
  kernel.a_strides = {7, 1};
  kernel.b_strides = {0, 1};
  kernel.target_strides = {7, 1};
  kernel.simplify();
  std::vector<float> target(a.size());
  kernel.run({bytes(a), bytes(b), bytes(target)});
  for (std::size_t i = 0; i < target.size(); ++i) REQUIRE(target[i] == a[i] - 2.0F * b[i % 7]);
}

TEST_CASE("RmsNorm scales rows; folded norms centre and scale", "[onednn][kernels]") {
  const auto source = random_floats(4 * 10, 1);
  const auto weight = random_floats(10, 2);
  RmsNorm kernel;
  kernel.rows = 4;
  kernel.inner = 10;
  kernel.epsilon = 1e-3F;
  kernel.has_weight = true;
  std::vector<float> target(source.size());
  kernel.run({bytes(source), weight.data(), bytes(target)});
  std::vector<double> expected;
  for (std::int64_t row = 0; row < 4; ++row) {
    double square = 0.0;
    for (std::int64_t i = 0; i < 10; ++i) square += std::pow(at(source, row * 10 + i), 2.0) / 10.0;
    for (std::int64_t i = 0; i < 10; ++i) {
      expected.push_back(at(source, row * 10 + i) / std::sqrt(square + 1e-3) * at(weight, i));
    }
  }
  CHECK(worst_error(target, expected) < 1e-6);

  // A batch norm behind weights [2, 3], and as factors and terms.
  const std::vector<float> weights{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
  const std::vector<float> variance{3.0F, 8.0F};
  const std::vector<float> mean{0.5F, -1.0F};
  NormFold fold;
  fold.epsilon = 1.0F;
  fold.channels = 2;
  fold.inner = 3;
  std::vector<float> folded(6);
  FoldNormWeights{fold}.run({weights.data(), variance.data(), nullptr, folded.data()});
  CHECK(worst_error(folded, {0.5, 1.0, 1.5, 4.0 / 3, 5.0 / 3, 2.0}) < 1e-6);
  std::vector<float> bias(2);
  FoldNormBias{fold}.run({variance.data(), mean.data(), nullptr, nullptr, nullptr, bias.data()});
  CHECK(worst_error(bias, {-0.25, 1.0 / 3}) < 1e-6);
  std::vector<float> vectors(6, 9.0F);
  NormVectors{1.0F, 2, 3, false, false}.run(
      {variance.data(), mean.data(), nullptr, nullptr, vectors.data()});
  CHECK(worst_error(vectors, {0.5, 1.0 / 3, 0.0, -0.25, 1.0 / 3, 0.0}) < 1e-6);
}

TEST_CASE("MiddleReduction sums in float64", "[onednn][kernels]") {
  const auto source = random_floats(2 * 30 * 5, 1);
  for (const ReductionOp op : {ReductionOp::kMean, ReductionOp::kMaximum}) {
    std::vector<double> expected;
    for (std::int64_t outer = 0; outer < 2; ++outer) {
      for (std::int64_t inner = 0; inner < 5; ++inner) {
        double result = op == ReductionOp::kMean ? 0.0 : -std::numeric_limits<double>::infinity();
        for (std::int64_t i = 0; i < 30; ++i) {
          const double value = at(source, (outer * 30 + i) * 5 + inner);
          result = op == ReductionOp::kMean ? result + value / 30.0 : std::max(result, value);
        }
        expected.push_back(result);
      }
    }
    std::vector<float> target(10);
    MiddleReduction{op, DType::kFloat32, 2, 30, 5}.run({bytes(source), bytes(target)});
    CHECK(worst_error(target, expected) < 1e-7);
  }
}

TEST_CASE("GatherRows refuses an index outside the table; PlainConcat and Sequence",
          "[onednn][kernels]") {
  const auto table = random_floats(4 * 3, 1);
  std::vector<std::int64_t> indices{3, 0};
  std::vector<float> target(6);
  const GatherRows gather{2, 4, 12, true, "node 'e'"};
  gather.run({bytes(table), bytes(indices), bytes(target)});
  CHECK(std::memcmp(target.data(), table.data() + 9, 12) == 0);
  CHECK(std::memcmp(target.data() + 3, table.data(), 12) == 0);
  indices[1] = GENERATE(-1, 4);
  CHECK_THROWS_WITH(gather.run({bytes(table), bytes(indices), bytes(target)}),
                    Catch::Contains("node 'e': an index is not in 0..3"));

  const std::vector<float> a{1.0F, 2.0F};
  const std::vector<float> b{3.0F, 4.0F, 5.0F, 6.0F};
  std::vector<float> joined(6);
  std::vector<std::byte*> addresses{const_cast<std::byte*>(bytes(a)),
                                    const_cast<std::byte*>(bytes(b)), bytes(joined)};
  run_kernel(PlainConcat{2, {4, 8}}, addresses);  // as a step runs it
  CHECK(joined == std::vector<float>{1.0F, 3.0F, 4.0F, 2.0F, 5.0F, 6.0F});

  std::vector<std::int64_t> numbers(3);
  Sequence{5, 2, 3}.run({numbers.data()});
  CHECK(numbers == std::vector<std::int64_t>{5, 7, 9});
}

TEST_CASE("kernels have names, and run on the instruction set that they are given",
          "[onednn][kernels]") {
  Kernel kernel = Softmax{1, 4, 1};
  CHECK(kernel_name(kernel) == "softmax");
  set_isa(kernel, VectorIsa::kAvx2);
  CHECK(std::get<Softmax>(kernel).isa == VectorIsa::kAvx2);
  PackedGemm gemm;
  gemm.use_strassen = true;
  CHECK(kernel_name(gemm) == "strassen");
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// What every kernel of this backend's own does with elements far above the others, infinities, NaN,
// numbers of very different sizes and the largest ones, against the definition in float64. A result
// that does not read an element must not depend on it.
#include "backends/onednn/kernels/special_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using namespace test;

struct Convolved {
  std::vector<double> results;
  std::vector<double> terms;
};
Convolved convolve(const ExactConvolution& exact, const std::vector<float>& source,
                   const std::vector<float>& weight) {
  return {exact.run(source, weight, {}), exact.run(magnitudes(source), magnitudes(weight), {})};
}

Winograd winograd_kernel(const ExactConvolution& exact, const Winograd::Filter& filter,
                         VectorIsa isa) {
  Winograd kernel;
  kernel.filter = filter;
  kernel.batch = exact.batch;
  kernel.source_channels = exact.inputs;
  kernel.target_channels = exact.outputs;
  for (int i = 0; i < 2; ++i) {
    kernel.source_extent[i] = exact.extent[i];
    kernel.target_extent[i] = exact.target(i);
    kernel.pad[i] = exact.pad[i];
  }
  kernel.isa = isa;
  return kernel;
}

std::vector<float> run(Winograd kernel, const std::vector<float>& source,
                       const std::vector<float>& weight, int threads = 1) {
  kernel.threads = threads;
  std::vector<float> transformed(kernel.weight_floats());
  WinogradWeights{kernel}.run({weight.data(), transformed.data()});
  const std::int64_t pixels = kernel.target_extent[0] * kernel.target_extent[1];
  const auto blocks =
      in_blocks(source, kernel.batch, kernel.source_channels,
                kernel.source_extent[0] * kernel.source_extent[1], lanes_of(kernel.isa));
  std::vector<float> target(
      static_cast<std::size_t>(kernel.batch * kernel.target_channels * pixels));
  std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
  kernel.run({blocks.data(), transformed.data(), nullptr, {}, target.data(), scratch.data()});
  return from_blocks(target, kernel.batch, kernel.target_channels, pixels, lanes_of(kernel.isa));
}

struct Taps {
  std::int64_t taps[2];
  std::int64_t pad[2];
  std::int64_t stride = 1;
};

/// A function of one operand, applied to what is special for it.
void check_function(const std::string& name, const std::vector<float>& source,
                    const std::function<std::vector<float>(VectorIsa)>& actual,
                    const std::function<double(double)>& exact) {
  std::vector<double> expected;
  for (const float value : source) {
    const double result = exact(static_cast<double>(value));
    expected.push_back(std::abs(result) > kMost ? std::copysign(HUGE_VAL, result) : result);
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    INFO(name);
    CHECK(first_fault(actual(isa), expected) == "");
  }
}

}  // namespace

TEST_CASE("Winograd computes tiles by the definition that one element would spoil",
          "[onednn][kernels][special]") {
  const auto [taps, pad, stride] = GENERATE(
      Taps{{3, 3}, {1, 1}}, Taps{{3, 3}, {2, 2}}, Taps{{5, 5}, {2, 2}}, Taps{{3, 3}, {1, 1}, 2},
      Taps{{3, 3}, {0, 2}, 2}, Taps{{1, 3}, {0, 1}}, Taps{{3, 1}, {1, 0}}, Taps{{1, 5}, {0, 2}},
      Taps{{5, 1}, {2, 0}}, Taps{{1, 7}, {0, 3}}, Taps{{7, 1}, {3, 0}});
  const ExactConvolution exact{1,     32, 48, 1, {13, 11}, {taps[0], taps[1]}, {pad[0], pad[1]},
                               stride};
  const auto weight =
      normal_floats(48 * 32 * taps[0] * taps[1], 2,
                    1.0F / std::sqrt(32.0F * static_cast<float>(taps[0] * taps[1])));
  for (const Data& data : special_data(32 * 13 * 11, 5 * 143 + 6 * 11 + 5)) {
    const auto expected = convolve(exact, data.values, weight);
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
      for (const Winograd::Filter& filter : winograd_filters(taps[0], taps[1], stride)) {
        const Winograd kernel = winograd_kernel(exact, filter, isa);
        const auto target = run(kernel, data.values, weight);
        INFO("F(" << filter.tile[0] << " x " << filter.tile[1] << ", " << taps[0] << " x "
                  << taps[1] << "), " << data.name);
        // A receptive field may have a quarter of the magnitude of its tile.
        CHECK(first_fault(target, expected.results, expected.terms,
                          std::max(16.0, 4.0 * kernel.rounding())) == "");
        const auto again = run(kernel, data.values, weight, 3);
        CHECK(std::memcmp(target.data(), again.data(), target.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("Winograd computes channels by the definition whose weights are uneven",
          "[onednn][kernels][special]") {
  const std::int64_t stride = GENERATE(1, 2);
  const ExactConvolution exact{2, 64, 48, 1, {9, 14}, {3, 3}, {0, 0}, stride};
  auto source = normal_floats(2 * 64 * 9 * 14, 1);
  for (float& value : source) value = std::max(value, 0.0F);  // half of it does not read a weight
  for (const float value : {1e6F, 1e30F, kInfinity, kNaN}) {
    auto weight = normal_floats(48 * 64 * 9, 2, 1.0F / 24.0F);
    weight[5 * 64 * 9 + 100] = value;
    const auto expected = convolve(exact, source, weight);
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
      for (const Winograd::Filter& filter : winograd_filters(3, 3, stride)) {
        INFO(value);
        CHECK(first_fault(run(winograd_kernel(exact, filter, isa), source, weight),
                          expected.results, expected.terms) == "");
      }
    }
  }
}

TEST_CASE("Winograd's estimate of rounding is what is measured, on any number of channels",
          "[onednn][kernels][special]") {
  const auto [taps, pad, stride] =
      GENERATE(Taps{{3, 3}, {1, 1}}, Taps{{5, 5}, {2, 2}}, Taps{{1, 3}, {0, 1}},
               Taps{{1, 5}, {0, 2}}, Taps{{1, 7}, {0, 3}}, Taps{{3, 3}, {1, 1}, 2});
  const std::int64_t channels = GENERATE(16, 128, 512);
  const ExactConvolution exact{
      1, channels, 16, 1, {12, 12}, {taps[0], taps[1]}, {pad[0], pad[1]}, stride};
  const auto source = normal_floats(channels * 144, 1);
  const auto weight = normal_floats(16 * channels * taps[0] * taps[1], 2, 0.05F);
  const auto expected = exact.run(source, weight, {});
  const VectorIsa isa = instruction_sets(VectorIsa::kAvx2).back();
  for (const Winograd::Filter& filter : winograd_filters(taps[0], taps[1], stride)) {
    const Winograd kernel = winograd_kernel(exact, filter, isa);
    const auto target = run(kernel, source, weight);
    double errors = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const double error = static_cast<double>(target[i]) - expected[i];
      errors += error * error;
      squares += expected[i] * expected[i];
    }
    const double measured = std::sqrt(errors / squares) * 0x1p24;
    INFO("F(" << filter.tile[0] << " x " << filter.tile[1] << ", " << taps[0] << " x " << taps[1]
              << "), " << channels << " channels: " << measured);
    CHECK(measured < 1.35 * kernel.rounding());
    CHECK(measured > 0.7 * kernel.rounding());
  }
}

TEST_CASE("PackedGemm and Gemv keep rows apart", "[onednn][kernels][special]") {
  const bool use_strassen = GENERATE(false, true);
  constexpr std::int64_t kInner = 64;
  constexpr std::int64_t kColumns = 64;
  for (const std::int64_t rows : {std::int64_t{65}, std::int64_t{3}}) {
    for (const Data& data : special_data(rows * kInner, 2 * kInner + 7)) {
      const auto weight = normal_floats(kColumns * kInner, 2, 1.0F / 8.0F);
      const ExactConvolution exact{rows, kInner, kColumns, 1, {1, 1}, {1, 1}, {0, 0}, 1};
      const auto expected = convolve(exact, data.values, weight);
      for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
        INFO(data.name << ", " << rows << " rows");
        std::vector<float> target(static_cast<std::size_t>(rows * kColumns));
        if (rows <= Gemv::kMaxRows) {
          const Gemv gemv{
              .rows = rows, .inner = kInner, .columns = kColumns, .source_row = kInner, .isa = isa};
          gemv.run({data.values.data(), weight.data(), nullptr, {}, target.data()});
          CHECK(first_fault(target, expected.results, expected.terms) == "");
        }
        PackedGemm gemm;
        gemm.rows = rows;
        gemm.inner = kInner;
        gemm.columns = kColumns;
        gemm.source.row = kInner;
        gemm.target.row = kColumns;
        gemm.use_strassen = use_strassen;
        gemm.isa = isa;
        gemm.source.block = gemm.target.block = lanes_of(isa);
        std::vector<float> packed(gemm.weight_floats() + 4096);
        PackedGemmWeights{gemm}.run({weight.data(), packed.data()});
        std::vector<float> scratch(gemm.scratch_bytes() / sizeof(float));
        gemm.run({data.values.data(),
                  packed.data(),
                  nullptr,
                  nullptr,
                  {},
                  target.data(),
                  scratch.data()});
        CHECK(first_fault(target, expected.results, expected.terms) == "");
      }
    }
  }
}

TEST_CASE("ExpandDepthwise keeps pixels apart", "[onednn][kernels][special]") {
  constexpr std::int64_t kChannels = 48;
  const ExactConvolution expand{1, 16, kChannels, 1, {9, 7}, {1, 1}, {0, 0}, 1};
  const ExactConvolution filter{1, 1, kChannels, kChannels, {9, 7}, {3, 3}, {1, 1}, 1};
  const auto expand_weight = normal_floats(kChannels * 16, 2, 0.25F);
  const auto filter_weight = normal_floats(kChannels * 9, 3, 0.3F);
  std::vector<float> ordered_expand(expand_weight.size());
  std::vector<float> ordered_filter(filter_weight.size());
  for (const Data& data : special_data(16 * 63, 3 * 63 + 31)) {
    const auto expected = filter.run(expand.run(data.values, expand_weight, {}), filter_weight, {});
    auto middle = expand.run(magnitudes(data.values), magnitudes(expand_weight), {});
    for (double& value : middle) value = value > kMost ? HUGE_VAL : value;  // it overflows there
    const auto terms = filter.run(middle, magnitudes(filter_weight), {});
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
      ExpandDepthwise kernel;
      kernel.source_channels = 16;
      kernel.channels = kChannels;
      for (int i = 0; i < 2; ++i) {
        kernel.source_extent[i] = kernel.target_extent[i] = expand.extent[i];
        kernel.pad[i] = 1;
      }
      kernel.isa = isa;
      const std::int64_t lanes = lanes_of(isa);
      PanelWeights{kChannels, 16, 2 * lanes}.run({expand_weight.data(), ordered_expand.data()});
      PanelWeights{kChannels, 9, 2 * lanes}.run({filter_weight.data(), ordered_filter.data()});
      std::vector<float> target(expected.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      const auto blocks = in_blocks(data.values, 1, 16, 63, lanes);
      kernel.run({bytes(blocks), ordered_expand.data(), ordered_filter.data(), nullptr, nullptr,
                  bytes(target), scratch.data()});
      INFO(data.name);
      CHECK(first_fault(from_blocks(target, 1, kChannels, 63, lanes), expected, terms) == "");
    }
  }
}

TEST_CASE("GroupedConvolution keeps groups and pixels apart", "[onednn][kernels][special]") {
  constexpr std::int64_t kChannels = 48;
  constexpr std::int64_t kGroups = 4;  // of 12 channels, which end within vectors
  constexpr std::int64_t kInner = kChannels / kGroups * 9;
  const ExactConvolution exact{1, kChannels / kGroups, kChannels, kGroups, {9, 7}, {3, 3}, {1, 1},
                               1};
  const auto weight = normal_floats(kChannels * kInner, 2, 0.25F);
  for (const Data& data : special_data(kChannels * 63, 17 * 63 + 31)) {
    const auto expected = exact.run(data.values, weight, {});
    const auto terms = exact.run(magnitudes(data.values), magnitudes(weight), {});
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAvx2)) {
      GroupedConvolution kernel;
      kernel.groups = kGroups;
      kernel.source_channels = kernel.target_channels = kChannels;
      for (int i = 0; i < 2; ++i) {
        kernel.source_extent[i] = kernel.target_extent[i] = exact.extent[i];
        kernel.taps[i] = 3;
        kernel.pad[i] = 1;
      }
      kernel.isa = isa;
      const std::int64_t lanes = lanes_of(isa);
      std::vector<float> ordered(weight.size());
      StridedCopy{sizeof(float),
                  {kChannels / lanes, kInner, lanes},
                  {lanes * kInner, 1, kInner},
                  {kInner * lanes, lanes, 1}}
          .run({bytes(weight), bytes(ordered)});
      std::vector<float> target(expected.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      const auto blocks = in_blocks(data.values, 1, kChannels, 63, lanes);
      kernel.run({blocks.data(), ordered.data(), nullptr, {}, target.data(), scratch.data()});
      INFO(data.name);
      CHECK(first_fault(from_blocks(target, 1, kChannels, 63, lanes), expected, terms) == "");
    }
  }
}

TEST_CASE("SqueezeExcite's gates saturate, and NaN stays", "[onednn][kernels][special]") {
  constexpr std::int64_t kChannels = 48;
  constexpr std::int64_t kPixels = 25;
  const auto gate_weight = normal_floats(kChannels * 4, 3, 0.5F);
  for (const Data& data : special_data(2 * kChannels * kPixels, 130)) {
    // Of means of 3e38 the hidden sums must not overflow; the means' own sums do.
    const auto hidden_weight = normal_floats(4 * kChannels, 2, data.name == "3e38" ? 0.01F : 0.1F);
    std::vector<double> expected;
    for (std::int64_t n = 0; n < 2; ++n) {
      double units[4]{};
      for (std::int64_t c = 0; c < kChannels; ++c) {
        double mean = 0.0;
        for (std::int64_t p = 0; p < kPixels; ++p) {
          mean += at(data.values, (n * kChannels + c) * kPixels + p) / kPixels;
        }
        for (std::int64_t u = 0; u < 4; ++u)
          units[u] += mean * at(hidden_weight, u * kChannels + c);
      }
      for (double& unit : units) unit = unit < 0.0 ? 0.0 : unit;
      for (std::int64_t c = 0; c < kChannels; ++c) {
        double sum = 0.0;
        for (std::int64_t u = 0; u < 4; ++u) sum += units[u] * at(gate_weight, c * 4 + u);
        for (std::int64_t p = 0; p < kPixels; ++p) {
          expected.push_back(at(data.values, (n * kChannels + c) * kPixels + p) /
                             (1.0 + std::exp(-sum)));
        }
      }
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      SqueezeExcite kernel;
      kernel.batch = 2;
      kernel.channels = kChannels;
      kernel.lanes = lanes_of(isa);
      kernel.spatial = kPixels;
      kernel.hidden = 4;
      kernel.activation = {EpilogueStep::Kind::kRelu, 0.0F, 0.0F};
      kernel.isa = isa;
      std::vector<float> ordered(gate_weight.size());
      GateWeights{kChannels, kernel.lanes, 4}.run({gate_weight.data(), ordered.data()});
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      auto target = in_blocks(data.values, 2, kChannels, kPixels, kernel.lanes);
      kernel.run({bytes(target), hidden_weight.data(), ordered.data(), nullptr, nullptr,
                  bytes(target), scratch.data()});
      INFO(data.name);
      CHECK(first_fault(from_blocks(target, 2, kChannels, kPixels, kernel.lanes), expected) == "");
    }
  }
}

TEST_CASE("Attention keeps queries apart; a NaN or infinite score spoils its row alone",
          "[onednn][kernels][special]") {
  constexpr std::int64_t kRows = 21;
  constexpr std::int64_t kWidth = 16;
  const bool is_query = GENERATE(true, false);  // else values are special
  const auto normal = normal_floats(kRows * kWidth, 3);
  for (const Data& data : special_data(kRows * kWidth, 5 * kWidth + 3)) {
    // Scores of 3e38 must not overflow: sums of 16 products with a quarter of a query.
    const bool is_large = is_query && data.name == "3e38";
    const auto key = normal_floats(kRows * kWidth, 2, is_large ? 0.2F : 1.0F);
    const auto& query = is_query ? data.values : normal;
    const auto& value = is_query ? normal : data.values;
    std::vector<double> expected;
    std::vector<double> terms;
    for (std::int64_t q = 0; q < kRows; ++q) {
      std::vector<double> scores(kRows, 0.0);
      for (std::int64_t k = 0; k < kRows; ++k) {
        for (std::int64_t i = 0; i < kWidth; ++i) {
          scores[static_cast<std::size_t>(k)] +=
              0.25 * at(query, q * kWidth + i) * at(key, k * kWidth + i);
        }
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0.0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (std::int64_t i = 0; i < kWidth; ++i) {
        double result = 0.0;
        double term = 0.0;
        for (std::int64_t k = 0; k < kRows; ++k) {
          const double part = scores[static_cast<std::size_t>(k)] / sum * at(value, k * kWidth + i);
          result += part;
          term += std::abs(part);
        }
        expected.push_back(result);
        terms.push_back(term * sum);  // divided last
      }
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      Attention kernel;
      kernel.queries = kernel.keys = kRows;
      kernel.width = kernel.value_width = kernel.result_row = kWidth;
      kernel.scale = 0.25F;
      for (auto* strides : {kernel.query_strides, kernel.key_strides, kernel.value_strides}) {
        strides[0] = kWidth;
        strides[1] = 1;
      }
      kernel.query_offsets = kernel.key_offsets = kernel.value_offsets =
          kernel.result_offsets = {0};
      kernel.isa = isa;
      std::vector<float> result(expected.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      kernel.run({bytes(query), bytes(key), bytes(value), nullptr, bytes(result), scratch.data()});
      INFO(data.name << (is_query ? " among queries" : " among values"));
      CHECK(first_fault(result, expected, terms) == "");
    }
  }
}

TEST_CASE("Attention's masks of the largest numbers block keys", "[onednn][kernels][special]") {
  constexpr std::int64_t kKeys = 37;
  constexpr std::int64_t kQueries = 3;
  constexpr std::int64_t kWidth = 8;
  const auto query = normal_floats(kQueries * kWidth, 1);
  const auto key = normal_floats(kKeys * kWidth, 2);
  const auto value = normal_floats(kKeys * kWidth, 3);
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  // The first query sees every other key; to the second all are blocked, which makes them equal;
  // to the third one key stands above all others.
  std::vector<float> mask(kQueries * kKeys, kLowest);
  for (std::size_t k = 0; k < kKeys; k += 2) mask[k] = 0.0F;
  mask[2 * kKeys + 5] = 3e38F;
  std::vector<double> expected;
  for (std::int64_t q = 0; q < kQueries; ++q) {
    std::vector<double> scores;
    for (std::int64_t k = 0; k < kKeys; ++k) {
      double score = 0.0;
      for (std::int64_t i = 0; i < kWidth; ++i) {
        score += at(query, q * kWidth + i) * at(key, k * kWidth + i);
      }
      scores.push_back(score + at(mask, q * kKeys + k));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double result = 0.0;
      for (std::int64_t k = 0; k < kKeys; ++k) {
        result += scores[static_cast<std::size_t>(k)] / sum * at(value, k * kWidth + i);
      }
      expected.push_back(result);
    }
  }
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    Attention kernel;
    kernel.queries = kQueries;
    kernel.keys = kKeys;
    kernel.width = kernel.value_width = kernel.result_row = kWidth;
    for (auto* strides : {kernel.query_strides, kernel.key_strides, kernel.value_strides}) {
      strides[0] = kWidth;
      strides[1] = 1;
    }
    kernel.has_mask = true;
    kernel.mask_strides[0] = kKeys;
    kernel.mask_strides[1] = 1;
    kernel.query_offsets = kernel.key_offsets = kernel.value_offsets = kernel.mask_offsets =
        kernel.result_offsets = {0};
    kernel.isa = isa;
    std::vector<float> result(expected.size());
    std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
    kernel.run(
        {bytes(query), bytes(key), bytes(value), bytes(mask), bytes(result), scratch.data()});
    CHECK(first_fault(result, expected) == "");
  }
}

TEST_CASE("RmsNorm of numbers whose squares overflow float32", "[onednn][kernels][special]") {
  const float largest = GENERATE(1e19F, 1e37F, 1e38F, 3e38F);
  constexpr std::int64_t kRows = 6;
  constexpr std::int64_t kInner = 20;
  auto source = random_floats(kRows * kInner, 1);
  for (float& value : source) value *= largest;
  std::fill_n(source.begin(), kInner, -largest);
  source[3] = largest;
  for (std::int64_t i = 0; i < kInner; ++i) {
    source[static_cast<std::size_t>(2 * kInner + i)] /= largest;  // an ordinary row
  }
  const auto weight = random_floats(kInner, 2);
  RmsNorm norm;
  norm.rows = kRows;
  norm.inner = kInner;
  norm.epsilon = 1e-5F;
  norm.has_weight = true;
  std::vector<double> expected;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double squares = 0.0;
    for (std::int64_t i = 0; i < kInner; ++i) {
      squares += std::pow(at(source, row * kInner + i), 2.0);
    }
    for (std::int64_t i = 0; i < kInner; ++i) {
      expected.push_back(at(source, row * kInner + i) /
                         std::sqrt(squares / kInner + static_cast<double>(norm.epsilon)) *
                         at(weight, i));
    }
  }
  std::vector<float> target(expected.size());
  norm.run({bytes(source), weight.data(), bytes(target)});
  INFO(largest);
  CHECK(first_fault(target, expected) == "");
}

TEST_CASE("Softmax of a row with NaN or +Inf is NaN, of other rows not",
          "[onednn][kernels][special]") {
  const bool logarithm = GENERATE(false, true);
  const std::int64_t inner = GENERATE(1, 5, 33);
  constexpr std::int64_t kOuter = 3;
  constexpr std::int64_t kCount = 37;
  for (const Data& data : special_data(kOuter * kCount * inner, kCount * inner + 7 * inner)) {
    std::vector<double> expected(data.values.size());
    for (std::int64_t row = 0; row < kOuter * inner; ++row) {
      const auto place = [&](std::int64_t i) {
        return (row / inner * kCount + i) * inner + row % inner;
      };
      double largest = -HUGE_VAL;
      for (std::int64_t i = 0; i < kCount; ++i)
        largest = std::fmax(largest, at(data.values, place(i)));
      double sum = 0.0;
      for (std::int64_t i = 0; i < kCount; ++i)
        sum += std::exp(at(data.values, place(i)) - largest);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const double shifted = at(data.values, place(i)) - largest;
        expected[static_cast<std::size_t>(place(i))] =
            logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
      }
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      auto target = data.values;  // in place
      const Softmax kernel{kOuter, kCount, inner, logarithm, isa};
      kernel.run({target.data(), target.data()});
      INFO(data.name << ", inner " << inner << (logarithm ? ", logarithm" : ""));
      CHECK(first_fault(target, expected) == "");
    }
  }
}

TEST_CASE("softplus is never negative, log_sigmoid never positive", "[onednn][kernels][special]") {
  using Function = Elementwise::Function;
  const auto source = special_numbers();
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    for (const Function function : {Function::kSoftplus, Function::kLogSigmoid}) {
      std::vector<float> target(source.size());
      Elementwise{function, DType::kFloat32, static_cast<std::int64_t>(source.size()), isa}.run(
          {bytes(source), bytes(target)});
      for (const float result : target) {
        CHECK(!(function == Function::kSoftplus ? result < 0.0F : result > 0.0F));
      }
    }
  }
}

TEST_CASE("epilogues keep NaN and infinities as their functions do", "[onednn][kernels][special]") {
  using Kind = EpilogueStep::Kind;
  const auto step =
      GENERATE(EpilogueStep{Kind::kRelu, 0.0F, 0.0F}, EpilogueStep{Kind::kRelu, 0.25F, 0.0F},
               EpilogueStep{Kind::kClip, -1.0F, 6.0F}, EpilogueStep{Kind::kLinear, 0.5F, 1.0F},
               EpilogueStep{Kind::kSwish, 1.0F, 0.0F}, EpilogueStep{Kind::kHardSwish, 0.0F, 0.0F});
  auto source = special_numbers();
  const std::vector<float> one{1.0F};
  const auto count = static_cast<std::int64_t>(source.size());
  check_function(
      "step", source,
      [&](VectorIsa isa) {  // a product with one
        std::vector<float> target(source.size());
        const Gemv gemv{.rows = 1,
                        .inner = 1,
                        .columns = count,
                        .source_row = 1,
                        .epilogue = {step},
                        .isa = isa};
        gemv.run({one.data(), source.data(), nullptr, {}, target.data()});
        return target;
      },
      [&](double x) { return std::isnan(x) ? x : apply_exactly(step, x); });
}

TEST_CASE("Elementwise computes bfloat16 in float32", "[onednn][kernels][special]") {
  const std::vector<std::uint16_t> source{0x0000, 0x3F80, 0xC170, 0x7FC0, 0xFF80, 0x7F80};
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    std::vector<std::uint16_t> target(source.size());
    Elementwise{Elementwise::Function::kSoftplus, DType::kBFloat16, 6, isa}.run(
        {bytes(source), bytes(target)});
    target[3] &= 0x7FFF;  // a NaN of either sign
    // log 2, 1.3125, 3.06e-7, NaN, 0, Inf
    CHECK(target == std::vector<std::uint16_t>{0x3F31, 0x3FA8, 0x34A4, 0x7FC0, 0x0000, 0x7F80});
  }
}

TEST_CASE("kernels that walk over memory once give what the definition gives",
          "[onednn][kernels][special]") {
  for (const Data& data : special_data(4 * 6 * 10, 77)) {
    INFO(data.name);
    // Statistics are float64: what PyTorch overflows is finite.
    RmsNorm norm;
    norm.rows = 24;
    norm.inner = 10;
    norm.epsilon = 1e-5F;
    std::vector<double> normed;
    std::vector<double> sums;
    std::vector<double> means;
    for (std::int64_t row = 0; row < 24; ++row) {
      double sum = 0.0;
      double squares = 0.0;
      for (std::int64_t i = 0; i < 10; ++i) sum += at(data.values, row * 10 + i);
      for (std::int64_t i = 0; i < 10; ++i) squares += std::pow(at(data.values, row * 10 + i), 2.0);
      for (std::int64_t i = 0; i < 10; ++i) {
        normed.push_back(at(data.values, row * 10 + i) / std::sqrt(squares / 10.0 + 1e-5));
      }
      sums.push_back(sum > kMost ? HUGE_VAL : sum);
      means.push_back(sum / 10.0);
    }
    std::vector<float> normed_target(normed.size());
    norm.run({bytes(data.values), nullptr, bytes(normed_target)});
    CHECK(first_fault(normed_target, normed) == "");
    std::vector<float> reduced(24);
    MiddleReduction{ReductionOp::kSum, DType::kFloat32, 24, 10, 1}.run(
        {bytes(data.values), bytes(reduced)});
    CHECK(first_fault(reduced, sums) == "");
    WindowPool average;
    average.planes = 24;
    average.extents[2] = 10;
    average.windows[2] = {{0, 10, 10}};
    average.run({bytes(data.values), bytes(reduced)});
    CHECK(first_fault(reduced, means) == "");

    ScaleShift scale;
    scale.outer = 1;
    scale.groups = 24;
    scale.spatial = 10;
    scale.has_shift = true;
    const auto vectors = random_floats(48, 2);
    std::vector<double> scaled;
    for (std::int64_t i = 0; i < 240; ++i) {
      scaled.push_back(at(data.values, i) * at(vectors, i / 10) + at(vectors, 24 + i / 10));
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      scale.isa = isa;
      std::vector<float> target(240);
      scale.run({bytes(data.values), bytes(vectors), bytes(target)});
      CHECK(first_fault(target, scaled) == "");
    }
    BroadcastBinary maximum;
    maximum.op = BinaryOp::kMaximum;
    maximum.extents = {240};
    maximum.a_strides = maximum.target_strides = {1};
    maximum.b_strides = {0};
    const std::vector<float> zero{0.0F};
    std::vector<double> largest = doubles(data.values);
    for (double& each : largest) each = each < 0.0 ? 0.0 : each;
    std::vector<float> target(240);
    maximum.run({bytes(data.values), bytes(zero), bytes(target)});
    CHECK(first_fault(target, largest) == "");
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("Attention weighs values by the softmax of scores", "[onednn][kernels]") {
  const bool causal = GENERATE(false, true);
  const bool has_mask = GENERATE(false, true);
  const bool has_lengths = GENERATE(false, true);
  const std::int64_t queries = GENERATE(1, 37, 101);
  const std::int64_t kKeys = GENERATE(41, 130);
  constexpr std::int64_t kPlanes = 3;
  constexpr std::int64_t kWidth = 20;
  constexpr std::int64_t kValueWidth = 29;
  constexpr float kLeast = 2.0F;  // of about 0.58 * sqrt(20)
  const auto query = random_floats(kPlanes * queries * kWidth, 1);
  const auto key = random_floats(kPlanes * kKeys * kWidth, 2);
  const auto value = random_floats(kPlanes * kKeys * kValueWidth, 3);
  const auto mask = random_floats(queries * kKeys, 4);
  const std::vector<float> factors{3.0F, 0.5F, 7.0F};
  Attention kernel;
  kernel.queries = queries;
  kernel.keys = kKeys;
  kernel.width = kWidth;
  kernel.value_width = kValueWidth;
  kernel.scale = 1.5F;
  kernel.causal = causal;
  kernel.has_mask = has_mask;
  kernel.has_factor = has_lengths;
  kernel.least_query_length = has_lengths ? kLeast : 0.0F;
  kernel.least_key_length = has_lengths ? kLeast / 2 : 0.0F;
  const auto set = [](std::int64_t(&strides)[2], std::int64_t row) {
    strides[0] = row;
    strides[1] = 1;
  };
  set(kernel.query_strides, kWidth);
  set(kernel.key_strides, kWidth);
  set(kernel.value_strides, kValueWidth);
  set(kernel.mask_strides, kKeys);
  kernel.result_row = kValueWidth;
  const auto at = [](const std::vector<float>& values, std::int64_t i) {
    return static_cast<double>(values[static_cast<std::size_t>(i)]);
  };
  /// What a row is divided by.
  const auto length_of = [&](const std::vector<float>& values, std::int64_t row, float least) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      sum += at(values, row * kWidth + i) * at(values, row * kWidth + i);
    }
    return has_lengths ? std::max(std::sqrt(sum), static_cast<double>(least)) : 1.0;
  };
  std::vector<double> expected;
  for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
    kernel.factor_offsets.push_back(kPlanes - 1 - plane);
    const double factor = has_lengths ? at(factors, kPlanes - 1 - plane) : 1.0;
    kernel.query_offsets.push_back(plane * queries * kWidth);
    kernel.key_offsets.push_back(plane * kKeys * kWidth);
    kernel.value_offsets.push_back(plane * kKeys * kValueWidth);
    kernel.mask_offsets.push_back(0);
    kernel.result_offsets.push_back(plane * queries * kValueWidth);
    for (std::int64_t q = 0; q < queries; ++q) {
      std::vector<double> weights;
      double sum = 0.0;
      for (std::int64_t k = 0; k < kKeys; ++k) {
        double score = 0.0;
        for (std::int64_t i = 0; i < kWidth; ++i) {
          score += at(query, (plane * queries + q) * kWidth + i) *
                   at(key, (plane * kKeys + k) * kWidth + i);
        }
        score *= 1.5 * factor / length_of(query, plane * queries + q, kLeast) /
                 length_of(key, plane * kKeys + k, kLeast / 2);
        score += has_mask ? at(mask, q * kKeys + k) : 0.0;
        weights.push_back(causal && k > q ? 0.0 : std::exp(score));
        sum += weights.back();
      }
      for (std::int64_t i = 0; i < kValueWidth; ++i) {
        double result = 0.0;
        for (std::int64_t k = 0; k < kKeys; ++k) {
          result += weights[static_cast<std::size_t>(k)] / sum *
                    at(value, (plane * kKeys + k) * kValueWidth + i);
        }
        expected.push_back(result);
      }
    }
  }
  const auto bytes = [](const std::vector<float>& values) {
    return static_cast<const std::byte*>(static_cast<const void*>(values.data()));
  };
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      kernel.isa = isa;
      kernel.threads = threads;
      std::vector<float> result(expected.size());
      std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
      kernel.run({bytes(query), bytes(key), bytes(value), has_mask ? bytes(mask) : nullptr,
                  static_cast<std::byte*>(static_cast<void*>(result.data())), scratch.data(),
                  factors.data()});
      CHECK(worst_error(result, expected) < 5e-6);
      if (first.empty()) first = result;
      CHECK(result == first);
    }
  }
}

namespace {

/// 4 planes of 5 queries and 19 keys, in which planes share keys and values by twos.
struct SharedHeads {
  static constexpr std::int64_t kPlanes = 4, kQueries = 5, kKeys = 19, kWidth = 7;
  std::vector<float> query = random_floats(kPlanes * kQueries * kWidth, 1);
  std::vector<float> key = random_floats(kPlanes / 2 * kKeys * kWidth, 2);
  std::vector<float> value = random_floats(kPlanes / 2 * kKeys * kWidth, 3);
  /// By query and key, for all planes.
  std::vector<std::uint8_t> mask = std::vector<std::uint8_t>(kQueries * kKeys);
  Attention kernel;

  SharedHeads() {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 0 ? 2 : 0;
    kernel.queries = kQueries;
    kernel.keys = kKeys;
    kernel.width = kernel.value_width = kernel.result_row = kWidth;
    kernel.has_mask = true;
    kernel.mask_type = DType::kBool;
    kernel.mask_strides[0] = kKeys;
    for (auto* strides : {&kernel.query_strides, &kernel.key_strides, &kernel.value_strides}) {
      (*strides)[0] = kWidth;
    }
    for (auto* strides : {&kernel.query_strides, &kernel.key_strides, &kernel.value_strides,
                          &kernel.mask_strides}) {
      (*strides)[1] = 1;
    }
    for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
      kernel.query_offsets.push_back(plane * kQueries * kWidth);
      kernel.result_offsets.push_back(plane * kQueries * kWidth);
      kernel.key_offsets.push_back(plane / 2 * kKeys * kWidth);
      kernel.value_offsets.push_back(plane / 2 * kKeys * kWidth);
      kernel.mask_offsets.push_back(0);
    }
  }

  std::vector<float> run() {
    std::vector<float> result(query.size());
    std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float));
    const auto bytes = [](const auto& values) {
      return static_cast<const std::byte*>(static_cast<const void*>(values.data()));
    };
    kernel.run({bytes(query), bytes(key), bytes(value), bytes(mask),
                static_cast<std::byte*>(static_cast<void*>(result.data())), scratch.data()});
    return result;
  }

  /// By the definition; `weigh` changes the weights of a row.
  template <typename Weigh>
  std::vector<double> expected(const Weigh& weigh) const {
    const auto at = [](const std::vector<float>& values, std::int64_t row, std::int64_t i) {
      return static_cast<double>(values[static_cast<std::size_t>(row * kWidth + i)]);
    };
    std::vector<double> result;
    for (std::int64_t q = 0; q < kPlanes * kQueries; ++q) {
      const std::int64_t first = q / kQueries / 2 * kKeys;
      std::vector<double> weights(kKeys);
      double sum = 0;
      for (std::int64_t k = 0; k < kKeys; ++k) {
        double score = 0;
        for (std::int64_t i = 0; i < kWidth; ++i) score += at(query, q, i) * at(key, first + k, i);
        const auto place = static_cast<std::size_t>(q % kQueries * kKeys + k);
        if ((mask[place] != 0) != kernel.mask_keeps) {
          score = static_cast<double>(kernel.mask_fill);
        }
        sum += weights[static_cast<std::size_t>(k)] = std::exp(score);
      }
      for (double& weight : weights) weight = weigh(weight, sum);
      for (std::int64_t i = 0; i < kWidth; ++i) {
        double element = 0;
        for (std::int64_t k = 0; k < kKeys; ++k) {
          element += weights[static_cast<std::size_t>(k)] * at(value, first + k, i);
        }
        result.push_back(element);
      }
    }
    return result;
  }
};

}  // namespace

TEST_CASE("Attention takes masks of bool, and heads that share keys", "[onednn][kernels]") {
  SharedHeads heads;
  CHECK(heads.kernel.shared_planes() == 2);
  heads.kernel.mask_keeps = GENERATE(true, false);
  heads.kernel.mask_fill = GENERATE(-std::numeric_limits<float>::infinity(), 0.25F);
  const auto expected = heads.expected([](double weight, double sum) { return weight / sum; });
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    heads.kernel.isa = isa;
    for (const int threads : {1, 3}) {
      heads.kernel.threads = threads;
      CHECK(worst_error(heads.run(), expected) < 5e-6);
    }
  }
}

TEST_CASE("Attention gives zeros where all is masked, or weights are NaN", "[onednn][kernels]") {
  SharedHeads heads;
  std::fill_n(heads.mask.begin(), SharedHeads::kKeys, std::uint8_t{0});  // of the first query
  const bool nan = GENERATE(false, true);
  if (nan) heads.query[SharedHeads::kWidth] = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t row = nan ? 1 : 0;
  const auto is_zero = [](float value) { return value == 0; };
  const auto is_nan = [](float value) { return std::isnan(value); };
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    heads.kernel.isa = isa;
    for (const bool guarded : {false, true}) {
      heads.kernel.zero_nan = nan && guarded;
      heads.kernel.zero_blocked = !nan && guarded;
      const std::vector<float> result = heads.run();
      const auto first = result.begin() + row * SharedHeads::kWidth;
      const auto last = first + SharedHeads::kWidth;
      CHECK((guarded ? std::all_of(first, last, is_zero) : std::all_of(first, last, is_nan)));
      CHECK(std::none_of(result.begin() + 2 * SharedHeads::kWidth,
                         result.begin() + SharedHeads::kQueries * SharedHeads::kWidth, is_nan));
    }
  }
}

TEST_CASE("Attention shares planes only where all do alike", "[onednn][kernels]") {
  Attention kernel;
  const auto shared = [&](std::vector<std::int64_t> keys) {
    kernel.query_offsets.assign(keys.size(), 0);
    kernel.key_offsets = kernel.value_offsets = std::move(keys);
    return kernel.shared_planes();
  };
  CHECK(shared({7}) == 1);
  CHECK(shared({0, 0, 0, 5, 5, 5}) == 3);
  CHECK(shared({0, 0, 0, 0}) == 4);
  CHECK(shared({0, 0, 5, 6}) == 1);
  CHECK(shared({0, 0, 5}) == 1);
  CHECK(shared({0, 5, 5}) == 1);
}

}  // namespace npu::onednn

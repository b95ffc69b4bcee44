// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("Attention weighs values by the softmax of scores", "[onednn][kernels]") {
  const bool causal = GENERATE(false, true);
  const bool has_mask = GENERATE(false, true);
  const std::int64_t queries = GENERATE(1, 37);
  constexpr std::int64_t kPlanes = 3;
  constexpr std::int64_t kKeys = 41;
  constexpr std::int64_t kWidth = 20;
  constexpr std::int64_t kValueWidth = 13;
  const auto query = random_floats(kPlanes * queries * kWidth, 1);
  const auto key = random_floats(kPlanes * kKeys * kWidth, 2);
  const auto value = random_floats(kPlanes * kKeys * kValueWidth, 3);
  const auto mask = random_floats(queries * kKeys, 4);
  Attention kernel;
  kernel.queries = queries;
  kernel.keys = kKeys;
  kernel.width = kWidth;
  kernel.value_width = kValueWidth;
  kernel.scale = 1.5F;
  kernel.causal = causal;
  kernel.has_mask = has_mask;
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
  std::vector<double> expected;
  for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
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
        score = 1.5 * score + (has_mask ? at(mask, q * kKeys + k) : 0.0);
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
                  static_cast<std::byte*>(static_cast<void*>(result.data())), scratch.data()});
      CHECK(worst_error(result, expected) < 5e-6);
      if (first.empty()) first = result;
      CHECK(result == first);
    }
  }
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/cached_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/attention/length_mask.hpp"

namespace npu::onednn {

using namespace test;

namespace {

/// Heads of queries that share heads of a cache, [heads, capacity, width], all row-major.
struct CachedCase {
  std::int64_t heads = 2;   ///< of keys and values
  std::int64_t shared = 1;  ///< heads of queries for each
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> valid;  ///< one number, or none
  CachedAttention kernel;
  std::vector<float> query, key, value;
  std::vector<float> sinks;  ///< by plane, or none
  std::vector<float> bias;   ///< [planes, queries, capacity] or without some of these; or none
  KeyRanges::Range shown{0, 1 << 20};  ///< keys that the bias shows

  CachedCase(std::int64_t queries, std::int64_t capacity, std::int64_t width,
             std::int64_t value_width, std::int64_t share)
      : shared(share) {
    kernel.queries = queries;
    kernel.ranges.keys = capacity;
    kernel.width = width;
    kernel.value_width = kernel.result_row = value_width;
    kernel.scale = 1.25F;
    kernel.query_strides[0] = kernel.key_strides[0] = width;
    kernel.value_strides[0] = value_width;
    kernel.query_strides[1] = kernel.key_strides[1] = kernel.value_strides[1] = 1;
    for (std::int64_t plane = 0; plane < heads * shared; ++plane) {
      kernel.query_offsets.push_back(plane * queries * width);
      kernel.result_offsets.push_back(plane * queries * value_width);
      kernel.key_offsets.push_back(plane / shared * capacity * width);
      kernel.value_offsets.push_back(plane / shared * capacity * value_width);
    }
    query = random_floats(heads * shared * queries * width, 1);
    key = random_floats(heads * capacity * width, 2);
    value = random_floats(heads * capacity * value_width, 3);
  }

  void set_sinks() {
    kernel.has_sinks = true;
    // Two planes have one of another place; of some draws the last is out of sight of all scores.
    for (std::int64_t plane = 0; plane < heads * shared; ++plane) {
      kernel.sink_offsets.push_back(heads * shared - 1 - plane);
    }
    sinks = random_floats(heads * shared, 4);
    sinks.back() = -300;
  }
  /// For each plane, or all, and each query, or all; keys lie `step` elements apart.
  void set_bias(bool by_plane, bool by_query, std::int64_t step = 1) {
    const std::int64_t row = kernel.ranges.keys * step;
    const std::int64_t rows = by_query ? kernel.queries : 1;
    kernel.has_bias = true;
    kernel.bias_strides[0] = by_query ? row : 0;
    kernel.bias_strides[1] = step;
    for (std::int64_t plane = 0; plane < heads * shared; ++plane) {
      kernel.bias_offsets.push_back(by_plane ? plane * rows * row : 0);
    }
    bias = random_floats((by_plane ? heads * shared : 1) * rows * row, 5);
    for (float& each : bias) each *= 4;
  }
  std::size_t bias_place(std::int64_t plane, std::int64_t q, std::int64_t k) const {
    return static_cast<std::size_t>(kernel.bias_offsets[static_cast<std::size_t>(plane)] +
                                    q * kernel.bias_strides[0] + k * kernel.bias_strides[1]);
  }
  void set_positions(std::int64_t first) {
    positions.clear();
    for (std::int64_t i = 0; i < kernel.queries; ++i) positions.push_back(first + i);
  }
  bool sees(std::int64_t q, std::int64_t k) const {
    const KeyRanges& ranges = kernel.ranges;
    if (k < shown.begin || k >= shown.end) return false;
    const std::int64_t p = ranges.has_positions ? positions[static_cast<std::size_t>(q)] : 0;
    return (!ranges.has_valid || k < valid[0]) && (!ranges.causal || k <= p) &&
           (ranges.window == 0 || k > p - ranges.window);
  }
  /// Keys that no query sees hold what no sum survives.
  void spoil_unseen() {
    const std::int64_t capacity = kernel.ranges.keys;
    for (std::int64_t k = 0; k < capacity; ++k) {
      const bool is_by_place = kernel.bias_strides[0] != 0 && kernel.bias_strides[1] != 0;
      const bool spoils = is_by_place && kernel.hidden_bias == 0.0F;
      for (std::int64_t q = 0; spoils && q < kernel.queries; ++q) {
        for (std::int64_t plane = 0; plane < heads * shared && !sees(q, k); ++plane) {
          bias[bias_place(plane, q, k)] = std::nanf("");
        }
      }
      bool is_seen = false;
      for (std::int64_t q = 0; q < kernel.queries; ++q) is_seen = is_seen || sees(q, k);
      if (is_seen) continue;
      for (std::int64_t h = 0; h < heads; ++h) {
        const auto at = [&](std::vector<float>& all, std::int64_t width) {
          std::fill_n(all.begin() + (h * capacity + k) * width, width, std::nanf(""));
        };
        at(key, kernel.width);
        at(value, kernel.value_width);
      }
    }
  }

  std::vector<double> expected() const {
    const auto at = [](const std::vector<float>& values, std::int64_t i) {
      return static_cast<double>(values[static_cast<std::size_t>(i)]);
    };
    std::vector<double> result;
    const std::int64_t capacity = kernel.ranges.keys;
    for (std::int64_t plane = 0; plane < heads * shared; ++plane) {
      for (std::int64_t q = 0; q < kernel.queries; ++q) {
        std::vector<double> sums(static_cast<std::size_t>(kernel.value_width));
        double total = 0;
        if (kernel.has_sinks) {
          total = std::exp(at(sinks, kernel.sink_offsets[static_cast<std::size_t>(plane)]));
        }
        for (std::int64_t k = 0; k < capacity; ++k) {
          if (!sees(q, k)) continue;
          const std::int64_t row = plane / shared * capacity + k;
          double score = 0;
          for (std::int64_t c = 0; c < kernel.width; ++c) {
            score += at(query, (plane * kernel.queries + q) * kernel.width + c) *
                     at(key, row * kernel.width + c);
          }
          score *= 1.25;
          if (kernel.cap != 0) score = static_cast<double>(kernel.cap) * std::tanh(score);
          if (kernel.has_bias) score += static_cast<double>(bias[bias_place(plane, q, k)]);
          const double weight = std::exp(score);
          total += weight;
          for (std::size_t c = 0; c < sums.size(); ++c) {
            sums[c] += weight * at(value, row * kernel.value_width + static_cast<std::int64_t>(c));
          }
        }
        for (const double sum : sums) result.push_back(total == 0 ? 0 : sum / total);
      }
    }
    return result;
  }

  CachedAttention::Operands operands(std::vector<float>& result, std::vector<float>& scratch) {
    return {bytes(query),
            bytes(key),
            bytes(value),
            kernel.ranges.has_positions ? positions.data() : nullptr,
            kernel.ranges.has_valid ? valid.data() : nullptr,
            kernel.has_sinks ? sinks.data() : nullptr,
            kernel.has_bias ? bytes(bias) : nullptr,
            bytes(result),
            scratch.data()};
  }
  std::vector<float> run() {
    std::vector<float> result(kernel.result_offsets.size() *
                              static_cast<std::size_t>(kernel.queries * kernel.value_width));
    std::vector<float> scratch(kernel.scratch_bytes() / sizeof(float), std::nanf(""));
    kernel.run(operands(result, scratch));
    return result;
  }
  std::int64_t visited() {
    std::vector<float> none;
    return kernel.visited_keys(operands(none, none));
  }
  /// All instruction sets and numbers of threads against the definition.
  void check() {
    spoil_unseen();
    const std::vector<double> wanted = expected();
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      kernel.isa = isa;
      std::vector<float> first;
      for (const int threads : {1, 2, 4}) {
        kernel.threads = threads;
        CHECK_NOTHROW(footprint(kernel));
        const std::vector<float> result = run();
        // Scores of up to 80 products of numbers below 1, times 1.25, in float32.
        CHECK(worst_error(result, wanted) < 1e-5);
        if (first.empty()) first = result;
        CHECK(result == first);
      }
    }
  }
};

}  // namespace

TEST_CASE("CachedAttention is attention over the keys that a query sees", "[onednn][kernels]") {
  const std::int64_t queries = GENERATE(1, 3, 8, 9, 70);
  const std::int64_t shared = GENERATE(1, 7);
  const auto [width, value_width] =
      GENERATE(table<std::int64_t, std::int64_t>({{64, 64}, {20, 37}, {80, 5}}));
  CachedCase one(queries, 700, width, value_width, shared);
  const std::int64_t first = GENERATE(0, 63, 250, 629);
  one.set_positions(first);
  one.kernel.ranges.window = first == 250 ? 100 : 0;
  one.check();
}

TEST_CASE("CachedAttention caps scores, and counts sinks", "[onednn][kernels]") {
  const std::int64_t queries = GENERATE(1, 8, 9, 70);
  const bool has_sinks = GENERATE(false, true);
  const float cap = GENERATE(0.0F, 3.0F, -0.5F);
  CachedCase one(queries, 700, 20, 37, 3);
  one.kernel.cap = cap;
  if (has_sinks) one.set_sinks();
  one.set_positions(GENERATE(0, 300));
  one.check();
  // A query that sees no key, and one sink.
  one.kernel.ranges = {700, false, true, false, 0};
  one.valid = {0};
  one.check();
}

TEST_CASE("CachedAttention adds a bias to scores", "[onednn][kernels]") {
  const std::int64_t queries = GENERATE(1, 9, 40);
  const bool by_plane = GENERATE(false, true);
  const bool by_query = GENERATE(false, true);
  CachedCase one(queries, 400, 20, 37, 3);
  if (by_plane) one.kernel.cap = 3.0F;
  if (by_query) one.set_sinks();
  one.set_bias(by_plane, by_query, by_plane == by_query ? 1 : 3);
  one.set_positions(GENERATE(0, 300));
  one.kernel.ranges.window = by_query ? 50 : 0;
  one.check();
  // The same for all keys.
  one.kernel.bias_strides[1] = 0;
  for (float& each : one.bias) each = std::isnan(each) ? 1.0F : each;
  one.check();
}

TEST_CASE("CachedAttention passes over keys that a bias hides", "[onednn][kernels]") {
  const std::int64_t queries = GENERATE(1, 4, 40);
  const bool by_plane = GENERATE(false, true);
  const float hidden = GENERATE(-1e9F, std::numeric_limits<float>::lowest(),
                                -std::numeric_limits<float>::infinity());
  CachedCase one(queries, 400, 20, 37, 1);
  one.set_bias(by_plane, true);
  one.kernel.ranges = {400, false, false, false, 0};
  one.kernel.hidden_bias = -1e8F;
  one.shown = GENERATE(KeyRanges::Range{0, 90}, KeyRanges::Range{0, 1}, KeyRanges::Range{70, 310});
  for (std::size_t i = 0; i < one.bias.size(); ++i) {
    const auto key = static_cast<std::int64_t>(i) % 400;
    const bool is_shown = key >= one.shown.begin && key < one.shown.end;
    if (!is_shown) one.bias[i] = hidden;
  }
  CHECK(one.visited() == (queries == 40 ? 4 : 2) * (one.shown.end - one.shown.begin));
  one.check();
}

TEST_CASE("CachedAttention of a query that a bias hides all keys from", "[onednn][kernels]") {
  const bool zero_blocked = GENERATE(false, true);
  CachedCase one(2, 100, 8, 8, 1);
  one.set_bias(false, true);
  one.kernel.ranges = {100, false, false, false, 0};
  one.kernel.hidden_bias = -1e8F;
  one.kernel.zero_blocked = zero_blocked;
  std::fill_n(one.bias.begin(), 100, -std::numeric_limits<float>::infinity());
  const std::vector<float> result = one.run();
  for (std::size_t i = 0; i < result.size(); ++i) {
    const bool is_blocked = i / 8 % 2 == 0;
    CHECK(std::isnan(result[i]) == (is_blocked && !zero_blocked));
    CHECK((result[i] == 0) == (is_blocked && zero_blocked));
  }
  // With a number its hidden scores share the weights, as they are written.
  std::fill_n(one.bias.begin(), 100, -1e9F);
  const std::vector<float> shared = one.run();
  std::vector<double> mean(16);  // since the sum of a score and -1e9 is a multiple of 64
  for (std::size_t plane = 0; plane < 2; ++plane) {
    for (std::size_t i = 0; i < 800; ++i) {
      mean[plane * 8 + i % 8] += static_cast<double>(one.value[plane * 800 + i]) / 100;
    }
  }
  for (std::size_t plane = 0; plane < 2; ++plane) {
    for (std::size_t c = 0; c < 8; ++c) {
      CHECK(static_cast<double>(shared[plane * 16 + c]) ==
            Approx(mean[plane * 8 + c]).margin(1e-6));
    }
  }
}

TEST_CASE("CachedAttention takes any positions and lengths", "[onednn][kernels]") {
  std::mt19937 engine(7);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t capacity = draw(1, 600);
    CachedCase one(draw(1, 12), capacity, draw(1, 33), draw(1, 70), draw(1, 3));
    KeyRanges& ranges = one.kernel.ranges;
    ranges.has_valid = draw(0, 1) == 1;
    ranges.has_positions = !ranges.has_valid || draw(0, 3) != 0;
    ranges.causal = ranges.has_positions && draw(0, 4) != 0;
    ranges.window = ranges.has_positions && draw(0, 1) == 1 ? draw(1, capacity + 3) : 0;
    one.valid = {draw(-1, capacity + 2)};
    one.set_positions(draw(-2, capacity));
    if (draw(0, 2) == 0) one.set_sinks();
    if (draw(0, 2) == 0) one.kernel.cap = static_cast<float>(draw(1, 9));
    if (draw(0, 2) == 0) one.set_bias(draw(0, 1) == 1, draw(0, 1) == 1);
    if (draw(0, 3) == 0) one.positions.back() = one.positions.front();  // as padding repeats
    INFO("draw " << i);
    one.check();
  }
  CachedCase far(2, 30, 8, 8, 1);
  far.kernel.ranges.window = 40;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  far.positions = {kMost, std::numeric_limits<std::int64_t>::min()};
  CHECK(far.visited() == 0);
  CHECK(far.run() == std::vector<float>(32, 0.0F));
}

TEST_CASE("CachedAttention's work follows the position, not the capacity", "[onednn][kernels]") {
  const std::int64_t queries = GENERATE(1, 8, 64);
  for (const std::int64_t position : {0, 63, 500, 3900}) {
    CachedCase small(queries, 64 + position, 8, 8, 3);
    CachedCase large(queries, 4096, 8, 8, 3);
    small.set_positions(position);
    large.set_positions(position);
    CHECK(small.visited() == large.visited());
    // Each head of keys once; of many queries, once for a block of 32 rows.
    const std::int64_t blocks = queries <= 8 ? 1 : 3 * queries / 32;
    CHECK(large.visited() <= 2 * blocks * (position + queries));
    CHECK(large.visited() >= 2 * blocks * (position + 1));
  }
  CachedCase windowed(queries, 4096, 8, 8, 3);
  windowed.set_positions(3900);
  windowed.kernel.ranges.window = 16;
  CHECK(windowed.visited() <= 2 * std::max<std::int64_t>(1, 3 * queries / 32) * (queries + 16));
}

TEST_CASE("CachedAttention of bfloat16 rounds the result alone", "[onednn][kernels]") {
  CachedCase one(2, 300, 24, 19, 2);
  one.set_positions(270);
  const std::vector<std::uint16_t> query = rounded_to(DType::kBFloat16, one.query);
  const std::vector<std::uint16_t> key = rounded_to(DType::kBFloat16, one.key);
  const std::vector<std::uint16_t> value = rounded_to(DType::kBFloat16, one.value);
  one.set_bias(true, true);
  const std::vector<std::uint16_t> bias = rounded_to(DType::kBFloat16, one.bias);
  const std::vector<double> expected = one.expected();
  one.kernel.type = DType::kBFloat16;
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    one.kernel.isa = isa;
    std::vector<std::uint16_t> result(expected.size());
    std::vector<float> scratch(one.kernel.scratch_bytes() / sizeof(float));
    one.kernel.run({bytes(query), bytes(key), bytes(value), one.positions.data(), nullptr, nullptr,
                    bytes(bias), bytes(result), scratch.data()});
    std::vector<float> floats;
    for (const std::uint16_t bits : result) floats.push_back(load(BFloat16{bits}));
    CHECK(worst_error(floats, expected) < 4e-3);  // half a unit of 8 bits
  }
}

TEST_CASE("LengthMask writes what queries see", "[onednn][kernels]") {
  CachedCase one(5, 11, 4, 4, 1);
  one.kernel.ranges = {11, true, true, true, 4};
  one.set_positions(3);
  one.valid = {6};
  std::vector<std::uint8_t> mask(55, 7);
  LengthMask{5, one.kernel.ranges}.run({one.positions.data(), one.valid.data(), bytes(mask)});
  for (std::int64_t q = 0; q < 5; ++q) {
    for (std::int64_t k = 0; k < 11; ++k) {
      CHECK(mask[static_cast<std::size_t>(q * 11 + k)] == (one.sees(q, k) ? 1 : 0));
    }
  }
}

}  // namespace npu::onednn

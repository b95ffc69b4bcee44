// SPDX-License-Identifier: Apache-2.0
#include "quant/product_errors.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"

namespace npu {
namespace {

struct Operand {
  ChannelExtremes extremes;
  ChannelMoments moments;
};

/// Numbers of a (rows, channels) tensor, whose channel c lies within means[c] +- spreads[c].
std::vector<float> numbers(const std::vector<float>& means, const std::vector<float>& spreads,
                           std::size_t rows) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < means.size(); ++c) {
      values.push_back(means[c] + spreads[c] * uniform(random));
    }
  }
  return values;
}

Operand operand_of(const std::vector<float>& values, std::size_t channels) {
  Operand operand;
  const Shape shape{static_cast<std::int64_t>(values.size() / channels),
                    static_cast<std::int64_t>(channels)};
  add_moments(values, shape, 1, operand.moments);
  operand.extremes.axis = 1;
  operand.extremes.low.assign(channels, 0);
  operand.extremes.high.assign(channels, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = i % channels;
    operand.extremes.low[c] = std::min(operand.extremes.low[c], values[i]);
    operand.extremes.high[c] = std::max(operand.extremes.high[c], values[i]);
  }
  return operand;
}

/// (outputs, inputs), as a linear layer has it.
ProductWeight linear(const std::vector<float>& values, std::int64_t inputs) {
  ProductWeight weight;
  weight.values = values;
  weight.inputs = inputs;
  weight.outputs = static_cast<std::int64_t>(values.size()) / inputs;
  weight.output_step = inputs;
  weight.input_step = 1;
  return weight;
}

/// One kernel of `taps` for each channel.
ProductWeight depthwise(const std::vector<float>& values, std::int64_t taps) {
  ProductWeight weight;
  weight.values = values;
  weight.taps = taps;
  weight.outputs = static_cast<std::int64_t>(values.size()) / taps;
  weight.groups = weight.outputs;
  weight.inputs = 1;
  weight.output_step = taps;
  weight.input_step = taps;
  return weight;
}

float rounded(float value, float scale) { return std::nearbyint(value / scale) * scale; }

/// Power of the error of a linear layer in int8, whose operand is divided by factors, relative to
/// that of its result.
double measured_error(const std::vector<float>& values, const std::vector<float>& weights,
                      std::size_t channels, const std::vector<float>& factors) {
  float low = 0;
  float high = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    low = std::min(low, values[i] / factors[i % channels]);
    high = std::max(high, values[i] / factors[i % channels]);
  }
  const float step = (high - low) / 255;
  double error = 0;
  double signal = 0;
  for (std::size_t o = 0; o < weights.size() / channels; ++o) {
    float most = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      most = std::max(most, std::abs(weights[o * channels + c] * factors[c]));
    }
    for (std::size_t r = 0; r < values.size() / channels; ++r) {
      double exact = 0;
      double found = 0;
      for (std::size_t c = 0; c < channels; ++c) {
        const float x = values[r * channels + c];
        const float w = weights[o * channels + c];
        exact += double{x} * double{w};
        found +=
            double{rounded(x / factors[c], step)} * double{rounded(w * factors[c], most / 127)};
      }
      error += (found - exact) * (found - exact);
      signal += exact * exact;
    }
  }
  return error / signal;
}

std::vector<float> random_weights(std::size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("moments of channels, wherever they are", "[quant]") {
  ChannelMoments last;
  add_moments(std::vector<float>{1, 2, 3, 4}, {2, 2}, 1, last);
  CHECK(last.mean(0) == 2);
  CHECK(last.power(1) == 10);
  ChannelMoments front;
  add_moments(std::vector<float>{1, 2, 3, 4}, {1, 2, 2}, 1, front);
  add_moments(std::vector<float>{3, 4, INFINITY, 0}, {1, 2, 2}, 1, front);
  CHECK(front.mean(0) == 2.5);
  CHECK(front.power(1) == 25.0 / 4);
}

TEST_CASE("factors: a linear layer with outliers times 100 has less error", "[quant]") {
  const std::size_t channels = 32;
  std::vector<float> spreads(channels, 1);
  std::vector<float> weights = random_weights(16 * channels);
  for (const std::size_t outlier : {3, 17}) {
    spreads[outlier] = 100;
    for (std::size_t o = 0; o < 16; ++o) weights[o * channels + outlier] /= 100;
  }
  const std::vector<float> values = numbers(std::vector<float>(channels, 0), spreads, 200);
  const Operand operand = operand_of(values, channels);
  double gain = 0;
  const std::vector<float> factors =
      choose_factors({&operand.extremes, &operand.moments}, {linear(weights, channels)}, gain);
  REQUIRE(factors.size() == channels);
  CHECK(factors[3] / factors[0] >= 8);
  for (const float factor : factors) {
    int exponent = 0;
    CHECK(std::frexp(factor, &exponent) == 0.5F);
  }
  const double before = measured_error(values, weights, channels, std::vector<float>(channels, 1));
  const double after = measured_error(values, weights, channels, factors);
  CHECK(before / after > 50);
  // What is predicted is what happens, within a factor of 2.
  CHECK(before / after > gain / 2);
  CHECK(before / after < gain * 2);
}

TEST_CASE("factors: channels of a depthwise convolution become even", "[quant]") {
  const std::size_t channels = 24;
  std::vector<float> spreads;
  for (std::size_t c = 0; c < channels; ++c) {
    spreads.push_back(std::pow(300.0F, static_cast<float>(c) / (channels - 1)));
  }
  std::vector<float> weights = random_weights(channels * 9);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] /= spreads[i / 9];
  const Operand operand =
      operand_of(numbers(std::vector<float>(channels, 0), spreads, 100), channels);
  double gain = 0;
  const std::vector<float> factors =
      choose_factors({&operand.extremes, &operand.moments}, {depthwise(weights, 9)}, gain);
  REQUIRE(factors.size() == channels);
  CHECK(gain > 100);
  for (std::size_t c = 0; c < channels; ++c) {
    const float even = operand.extremes.high[c] / factors[c];
    CHECK(even / (operand.extremes.high[0] / factors[0]) < 2.5F);
    CHECK(even / (operand.extremes.high[0] / factors[0]) > 0.4F);
  }
}

TEST_CASE("factors: none for even channels, for zeros, and for what is not finite", "[quant]") {
  const std::vector<float> even(16, 1);
  const std::vector<float> weights(64, 0.5F);
  const Operand operand = operand_of(numbers(std::vector<float>(16, 0), even, 100), 16);
  double gain = 0;
  CHECK(choose_factors({&operand.extremes, &operand.moments}, {linear(weights, 16)}, gain).empty());
  CHECK(gain == 1);
  const std::vector<float> zeros(64, 0);
  CHECK(choose_factors({&operand.extremes, &operand.moments}, {linear(zeros, 16)}, gain).empty());
  std::vector<float> infinite = weights;
  infinite[5] = INFINITY;
  CHECK(
      choose_factors({&operand.extremes, &operand.moments}, {linear(infinite, 16)}, gain).empty());
  // A channel that is always 0 keeps its weights.
  std::vector<float> spreads(16, 1);
  spreads[0] = 0;
  spreads[1] = 200;
  const Operand dead = operand_of(numbers(std::vector<float>(16, 0), spreads, 100), 16);
  const std::vector<float> factors =
      choose_factors({&dead.extremes, &dead.moments}, {linear(weights, 16)}, gain);
  REQUIRE(factors.size() == 16);
  CHECK(factors[0] == 1);
}

TEST_CASE("bias correction: takes back what rounded weights add to the mean", "[quant]") {
  const std::size_t channels = 40;
  const std::vector<float> weights = random_weights(6 * channels);
  const Operand operand = operand_of(
      numbers(std::vector<float>(channels, 5), std::vector<float>(channels, 1), 64), channels);
  const ProductWeight weight = linear(weights, channels);
  std::vector<float> factors(channels, 1);
  for (std::size_t c = 0; c < channels; c += 3) factors[c] = 4;
  for (const std::vector<float>& used : {std::vector<float>{}, factors}) {
    const ChannelExtremes extremes = weight_extremes(weight, used);
    const std::vector<float> correction = bias_correction(weight, used, extremes, operand.moments);
    REQUIRE(correction.size() == 6);
    bool is_needed = false;
    for (std::size_t o = 0; o < 6; ++o) {
      const float scale = std::max(-extremes.low[o], extremes.high[o]) / 127;
      double shift = 0;
      for (std::size_t c = 0; c < channels; ++c) {
        const float factor = used.empty() ? 1 : used[c];
        const float w = weights[o * channels + c];
        shift += (double{rounded(w * factor, scale)} / double{factor} - double{w}) *
                 operand.moments.mean(c);
      }
      CHECK(double{correction[o]} == Approx(-shift).margin(1e-4));
      is_needed = is_needed || std::abs(shift) > 0.05;
    }
    CHECK(is_needed);
  }
}

}  // namespace npu

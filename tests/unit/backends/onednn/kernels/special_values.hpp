// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that tests of kernels take to show that a result depends on what its definition reads and
// on nothing else, and how such results are compared.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace npu::onednn::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kMost = std::numeric_limits<float>::max();

inline double at(const std::vector<float>& values, std::int64_t i) {
  return static_cast<double>(values[static_cast<std::size_t>(i)]);
}

inline std::vector<float> normal_floats(std::int64_t count, unsigned seed, float deviation = 1.0F) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution(0.0F, deviation);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = distribution(engine);
  return result;
}

/// Normal numbers, one of which is changed; numbers whose logarithms are normal; the largest ones.
struct Data {
  std::string name;
  std::vector<float> values;
};
inline std::vector<Data> special_data(std::int64_t count, std::int64_t changed) {
  std::vector<Data> result;
  for (const float value : {1e3F, -1e4F, 1e6F, 1e12F, 1e20F, -1e30F, kInfinity, -kInfinity, kNaN}) {
    result.push_back({std::to_string(value), normal_floats(count, 1)});
    result.back().values[static_cast<std::size_t>(changed)] = value;
  }
  result.push_back({"lognormal", normal_floats(count, 1, 3.0F)});
  for (float& value : result.back().values) value = std::exp(value);
  result.push_back({"3e38", std::vector<float>(static_cast<std::size_t>(count), 3e38F)});
  return result;
}

/// 1e-3 relative, 1e-4 absolute. `terms`: the sum of the magnitudes that a result is the sum of;
/// where it overflows float32, nothing is promised, and where it is large, `units` of 2^-24 of it
/// may be lost, 16 as by the definition in float32.
inline std::string first_fault(const std::vector<float>& actual,
                               const std::vector<double>& expected,
                               const std::vector<double>& terms = {}, double units = 16.0) {
  if (actual.size() != expected.size()) return "another number of results";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto found = static_cast<double>(actual[i]);
    const double wanted = expected[i];
    const double term = terms.empty() ? std::abs(wanted) : terms[i];
    const std::string text = "result " + std::to_string(i) + " is " + std::to_string(found) +
                             ", expected " + std::to_string(wanted);
    if (std::isnan(wanted)) {
      if (!std::isnan(found)) return text;
    } else if (std::isinf(wanted)) {
      if (found != wanted) return text;
    } else if (term <= kMost) {
      const double large = term > 100.0 ? units * 0x1p-24 * term : 0.0;
      if (!(std::abs(found - wanted) <= 1e-4 + 1e-3 * std::abs(wanted) + large)) return text;
    }
  }
  return "";
}

inline std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

inline std::vector<float> magnitudes(std::vector<float> values) {
  for (float& value : values) value = std::abs(value);
  return values;
}

inline std::vector<float> special_numbers() {
  std::vector<float> result{0.0F,   -0.0F,  1e-30F, -1e-30F, 1e3F,   -1e3F,  1e6F,      -1e6F,
                            1e20F,  -1e20F, 1e30F,  -1e30F,  3e38F,  -3e38F, kInfinity, -kInfinity,
                            kNaN,   15.0F,  -15.0F, 40.0F,   -40.0F, -87.0F, 88.0F,     90.0F,
                            -90.0F, 20.0F,  -20.0F, 0.5F,    -0.5F,  6.0F,   -6.0F};
  for (const float value : normal_floats(64, 7, 3.0F)) {
    result.push_back(value);
    result.push_back(std::exp(value));
  }
  return result;
}

}  // namespace npu::onednn::test

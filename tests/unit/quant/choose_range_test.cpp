// SPDX-License-Identifier: Apache-2.0
#include "quant/choose_range.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

const QuantForm kUInt8;
const QuantForm kInt8{DType::kInt8, -127, 127, true};

TensorRange tensor_of(const std::vector<float>& values) {
  TensorRange tensor;
  tensor.histogram.add(values);
  return tensor;
}

NumberRange range_by(const std::string& method, const std::vector<float>& values,
                     const QuantForm& form = kUInt8) {
  return choose_range(tensor_of(values), CalibrationMethod::parse(method), form);
}

/// The mean squared error of the numbers themselves.
double true_error(const std::vector<float>& values, const NumberRange& range,
                  const QuantForm& form = kUInt8) {
  const QuantParams params = quant_params(range, form);
  double sum = 0;
  for (const double value : values) {
    const double whole =
        std::clamp(std::nearbyint(value / params.scale) + static_cast<double>(params.zero_point),
                   static_cast<double>(form.low), static_cast<double>(form.high));
    const double back = (whole - static_cast<double>(params.zero_point)) * params.scale;
    sum += (back - value) * (back - value);
  }
  return sum / static_cast<double>(values.size());
}

/// Normal numbers, cut below 0 if asked, and a few outliers.
std::vector<float> activations(bool relu, float outlier) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(50'000);
  for (float& value : values) {
    value = normal(random);
    if (relu && value < 0) value = 0;
  }
  for (std::size_t i = 0; i < 5; ++i) values[i * 1000] = outlier;
  return values;
}

}  // namespace

TEST_CASE("calibration: names of methods", "[quant]") {
  for (const char* text : {"minmax", "average", "percentile=99.9", "entropy", "mse"}) {
    CHECK(CalibrationMethod::parse(text).text() == text);
  }
  CHECK(CalibrationMethod::parse("percentile").text() == "percentile=99.999");
  for (const char* text : {"", "kl", "minmax=1", "percentile=", "percentile=x", "percentile=101",
                           "percentile=nan", "percentile=99.9 ", "percentile=10"}) {
    INFO(text);
    CHECK_THROWS_AS(CalibrationMethod::parse(text), Error);
  }
}

TEST_CASE("calibration: scale and zero point make 0 exact", "[quant]") {
  // 2.55 in 255 steps of 0.01; -0.51 is 51 steps below 0.
  QuantParams params = quant_params({-0.51, 2.04}, kUInt8);
  CHECK(params.scale == double{0.01F});
  CHECK(params.zero_point == 51);
  params = quant_params({0, 2.55}, kUInt8);
  CHECK(params.zero_point == 0);
  params = quant_params({-1, 0}, kUInt8);
  CHECK(params.zero_point == 255);
  params = quant_params({-1, 2.54}, kInt8);
  CHECK(params.scale == double{0.02F});
  CHECK(params.zero_point == 0);
  params = quant_params({-1, 1.55}, {DType::kInt8, -128, 127, false});
  CHECK(params.zero_point == -28);  // 100 steps above -128
  params = quant_params({-1, 1}, {DType::kUInt8, 0, 255, true});
  CHECK(params.zero_point == 128);
  CHECK(quant_params({0, 0}, kUInt8).scale == 1);
  CHECK(quant_params({0, 1e-44}, kUInt8).scale > 0);
  CHECK(std::isfinite(quant_params({-3e38, 3e38}, kUInt8).scale));
}

TEST_CASE("calibration: extremes, averages and percentiles", "[quant]") {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i) / 1000);
  values.push_back(100);
  CHECK(range_by("minmax", values).high == 100);
  CHECK(range_by("minmax", values).low == 0);
  // 0.25 % of 1,001 numbers on each side: the outlier goes.
  CHECK(range_by("percentile=99.5", values).high < 1.1);
  CHECK(range_by("percentile=100", values).high == 100);
  TensorRange tensor = tensor_of(values);
  tensor.average_low = -5;
  tensor.average_high = 7;
  const NumberRange average = choose_range(tensor, CalibrationMethod::parse("average"), kUInt8);
  CHECK(average.low == 0);  // nothing below 0 was seen
  CHECK(average.high == 7);
}

TEST_CASE("calibration: half of the numbers are zeros", "[quant]") {
  std::vector<float> values(1000, 0.0F);
  for (std::size_t i = 0; i < 500; ++i) values[i] = 1.0F + static_cast<float>(i) / 500;
  // 5 % on each side of 1,000: zeros below, and 50 of the 500 numbers up to 2.
  const NumberRange range = range_by("percentile=90", values);
  CHECK(range.low == 0);
  CHECK(range.high == Approx(1.9).margin(0.01));
}

TEST_CASE("calibration: entropy searches its threshold", "[quant]") {
  for (const bool relu : {false, true}) {
    const std::vector<float> values = activations(relu, 400.0F);
    const NumberRange range = range_by("entropy", values);
    // Not the extremes, as with a single candidate; most of the normal numbers remain.
    CHECK(range.high < 200);
    CHECK(range.high > 2);
    CHECK((relu ? range.low == 0 : range.low < -2));
  }
  // Without outliers nothing is cut but some of the tail.
  CHECK(range_by("entropy", activations(false, 0.5F)).high > 2.5);
  // Fewer bins than levels: nothing to search.
  CHECK(range_by("entropy", {1.0F, 1.0F}).high == 1);
}

TEST_CASE("calibration: mse is at most the error of every other range", "[quant]") {
  for (const float outlier : {0.5F, 6.0F, 40.0F, 400.0F}) {
    for (const bool relu : {false, true}) {
      for (const QuantForm& form : {kUInt8, kInt8}) {
        const std::vector<float> values = activations(relu, outlier);
        const double least = true_error(values, range_by("mse", values, form), form);
        for (const char* method : {"minmax", "percentile=99.9", "entropy"}) {
          INFO(method << " outlier " << outlier << " relu " << relu);
          CHECK(least <= 1.01 * true_error(values, range_by(method, values, form), form));
        }
      }
    }
  }
}

TEST_CASE("calibration: every method takes every histogram", "[quant]") {
  for (const std::vector<float>& values :
       {std::vector<float>{}, std::vector<float>{0}, std::vector<float>{-1e-40F},
        std::vector<float>{3e38F}, std::vector<float>{-3e38F, 3e38F},
        std::vector<float>{5, 5, 5}}) {
    for (const char* method : {"minmax", "average", "percentile", "entropy", "mse"}) {
      const NumberRange range = range_by(method, values);
      CHECK(range.low <= 0);
      CHECK(range.high >= 0);
      CHECK(quant_params(range, kUInt8).scale > 0);
    }
  }
}

}  // namespace npu

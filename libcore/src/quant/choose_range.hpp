// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quant/quant_form.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// How the range of an activation is chosen from what it held.
struct CalibrationMethod {
  enum class Kind : std::uint8_t { kMinMax, kAverage, kPercentile, kEntropy, kMse };
  Kind kind = Kind::kMinMax;
  double percentile = 99.999;  ///< of the numbers that are kept, with kPercentile

  /// "minmax", "average", "percentile", "percentile=99.9", "entropy", "mse". Throws Error kUsage.
  static CalibrationMethod parse(const std::string& text);
  std::string text() const;
};

/// Round(x / scale) + zero_point; 0 is exactly zero_point.
struct QuantParams {
  double scale = 1;  ///< a float32 number
  std::int64_t zero_point = 0;
};

struct NumberRange {
  double low = 0;   ///< at most 0
  double high = 0;  ///< at least 0
};

/// The range to cut a tensor to; it contains 0. O(bins), of entropy and mse O(bins^2).
NumberRange choose_range(const TensorRange& tensor, const CalibrationMethod& method,
                         const QuantForm& form);

/// Scale and zero point for a range that contains 0.
QuantParams quant_params(const NumberRange& range, const QuantForm& form);

/// The mean squared error of numbers like those of a histogram.
double quantization_error(const Histogram& histogram, const QuantParams& params,
                          const QuantForm& form);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Element-wise comparison with the rule of numpy.isclose. O(elements).
#include "npu/runtime/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace npu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Comparer {
 public:
  Comparer(const Tolerance& tolerance, Comparison& result)
      : tolerance_(tolerance), result_(result) {}

  void add(std::int64_t index, double actual, double expected) {
    if (std::isnan(actual) && std::isnan(expected)) return;
    if (actual == expected) return;
    double difference = std::abs(actual - expected);
    if (std::isnan(difference)) difference = kInfinity;  // one NaN, or infinities of both signs
    const double bound = tolerance_.atol + tolerance_.rtol * std::abs(expected);
    const double excess = std::isfinite(bound) ? difference - bound : kInfinity;
    result_.max_abs = std::max(result_.max_abs, difference);
    if (expected != 0) result_.max_rel = std::max(result_.max_rel, difference / std::abs(expected));
    if (excess <= 0) return;
    ++result_.out_of_tolerance;
    result_.ok = false;
    if (result_.worst_index < 0 || excess > worst_excess_) {
      worst_excess_ = excess;
      result_.worst_index = index;
      result_.worst_actual = actual;
      result_.worst_expected = expected;
    }
  }

 private:
  const Tolerance& tolerance_;
  Comparison& result_;
  double worst_excess_ = 0;
};

double imaginary_part(const Tensor& tensor, std::int64_t index) {
  return tensor.dtype() == DType::kComplex64
             ? static_cast<double>(tensor.as<float>()[2 * index + 1])
             : tensor.as<double>()[2 * index + 1];
}

}  // namespace

Comparison compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance) {
  Comparison result;
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    result.ok = false;
    result.mismatch = "is " + std::string(dtype_name(actual.dtype())) + " " +
                      shape_text(actual.shape()) + ", expected " +
                      std::string(dtype_name(expected.dtype())) + " " +
                      shape_text(expected.shape());
    return result;
  }
  result.elements = actual.element_count();
  Tolerance used = tolerance;
  if (is_integer(actual.dtype())) used = {.rtol = 0, .atol = tolerance.steps};
  if (actual.dtype() == DType::kBool) used = {.rtol = 0, .atol = 0};
  Comparer comparer(used, result);
  const bool is_complex =
      actual.dtype() == DType::kComplex64 || actual.dtype() == DType::kComplex128;
  for (std::int64_t i = 0; i < result.elements; ++i) {
    if (actual.dtype() == DType::kInt64 &&
        actual.as<std::int64_t>()[i] != expected.as<std::int64_t>()[i] &&
        actual.value_as_double(i) == expected.value_as_double(i)) {
      // Neighbouring integers above 2^53 are equal as doubles.
      comparer.add(i, actual.value_as_double(i),
                   std::nextafter(expected.value_as_double(i), kInfinity));
      continue;
    }
    comparer.add(i, actual.value_as_double(i), expected.value_as_double(i));
    if (is_complex) comparer.add(i, imaginary_part(actual, i), imaginary_part(expected, i));
  }
  return result;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.bytes() == y.bytes() &&
           (x.bytes() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0);
  });
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  double difference = 0;
  double scale = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = actual.value_as_double(i);
    const double e = expected.value_as_double(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) {
      if (std::isfinite(e)) scale = std::max(scale, std::abs(e));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(e)) return kInfinity;
    difference = std::max(difference, std::abs(a - e));
    scale = std::max(scale, std::abs(e));
  }
  if (difference == 0) return 0;
  return scale == 0 ? kInfinity : difference / scale;
}

double root_mean_square(const Tensor& values) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    const double value = values.value_as_double(i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

double signal_to_noise_db(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return std::numeric_limits<double>::quiet_NaN();
  double signal = 0;
  double noise = 0;
  const auto add = [&](double a, double e) {
    if (a == e || (std::isnan(a) && std::isnan(e))) {
      if (std::isfinite(e)) signal += e * e;
      return;
    }
    signal += e * e;
    noise += (a - e) * (a - e);
  };
  const std::int64_t count = expected.element_count();
  if (actual.dtype() == DType::kFloat32 && expected.dtype() == DType::kFloat32) {
    const auto* a = actual.as<float>();
    const auto* e = expected.as<float>();
    for (std::int64_t i = 0; i < count; ++i) add(a[i], e[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      add(actual.value_as_double(i), expected.value_as_double(i));
    }
  }
  if (noise == 0) return kInfinity;
  if (!std::isfinite(noise) || !std::isfinite(signal)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Exact results with bounds on what a device may give instead. Each operation carries on what its
// operands are off by, as its derivative says, and adds what the device may round: terms times unit
// roundoff times magnitudes. Reordered and merged sums are covered, since a sum counts the
// magnitudes of its terms and not its own.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace npu::conformance {

/// How a device rounds.
struct Arithmetic {
  double unit = 0x1p-24;         ///< unit roundoff of sums, products and functions
  double stored = 0x1p-24;       ///< the same for what is stored
  double least = 0x1p-149;       ///< what an operation may lose besides
  double most = 0x1.fffffep127;  ///< the greatest number; above it anything may be there
  double ulps = 2;               ///< of a function, in its unit in the last place
  double formula = 0;            ///< times unit: of what cancels in a function's formula
  double tile_growth = 0;        ///< times unit: of convolutions that transform tiles
  double row_least = 0x1p-41;    ///< of a softmax, of the largest element of its row
};

/// Sets what the operators of this thread round by until it goes.
class Rounding {
 public:
  explicit Rounding(const Arithmetic& arithmetic);
  ~Rounding();
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;
  static const Arithmetic& now() noexcept;
  /// Arithmetic on integers.
  static Arithmetic exact();

 private:
  const Arithmetic* before_;
};

/// A number and by how much a device's may differ from it: not at all where it is infinite or NaN.
struct Bounded {
  double value = 0;
  double error = 0;

  bool is_known() const noexcept { return std::isfinite(error); }
};

inline Bounded anything() { return {0, std::numeric_limits<double>::infinity()}; }
/// With the error of one operation on `magnitude` added.
Bounded rounded(double value, double error, double magnitude);

Bounded operator+(Bounded a, Bounded b);
Bounded operator-(Bounded a);
Bounded operator-(Bounded a, Bounded b);
Bounded operator*(Bounded a, Bounded b);
Bounded operator/(Bounded a, Bounded b);
Bounded larger(Bounded a, Bounded b);
Bounded smaller(Bounded a, Bounded b);
/// `a` where the condition is not 0; either where it may be both.
Bounded select(Bounded condition, Bounded a, Bounded b);
/// The distance of numbers that a device with this unit roundoff has near `value`.
double spacing(double value, double unit);

/// How much a function of an inexact operand may vary: unknown where it may or may not be a number.
template <typename Function>
double variation(const Function& function, Bounded x) {
  const double value = function(x.value);
  double most = 0;
  if (x.error == 0) return 0;
  if (!x.is_known()) return anything().error;
  for (const double step : {-1.0, -0.5, 0.5, 1.0}) {
    const double other = function(x.value + step * x.error);
    if (other == value || (std::isnan(other) && std::isnan(value))) continue;
    if (!std::isfinite(other) || !std::isfinite(value)) return anything().error;
    most = std::max(most, std::abs(other - value));
  }
  // The function may have values in a part of the range that these places miss.
  const bool may_have_values = std::isnan(value) && std::isfinite(x.value);
  for (double step = x.error / 4; may_have_values && x.value + step != x.value; step /= 2) {
    if (!std::isnan(function(x.value - step)) || !std::isnan(function(x.value + step)))
      return anything().error;
  }
  return most;
}

/// Exact functions: steps, extrema, and moves of the sign.
template <typename Function>
Bounded exactly(const Function& function, Bounded x) {
  return {function(x.value), variation(function, x)};
}

/// The others: `cancelled` is the magnitude of what cancels in the formula that devices may use.
template <typename Function>
Bounded apply(const Function& function, Bounded x, double cancelled = 0) {
  const Arithmetic& by = Rounding::now();
  Bounded y = exactly(function, x);
  if (!y.is_known() || !std::isfinite(y.value)) return y;
  y.error += by.ulps * spacing(y.value, by.unit) + by.least;
  if (by.formula > 0) y.error += by.formula * by.unit * (cancelled + std::abs(y.value));
  if (std::abs(y.value) + y.error > by.most) y.error = anything().error;
  return y;
}

/// A sum in any order and with any partial sums.
class Sum {
 public:
  void add(Bounded term) { add(term.value, term.error, std::abs(term.value)); }
  void add(double value, double error, double magnitude) {
    value_ += value;
    error_ += error;
    magnitude_ += magnitude;
    finite_ += std::isfinite(magnitude) ? magnitude : 0;
    ++terms_;
  }
  /// `a` times `b`, rounded or not.
  void add_product(Bounded a, Bounded b);
  Bounded result() const;

 private:
  double value_ = 0;
  double error_ = 0;
  double magnitude_ = 0;
  double finite_ = 0;  ///< magnitude of the finite terms
  std::int64_t terms_ = 0;
};

}  // namespace npu::conformance

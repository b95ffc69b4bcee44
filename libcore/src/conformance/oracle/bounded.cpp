// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/bounded.hpp"

#include <algorithm>

namespace npu::conformance {
namespace {

const Arithmetic kFloat32;
thread_local const Arithmetic* current = &kFloat32;

bool may_be_zero(Bounded x) { return std::abs(x.value) <= x.error; }

}  // namespace

Rounding::Rounding(const Arithmetic& arithmetic) : before_(current) { current = &arithmetic; }
Rounding::~Rounding() { current = before_; }
const Arithmetic& Rounding::now() noexcept { return *current; }

Arithmetic Rounding::exact() {
  Arithmetic exact;
  exact.unit = exact.stored = exact.least = exact.ulps = 0;
  exact.most = std::numeric_limits<double>::infinity();
  return exact;
}

Bounded rounded(double value, double error, double magnitude) {
  const Arithmetic& by = *current;
  if (!(error <= by.most)) return {value, anything().error};
  if (!std::isfinite(value)) return {value, 0};
  error += by.unit * magnitude + by.least;
  return {value, magnitude + error > by.most ? anything().error : error};
}

Bounded operator+(Bounded a, Bounded b) {
  return rounded(a.value + b.value, a.error + b.error, std::abs(a.value) + std::abs(b.value));
}
Bounded operator-(Bounded a) { return {-a.value, a.error}; }
Bounded operator-(Bounded a, Bounded b) { return a + -b; }

Bounded operator*(Bounded a, Bounded b) {
  const double value = a.value * b.value;
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) {
    // Infinity times what may have either sign is infinity of either sign, or no number.
    const bool is_open = (std::isinf(a.value) && b.error > 0 && may_be_zero(b)) ||
                         (std::isinf(b.value) && a.error > 0 && may_be_zero(a));
    return {value, is_open || !a.is_known() || !b.is_known() ? anything().error : 0};
  }
  const double error =
      std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
  return rounded(value, error, std::abs(value));
}

Bounded operator/(Bounded a, Bounded b) {
  const double value = a.value / b.value;
  if (!a.is_known() || !b.is_known()) return anything();
  if (may_be_zero(b)) return {value, a.error + b.error > 0 ? anything().error : 0};
  if (!std::isfinite(value) || std::isinf(b.value)) return {value, 0};
  const double error = (a.error + std::abs(value) * b.error) / (std::abs(b.value) - b.error);
  // Twice: as a product with a reciprocal.
  return rounded(value, error + current->unit * std::abs(value), std::abs(value));
}

Bounded larger(Bounded a, Bounded b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return {a.value + b.value, a.error + b.error};
  return {std::max(a.value, b.value), std::max(a.error, b.error)};
}
Bounded smaller(Bounded a, Bounded b) { return -larger(-a, -b); }

Bounded select(Bounded condition, Bounded a, Bounded b) {
  Bounded chosen = condition.value != 0 ? a : b;
  if (condition.error == 0) return chosen;
  const double distance = std::abs(a.value - b.value) + std::max(a.error, b.error);
  chosen.error = std::isnan(distance) ? anything().error : distance;
  return chosen;
}

double spacing(double value, double unit) {
  if (value == 0) return 0;
  return std::ldexp(2 * unit, std::ilogb(value));
}

void Sum::add_product(Bounded a, Bounded b) {
  const Bounded product = a * b;
  add(product.value, product.error, std::abs(product.value));
}

Bounded Sum::result() const {
  if (!std::isfinite(value_)) {
    // The sum of the others may be the opposite infinity.
    const bool is_open = !std::isfinite(error_) || finite_ + error_ > current->most;
    return {value_, is_open ? anything().error : 0};
  }
  if (magnitude_ + error_ > current->most) return anything();  // as a part of the sum may be
  return rounded(value_, error_ + current->unit * magnitude_ * static_cast<double>(terms_),
                 magnitude_);
}

}  // namespace npu::conformance

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Logarithms of vectors of floats, as elementwise_functions.hpp says.

#include <cstring>

#include "kernels/base/exponentials.hpp"

namespace npu::onednn {

template <typename V>
[[gnu::always_inline]] inline V log_vector(V x) {
  using Int = typename IntegersOf<V>::Type;
  const Int is_small = x < 0x1p-126F;
  const V normal = is_small ? x * 0x1p23F : x;
  Int bits;
  std::memcpy(&bits, &normal, sizeof bits);
  bits = bits & 0x7FFFFFFF;  // with the sign it would overflow
  // 2^n (1 + f), where 1 + f is from sqrt(1/2) to sqrt(2).
  const Int exponent = (bits - 0x3F3504F3) >> 23;
  const Int mantissa = bits - (exponent << 23);
  V f;
  std::memcpy(&f, &mantissa, sizeof f);
  f = f - 1.0F;
  const V n = __builtin_convertvector(exponent - (is_small & 23), V);
  V p = V{} - 7.640789449e-2F;
  p = p * f + 1.276687086e-1F;
  p = p * f - 1.316039711e-1F;
  p = p * f + 1.420101076e-1F;
  p = p * f - 1.662324518e-1F;
  p = p * f + 2.000125796e-1F;
  p = p * f - 2.500082552e-1F;
  p = p * f + 3.333333135e-1F;
  const V square = f * f;
  V rest = p * (square * f) - n * 2.12194440e-4F;
  rest = rest - square * 0.5F;
  const V infinity = V{} + __builtin_inff();
  V y = (f + rest) + n * 0.693359375F;
  y = x < infinity ? y : x;
  y = x > 0.0F || x != x ? y : V{} + __builtin_nanf("");
  return x == 0.0F ? -infinity : y;
}

/// more + log(1 + exp(-|x|)).
template <typename V>
[[gnu::always_inline]] inline V plus_log_of_one_and_exp(V more, V x) {
  const V magnitude = magnitude_of(x);
  const Reduced<V> of = reduced(-(magnitude > 104.0F ? V{} + 104.0F : magnitude));
  const V less_one = exp_less_one(of.rest);
  const V sum = less_one + 1.0F;
  const V t = scaled(sum, of.exponent);
  const V lost = scaled(less_one - (sum - 1.0F), of.exponent);  // of e^-|x| by the sum
  V p = V{} + 2.084607724e-3F;
  p = p * t - 1.369191706e-2F;
  p = p * t + 4.211520031e-2F;
  p = p * t - 8.323923498e-2F;
  p = p * t + 1.247953996e-1F;
  p = p * t - 1.613517255e-1F;
  p = p * t + 1.98996231e-1F;
  p = p * t - 2.498886436e-1F;
  p = p * t + 3.333271444e-1F;
  p = p * t - 4.999998808e-1F;
  return t + (p * (t * t) + lost * (1.0F - t * 0.5F) + more);
}

}  // namespace npu::onednn

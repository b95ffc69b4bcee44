// SPDX-License-Identifier: Apache-2.0
// Sums of floats in float64, of eight elements at a time, in an order that depends on no
// instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/base/elements.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

using Double8 = double __attribute__((vector_size(64)));

template <typename T>
[[gnu::always_inline]] inline Double8 load_doubles(const T* from) {
  return __builtin_convertvector(load_as_floats<Float8>(from), Double8);
}

/// Adds up x, or the squares of what x is above or below the mean.
template <bool kSquares>
[[gnu::always_inline]] inline Double8 summand(Double8 x, Double8 mean) {
  if constexpr (!kSquares) return x;
  const Double8 difference = x - mean;
  return difference * difference;
}

[[gnu::always_inline]] inline double sum_of_doubles(Double8 value) {
  double parts[8];
  std::memcpy(parts, &value, sizeof value);
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
         ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

template <bool kSquares, typename T>
[[gnu::always_inline]] inline double sum_of_run(const T* from, std::int64_t count, double mean) {
  constexpr std::int64_t kUnroll = 4;
  Double8 sums[kUnroll]{};
  const Double8 means = Double8{} + mean;
  std::int64_t i = 0;
  for (; i + 8 * kUnroll <= count; i += 8 * kUnroll) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < kUnroll; ++j) {
      sums[j] += summand<kSquares>(load_doubles(from + i + 8 * j), means);
    }
  }
  double sum = sum_of_doubles((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < count; ++i) {
    const double x = static_cast<double>(load(from[i])) - (kSquares ? mean : 0.0);
    sum += kSquares ? x * x : x;
  }
  return sum;
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The matrices of Winograd convolution, made at compile time by Toom and Cook's algorithm, and the
// transforms with them. Points come in pairs a and -a beside 0 and infinity, so that half of each
// transform is shared, and are near 1, which keeps rounding errors low.

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/base/simd.hpp"

namespace npu::onednn::winograd {

/// The finite points for a number of products: those among small fractions that gave the least
/// errors of results for random operands.
constexpr std::array<double, 9> points_for(int products) {
  if (products <= 4) return {0.0, 1.0, -1.0};
  if (products <= 6) return {0.0, 0.75, -0.75, 1.5, -1.5};
  if (products <= 8) return {0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0};
  return {0.0, 0.5, -0.5, 0.75, -0.75, 1.25, -1.25, 2.0, -2.0};
}

/// A filter along one dimension.
template <int kTileOf, int kTapsOf, int kStrideOf = 1>
struct Axis {
  static constexpr int kTile = kTileOf;
  static constexpr int kTaps = kTapsOf;
  static constexpr int kStride = kStrideOf;
  /// Source elements, and products.
  static constexpr int kCount = kStride * (kTile - 1) + kTaps;
  /// Transformed taps; products behind the last one have its weight, too.
  static constexpr int kWeights = kStride == 1 ? kCount : kTile + 2;
};

/// result = A^T ((G g) * (B^T d)); the last point is infinity.
template <typename Axis>
struct Matrices {
  static constexpr int kTile = Axis::kTile;
  static constexpr int kTaps = Axis::kTaps;
  static constexpr int kCount = Axis::kCount;
  static_assert(Axis::kStride == 1);
  double output[kTile][kCount]{};
  double weight[kCount][kTaps]{};
  double input[kCount][kCount]{};

  constexpr Matrices() {
    constexpr auto kPoints = points_for(kCount);
    constexpr int kFinite = kCount - 1;
    for (int j = 0; j < kFinite; ++j) {
      double scale = 1.0;
      for (int l = 0; l < kFinite; ++l) scale *= l == j ? 1.0 : kPoints[j] - kPoints[l];
      double power = 1.0;
      for (int i = 0; i < kTile; ++i, power *= kPoints[j]) output[i][j] = power;
      power = 1.0;
      for (int i = 0; i < kTaps; ++i, power *= kPoints[j]) weight[j][i] = power / scale;
      multiply_out(input[j], kFinite, j);
    }
    output[kTile - 1][kFinite] = 1.0;
    weight[kFinite][kTaps - 1] = 1.0;
    multiply_out(input[kFinite], kFinite, -1);
  }

 private:
  /// The coefficients of the product of x - point over all points but one.
  static constexpr void multiply_out(double* coefficients, int finite, int without) {
    constexpr auto kPoints = points_for(kCount);
    coefficients[0] = 1.0;
    int degree = 0;
    for (int l = 0; l < finite; ++l) {
      if (l == without) continue;
      for (int i = ++degree; i > 0; --i) {
        coefficients[i] = coefficients[i - 1] - kPoints[l] * coefficients[i];
      }
      coefficients[0] *= -kPoints[l];
    }
  }
};

/// With stride 2, F(2, 2) of the even taps and elements with the points 0, 1 and infinity, and by
/// the definition the odd tap: five products where the definition has six.
template <>
struct Matrices<Axis<2, 3, 2>> {
  double output[2][5]{{1, 1, 0, 1, 0}, {0, 1, 1, 0, 1}};
  double weight[5][3]{{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}, {0, 1, 0}};
  double input[5][5]{
      {1, 0, -1, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, -1, 0, 1}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}};
};

template <typename Axis>
constexpr Matrices<Axis> kMatrices{};

/// By how much a filter enlarges rounding errors of its products on their way to a result,
/// root mean square, relative to the result: 1 for the definition. For even operands; squared for a
/// tile in two dimensions.
template <typename Axis>
double amplification() {
  constexpr int kCount = Axis::kCount;
  if constexpr (kCount == 1) {
    return 1.0;
  } else {
    const auto& matrices = kMatrices<Axis>;
    double sum = 0.0;
    for (int j = 0; j < kCount; ++j) {
      double weight = 0.0;
      double input = 0.0;
      double output = 0.0;
      for (const double each : matrices.weight[j]) weight += each * each;
      for (const double each : matrices.input[j]) input += each * each;
      for (const auto& row : matrices.output) output += row[j] * row[j];
      sum += weight * input * output;
    }
    return std::sqrt(sum / (Axis::kTile * Axis::kTaps));
  }
}

template <typename Body, int... kIndex>
[[gnu::always_inline]] inline void unroll(std::integer_sequence<int, kIndex...> /*indices*/,
                                          Body& body) {
  (body(std::integral_constant<int, kIndex>{}), ...);
}
template <int kCount, typename Body>
[[gnu::always_inline]] inline void unroll(Body body) {
  unroll(std::make_integer_sequence<int, kCount>{}, body);
}

/// to[i * to_step] = sum over j of B^T[i][j] * from[j * from_step].
template <typename Axis, typename V>
[[gnu::always_inline]] inline void transform_source(const V* from, std::int64_t from_step, V* to,
                                                    std::int64_t to_step) {
  constexpr int kCount = Axis::kCount;
  if constexpr (kCount == 1) {
    *to = *from;
  } else if constexpr (Axis::kStride == 2) {
    const V middle = from[2 * from_step];
    to[0] = from[0] - middle;
    to[to_step] = middle;
    to[2 * to_step] = from[4 * from_step] - middle;
    to[3 * to_step] = from[from_step];
    to[4 * to_step] = from[3 * from_step];
  } else {
    constexpr int kLast = kCount - 1;
    V d[kCount];
    unroll<kCount>([&](auto i) __attribute__((always_inline)) { d[i] = from[i * from_step]; });
    // All coefficients of the first row belong to even powers, of the last one to odd powers.
    const auto sum = [&](auto row, auto parity) __attribute__((always_inline)) {
      V result{};
      unroll<kCount>([&](auto i) __attribute__((always_inline)) {
        constexpr double kFactor = kMatrices<Axis>.input[row][i];
        if constexpr (i % 2 == parity && kFactor == 1.0) {
          result += d[i];
        } else if constexpr (i % 2 == parity && kFactor != 0.0) {
          result += d[i] * static_cast<float>(kFactor);
        }
      });
      return result;
    };
    constexpr std::integral_constant<int, 0> kEven;
    constexpr std::integral_constant<int, 1> kOdd;
    to[0] = sum(kEven, kEven);
    to[kLast * to_step] =
        sum(std::integral_constant<int, kLast>{}, std::integral_constant<int, kLast % 2>{});
    unroll<(kCount - 2) / 2>([&](auto pair) __attribute__((always_inline)) {
      constexpr std::integral_constant<int, 1 + 2 * pair> kRow;
      const V even = sum(kRow, kEven);
      const V odd = sum(kRow, kOdd);
      to[kRow * to_step] = even + odd;
      to[(kRow + 1) * to_step] = even - odd;
    });
  }
}

/// to[i * to_step] = sum over j of A^T[i][j] * from[j * from_step].
template <typename Axis, typename V>
[[gnu::always_inline]] inline void transform_result(const V* from, std::int64_t from_step, V* to,
                                                    std::int64_t to_step) {
  constexpr int kTile = Axis::kTile;
  constexpr int kCount = Axis::kCount;
  if constexpr (kCount == 1) {
    *to = *from;
  } else if constexpr (Axis::kStride == 2) {
    const V shared = from[from_step];
    to[0] = from[0] + shared + from[3 * from_step];
    to[to_step] = from[2 * from_step] + shared + from[4 * from_step];
  } else {
    constexpr int kPairs = (kCount - 2) / 2;
    V sums[kPairs];
    V differences[kPairs];
    unroll<kPairs>([&](auto pair) __attribute__((always_inline)) {
      const V plus = from[(1 + 2 * pair) * from_step];
      const V minus = from[(2 + 2 * pair) * from_step];
      sums[pair] = plus + minus;
      differences[pair] = plus - minus;
    });
    unroll<kTile>([&](auto i) __attribute__((always_inline)) {
      V result{};
      if constexpr (i == 0) result = from[0];
      if constexpr (i == kTile - 1) result += from[(kCount - 1) * from_step];
      unroll<kPairs>([&](auto pair) __attribute__((always_inline)) {
        constexpr double kFactor = kMatrices<Axis>.output[i][1 + 2 * pair];
        const V& term = i % 2 == 0 ? sums[pair] : differences[pair];
        if constexpr (kFactor == 1.0) {
          result += term;
        } else {
          result += term * static_cast<float>(kFactor);
        }
      });
      to[i * to_step] = result;
    });
  }
}

}  // namespace npu::onednn::winograd

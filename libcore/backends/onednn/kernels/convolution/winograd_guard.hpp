// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a tile may be transformed. A transform mixes all elements of a tile, so that the rounding
// error of a result grows with elements that it does not read, and an infinity or a NaN spoils all
// results of the tile. So energies (sums of squares over channels) of the cells of a tile are added
// up beside the transform, from vectors that are in registers anyway: cells are so small that the
// receptive field of every result has one in it, and if each cell has its share of the tile's
// energy, so has every receptive field.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/base/simd.hpp"

namespace npu::onednn::winograd {

/// The first half of each run of 2 * kStep elements of a, then of b; or the second.
template <int kStep, int kHalf, typename V, int... kIndex>
[[gnu::always_inline]] inline V halves(V a, V b,
                                       std::integer_sequence<int, kIndex...> /*indices*/) {
  return __builtin_shufflevector(a, b, (kIndex / kStep * 2 * kStep + kIndex % kStep + kHalf)...);
}

/// Element i is the sum of the elements of values[i], 0 behind them.
template <int kStep, typename V, int kCount>
[[gnu::always_inline]] inline V sums_in_runs(const V (&values)[kCount]) {
  constexpr std::make_integer_sequence<int, kLanesOf<V>> kAll;
  constexpr int kPairs = (kCount + 1) / 2;
  V merged[kPairs];
#pragma GCC unroll 8
  for (int i = 0; i < kPairs; ++i) {
    const V second = 2 * i + 1 < kCount ? values[2 * i + 1] : V{};
    merged[i] = halves<kStep, 0>(values[2 * i], second, kAll) +
                halves<kStep, kStep>(values[2 * i], second, kAll);
  }
  if constexpr (kStep == 1) {
    return merged[0];
  } else {
    return sums_in_runs<kStep / 2>(merged);
  }
}
template <typename V, int kCount>
[[gnu::always_inline]] inline V sums_of_elements(const V (&values)[kCount]) {
  static_assert(kCount <= kLanesOf<V>);
  return sums_in_runs<kLanesOf<V> / 2>(values);
}

/// The elements kStep further on, around the end.
template <int kStep, typename V, int... kIndex>
[[gnu::always_inline]] inline V rotated(V value,
                                        std::integer_sequence<int, kIndex...> /*indices*/) {
  return __builtin_shufflevector(value, value, ((kIndex + kStep) % kLanesOf<V>)...);
}

/// All elements combined, in all elements.
template <int kStep, typename V, typename Combine>
[[gnu::always_inline]] inline V combined_everywhere(V value, Combine combine) {
  constexpr std::make_integer_sequence<int, kLanesOf<V>> kAll;
  value = combine(value, rotated<kStep>(value, kAll));
  if constexpr (kStep == 1) {
    return value;
  } else {
    return combined_everywhere<kStep / 2>(value, combine);
  }
}

template <typename V>
[[gnu::always_inline]] inline V sum_everywhere(V value) {
  return combined_everywhere<kLanesOf<V> / 2>(
      value, [](V a, V b) __attribute__((always_inline)) { return a + b; });
}

template <typename V>
[[gnu::always_inline]] inline float smallest_element(V value) {
  return combined_everywhere<kLanesOf<V> / 2>(
      value, [](V a, V b) __attribute__((always_inline)) { return a < b ? a : b; })[0];
}

/// Of the magnitude of a tile's cells, root mean square, to that of the least of them.
constexpr float kMaxRatio = 4.0F;

/// `Down` and `Across` are the filters along a column and a row.
template <typename V, typename Down, typename Across>
class Guard {
 public:
  static constexpr int kCountY = Down::kCount;
  static constexpr int kCountX = Across::kCount;

  /// A vector of channels of a column of the tile.
  [[gnu::always_inline]] void add(int column, const V (&elements)[kCountY]) {
#pragma GCC unroll 10
    for (int r = 0; r < kCountY; ++r) {
      energies_[r / kHeight * kAcross + column / kWidth] += elements[r] * elements[r];
    }
  }

  /// For a tile that begins at (y, x) of a source of `extent`; a cell that lies outside is no cell.
  /// `is_wide`: the padding is more than half of the kernel, so that a receptive field may have no
  /// cell inside; a tile with a cell outside is then not even. `limit`: of the whole energy.
  [[gnu::always_inline]] bool is_even(std::int64_t y, std::int64_t x,
                                      const std::int64_t (&extent)[2], bool is_wide,
                                      float limit) const {
    V sums[kVectors];
    sum_cells(sums);
    V total = sums[0];
#pragma GCC unroll 4
    for (int i = 1; i < kVectors; ++i) total += sums[i];
    const V all = sum_everywhere(total);
    const bool all_exist = y + kHeight > 0 && y + std::int64_t{kDown - 1} * kHeight < extent[0] &&
                           x + kWidth > 0 && x + std::int64_t{kAcross - 1} * kWidth < extent[1];
    if (!all_exist) {
      for (int i = 0; i < kDown; ++i) {
        const std::int64_t top = y + std::int64_t{i} * kHeight;
        const bool has_rows = top + kHeight > 0 && top < extent[0];
        for (int j = 0; j < kAcross; ++j) {
          const std::int64_t left = x + std::int64_t{j} * kWidth;
          const bool exists = has_rows && left + kWidth > 0 && left < extent[1];
          const int cell = i * kAcross + j;
          if (!exists) sums[cell / kLanes][cell % kLanes] = all[0];
        }
      }
    }
#pragma GCC unroll 16
    for (int i = kCells; i < kVectors * kLanes; ++i) sums[i / kLanes][i % kLanes] = all[0];
    float least = smallest_element(sums[0]);
#pragma GCC unroll 4
    for (int i = 1; i < kVectors; ++i) least = std::min(least, smallest_element(sums[i]));
    // Neither holds for NaN in any of them: it is in all of them.
    return (all_exist || !is_wide) && all[0] <= limit &&
           least * (kMaxRatio * kMaxRatio * kCells) >= all[0];
  }

 private:
  static constexpr int kHeight = (Down::kTaps + 1) / 2;  // of a cell
  static constexpr int kWidth = (Across::kTaps + 1) / 2;
  static constexpr int kDown = (kCountY + kHeight - 1) / kHeight;
  static constexpr int kAcross = (kCountX + kWidth - 1) / kWidth;

  static constexpr int kCells = kDown * kAcross;
  static constexpr int kLanes = kLanesOf<V>;
  static constexpr int kVectors = (kCells + kLanes - 1) / kLanes;  // for a number for each cell

  /// Element i of `sums` gets what belongs to cell i, from kFirst on; elements behind the last one
  /// get 0.
  template <int kFirst = 0>
  [[gnu::always_inline]] void sum_cells(V (&sums)[kVectors]) const {
    if constexpr (kVectors == 1) {
      sums[0] = sums_of_elements(energies_);
    } else {
      constexpr int kCount = std::min(kLanes, kCells - kFirst);
      V cells[kCount];
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) cells[i] = energies_[kFirst + i];
      sums[kFirst / kLanes] = sums_of_elements(cells);
      if constexpr (kFirst + kLanes < kCells) sum_cells<kFirst + kLanes>(sums);
    }
  }

  V energies_[kCells]{};
};

}  // namespace npu::onednn::winograd

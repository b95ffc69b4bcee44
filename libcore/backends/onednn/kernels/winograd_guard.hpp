// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a tile may be transformed. A transform mixes all elements of a tile, so that the rounding
// error of a result grows with elements that it does not read, and an infinity or a NaN spoils all
// results of the tile. So energies (sums of squares over channels) of the cells of a tile are added
// up beside the transform, from vectors that are in registers anyway: cells are so small that the
// receptive field of every result has one in it, and if each cell has its share of the tile's
// energy, so has every receptive field.

#include <cstdint>
#include <utility>

#include "kernels/simd.hpp"

namespace npu::onednn::winograd {

/// The first half of each run of 2 * kStep elements of a, then of b; or the second.
template <int kStep, int kHalf, int... kIndex>
[[gnu::always_inline]] inline Float16 halves(Float16 a, Float16 b,
                                             std::integer_sequence<int, kIndex...> /*indices*/) {
  return __builtin_shufflevector(a, b, (kIndex / kStep * 2 * kStep + kIndex % kStep + kHalf)...);
}

/// Element i is the sum of the elements of values[i], 0 behind them.
template <int kStep, int kCount>
[[gnu::always_inline]] inline Float16 sums_in_runs(const Float16 (&values)[kCount]) {
  constexpr std::make_integer_sequence<int, 16> kAll;
  constexpr int kPairs = (kCount + 1) / 2;
  Float16 merged[kPairs];
#pragma GCC unroll 8
  for (int i = 0; i < kPairs; ++i) {
    const Float16 second = 2 * i + 1 < kCount ? values[2 * i + 1] : Float16{};
    merged[i] = halves<kStep, 0>(values[2 * i], second, kAll) +
                halves<kStep, kStep>(values[2 * i], second, kAll);
  }
  if constexpr (kStep == 1) {
    return merged[0];
  } else {
    return sums_in_runs<kStep / 2>(merged);
  }
}
template <int kCount>
[[gnu::always_inline]] inline Float16 sums_of_elements(const Float16 (&values)[kCount]) {
  static_assert(kCount <= 16);
  return sums_in_runs<8>(values);
}

/// The elements kStep further on, around the end.
template <int kStep, int... kIndex>
[[gnu::always_inline]] inline Float16 rotated(Float16 value,
                                              std::integer_sequence<int, kIndex...> /*indices*/) {
  return __builtin_shufflevector(value, value, ((kIndex + kStep) % 16)...);
}

/// The sum of all elements, in all elements.
[[gnu::always_inline]] inline Float16 sum_everywhere(Float16 value) {
  constexpr std::make_integer_sequence<int, 16> kAll;
  value += rotated<8>(value, kAll);
  value += rotated<4>(value, kAll);
  value += rotated<2>(value, kAll);
  return value + rotated<1>(value, kAll);
}

[[gnu::always_inline]] inline float smallest_element(Float16 value) {
  constexpr std::make_integer_sequence<int, 16> kAll;
  const auto least = [](Float16 a, Float16 b) __attribute__((always_inline)) {
    return a < b ? a : b;
  };
  value = least(value, rotated<8>(value, kAll));
  value = least(value, rotated<4>(value, kAll));
  value = least(value, rotated<2>(value, kAll));
  return least(value, rotated<1>(value, kAll))[0];
}

/// Of the magnitude of a tile to that of a cell.
constexpr float kMaxRatio = 16.0F;

template <int kTileY, int kTapsY, int kTileX, int kTapsX>
class Guard {
 public:
  static constexpr int kCountY = kTileY + kTapsY - 1;
  static constexpr int kCountX = kTileX + kTapsX - 1;

  /// 16 channels of a column of the tile.
  [[gnu::always_inline]] void add(int column, const Float16 (&elements)[kCountY]) {
#pragma GCC unroll 10
    for (int r = 0; r < kCountY; ++r) {
      energies_[r / kHeight * kAcross + column / kWidth] += elements[r] * elements[r];
    }
  }

  /// For a tile that begins at (y, x) of a source of `extent`; a cell that lies outside is no cell.
  /// `limit`: of the whole energy.
  [[gnu::always_inline]] bool is_even(std::int64_t y, std::int64_t x,
                                      const std::int64_t (&extent)[2], float limit) const {
    Float16 sums = sums_of_elements(energies_);
    const Float16 all = sum_everywhere(sums);
    const bool all_exist = y + kHeight > 0 && y + (kDown - 1) * kHeight < extent[0] &&
                           x + kWidth > 0 && x + (kAcross - 1) * kWidth < extent[1];
    if (!all_exist) {
      for (int i = 0; i < kDown; ++i) {
        const std::int64_t top = y + std::int64_t{i} * kHeight;
        const bool has_rows = top + kHeight > 0 && top < extent[0];
        for (int j = 0; j < kAcross; ++j) {
          const std::int64_t left = x + std::int64_t{j} * kWidth;
          const bool exists = has_rows && left + kWidth > 0 && left < extent[1];
          if (!exists) sums[i * kAcross + j] = all[0];
        }
      }
    }
#pragma GCC unroll 16
    for (int i = kCells; i < 16; ++i) sums[i] = all[0];
    const float least = smallest_element(sums);
    // Neither holds for NaN in any of them: it is in all of them.
    return all[0] <= limit && least * (kMaxRatio * kMaxRatio) >= all[0];
  }

 private:
  static constexpr int kHeight = (kTapsY + 1) / 2;  // of a cell
  static constexpr int kWidth = (kTapsX + 1) / 2;
  static constexpr int kDown = (kCountY + kHeight - 1) / kHeight;
  static constexpr int kAcross = (kCountX + kWidth - 1) / kWidth;

  static constexpr int kCells = kDown * kAcross;

  Float16 energies_[kCells]{};
};

}  // namespace npu::onednn::winograd

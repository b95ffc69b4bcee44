// SPDX-License-Identifier: Apache-2.0
#pragma once

// The innermost loop of the kernels that multiply matrices: up to 14 rows by 2 vectors of results
// stay in the 32 registers of AVX-512.

#include <array>
#include <cstdint>
#include <utility>

#include "vector_math.hpp"

namespace npu::onednn {

constexpr std::int64_t kTileRows = 14;

#if NPU_HAS_X86
/// target[row, 0..16 * vectors) = sum over k of left[row, k] * right[k, 0..16 * vectors).
struct TileProduct {
  const float* left;   ///< [blocks, `block` / 16 >= rows, 16]: 16 elements of k for each row
  std::int64_t block;  ///< floats from one block to the next
  std::int64_t blocks;
  const float* right;       ///< [16 * blocks, 16 * vectors]
  const float* subtrahend;  ///< of a difference: taken off right; its elements are stored,
  float* difference;        ///< which may be either of the two
  const float* ahead;       ///< 16 * blocks lines of a cache to fetch into the second one
  float* target;            ///< rows are 32 floats apart
};

using TileProductFunction = void (*)(const TileProduct&);

template <int kRows, int kVectors, bool kIsDifference>
NPU_TARGET_AVX512 void tile_product(const TileProduct& call) {
  using V = Float16;
  constexpr std::int64_t kLanes = 16;
  // Sources of differences are read once and come from the second cache.
  constexpr std::int64_t kDistance = std::int64_t{8} * kVectors * kLanes;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  const float* left = call.left;
  const float* right = call.right;
  const float* subtrahend = call.subtrahend;
  float* difference = call.difference;
  const float* ahead = call.ahead;
  for (std::int64_t block = 0; block < call.blocks; ++block, left += call.block) {
#pragma GCC unroll 1
    for (int k = 0; k < kLanes; ++k) {
      if (k < kRows) __builtin_prefetch(left + call.block + k * kLanes, 0, 3);
      __builtin_prefetch(ahead, 0, 2);
      ahead += kLanes;
      V factor[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        factor[j] = load_vector<V>(right + j * kLanes);
        if constexpr (kIsDifference) {
          __builtin_prefetch(right + kDistance + j * kLanes, 0, 3);
          __builtin_prefetch(subtrahend + kDistance + j * kLanes, 0, 3);
          factor[j] -= load_vector<V>(subtrahend + j * kLanes);
          store_vector(difference + j * kLanes, factor[j]);
        }
      }
      right += kVectors * kLanes;
      if constexpr (kIsDifference) {
        subtrahend += kVectors * kLanes;
        difference += kVectors * kLanes;
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const float each = left[i * kLanes + k];
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sums[i][j] += each * factor[j];
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      store_vector(call.target + (2 * i + j) * kLanes, sums[i][j]);
    }
  }
}

template <int kVectors, bool kIsDifference, int... kRows>
constexpr std::array<TileProductFunction, sizeof...(kRows)> tile_product_table(
    std::integer_sequence<int, kRows...> /*rows*/) {
  return {tile_product<kRows + 1, kVectors, kIsDifference>...};
}

/// The kernel for 1 to kTileRows rows is element rows - 1.
template <int kVectors, bool kIsDifference = false>
inline constexpr auto kTileProducts =
    tile_product_table<kVectors, kIsDifference>(std::make_integer_sequence<int, kTileRows>{});
#endif

}  // namespace npu::onednn

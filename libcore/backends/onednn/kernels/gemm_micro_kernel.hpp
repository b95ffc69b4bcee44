// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of the kernels that multiply matrices. With AVX-512 up to 14 rows by 2 vectors
// of results stay in its 32 registers; with AVX2 such a tile is computed in parts of up to 6 rows
// by 2 vectors of 8, which fit into 16.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/simd.hpp"

namespace npu::onednn {

constexpr std::int64_t kTileRows = 14;

/// target[row, 0..16 * vectors) = sum over k of left[row, k] * right[k, 0..16 * vectors).
struct GemmTile {
  const float* left;   ///< [blocks, `block` / 16 >= rows, 16]: 16 elements of k for each row
  std::int64_t block;  ///< floats from one block to the next
  std::int64_t blocks;
  const float* right;       ///< [16 * blocks, 16 * vectors]
  const float* subtrahend;  ///< of a micro-kernel for differences: right - subtrahend is multiplied
  float* difference;        ///< and stored here, which may be either of the two
  const float* ahead;       ///< 16 * blocks lines of a cache to fetch into L2
  float* target;            ///< rows are 32 floats apart
  bool adds = false;        ///< to what target holds
};

using GemmMicroKernel = void (*)(const GemmTile&);

template <int kRows, int kVectors, bool kIsDifference>
NPU_TARGET_AVX512 void gemm_micro_kernel_avx512(const GemmTile& call) {
  using V = Float16;
  constexpr std::int64_t kLanes = 16;
  // Sources of differences are read once and come from L2.
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
  if (call.adds) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        sums[i][j] += load_vector<V>(call.target + (2 * i + j) * kLanes);
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

/// Rows [first, first + kRows) of 16 columns from `column` on, of `width` columns of right.
template <int kRows>
[[gnu::always_inline]] inline void multiply_part(const GemmTile& call, std::int64_t first,
                                                 std::int64_t column, std::int64_t width) {
  using V = Float8;
  constexpr std::int64_t kLanes = 16;
  V sums[kRows][2];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) sums[i][0] = sums[i][1] = V{};
  const float* left = call.left + first * kLanes;
  const float* right = call.right + column;
  for (std::int64_t block = 0; block < call.blocks; ++block, left += call.block) {
#pragma GCC unroll 2
    for (int k = 0; k < kLanes; ++k, right += width) {
      const V factors[2]{load_vector<V>(right), load_vector<V>(right + 8)};
#pragma GCC unroll 6
      for (int i = 0; i < kRows; ++i) {
        const float each = left[i * kLanes + k];
        sums[i][0] += each * factors[0];
        sums[i][1] += each * factors[1];
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    float* to = call.target + (first + i) * 2 * kLanes + column;
    if (call.adds) {
      sums[i][0] += load_vector<V>(to);
      sums[i][1] += load_vector<V>(to + 8);
    }
    store_vector(to, sums[i][0]);
    store_vector(to + 8, sums[i][1]);
  }
}

template <int kRows, int kVectors, bool kIsDifference>
NPU_TARGET_AVX2 void gemm_micro_kernel_avx2(const GemmTile& tile) {
  constexpr std::int64_t kWidth = std::int64_t{kVectors} * 16;
  GemmTile call = tile;
  if constexpr (kIsDifference) {
    for (std::int64_t i = 0; i < call.blocks * 16 * kWidth; ++i) {
      call.difference[i] = call.right[i] - call.subtrahend[i];
    }
    call.right = call.difference;
  }
  // Parts of 6 rows, or of 5 where that leaves no small one.
  constexpr int kParts = (kRows + 5) / 6;
  constexpr int kPart = (kRows + kParts - 1) / kParts;
  constexpr int kLast = kRows - (kParts - 1) * kPart;
  for (std::int64_t column = 0; column < kWidth; column += 16) {
    for (std::int64_t part = 0; part + 1 < kParts; ++part) {
      multiply_part<kPart>(call, part * kPart, column, kWidth);
    }
    multiply_part<kLast>(call, (kParts - 1) * kPart, column, kWidth);
  }
}

template <bool kAvx512, int kVectors, bool kIsDifference, int... kRows>
constexpr std::array<GemmMicroKernel, sizeof...(kRows)> gemm_micro_kernels(
    std::integer_sequence<int, kRows...> /*rows*/) {
  if constexpr (kAvx512) return {gemm_micro_kernel_avx512<kRows + 1, kVectors, kIsDifference>...};
  return {gemm_micro_kernel_avx2<kRows + 1, kVectors, kIsDifference>...};
}

/// The micro-kernel for 1 to kTileRows rows is element rows - 1. `kAvx512`: else AVX2.
template <bool kAvx512, int kVectors, bool kIsDifference = false>
inline constexpr auto kGemmMicroKernels = gemm_micro_kernels<kAvx512, kVectors, kIsDifference>(
    std::make_integer_sequence<int, kTileRows>{});

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of the kernels that multiply matrices: 14 rows by 2 vectors of results stay in
// the 32 registers of AVX-512 and of NEON, 6 by 2 in the 16 of AVX2.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/simd.hpp"

namespace npu::onednn {

/// Rows of a tile.
template <typename V>
inline constexpr std::int64_t kTileRowsOf = sizeof(V) == sizeof(Float8) ? 6 : 14;
constexpr std::int64_t tile_rows(VectorIsa isa) {
  return isa == VectorIsa::kAvx512 ? kTileRowsOf<Float16> : kTileRowsOf<NarrowFloats>;
}
inline constexpr std::int64_t kLine = 16;  ///< floats of a line of a cache

/// target[row, 0..lanes * vectors) = sum over k of left[row, k] * right[k, 0..lanes * vectors).
struct GemmTile {
  const float* left;   ///< [blocks, `block` / lanes >= rows, lanes]: elements of k for each row
  std::int64_t block;  ///< floats from one block to the next
  std::int64_t blocks;
  const float* right;       ///< [lanes * blocks, lanes * vectors]
  const float* subtrahend;  ///< of a micro-kernel for differences: right - subtrahend is multiplied
  float* difference;        ///< and stored here, which may be either of the two
  const float* ahead;       ///< lanes * blocks lines of a cache to fetch into L2
  float* target;            ///< rows are 2 * lanes floats apart
  bool adds = false;        ///< to what target holds
};

using GemmMicroKernel = void (*)(const GemmTile&);

/// sum += each * factor. With 16 registers GCC makes the first or the second factor the sum here
/// and there, and then moves registers, which takes as many of a core's slots as a multiplication.
template <typename V>
[[gnu::always_inline]] inline void multiply_add(V& sum, V each, V factor) {
#if NPU_HAS_X86 && !defined(__clang__)  // clang 14 asks a template for the registers of its caller
  if constexpr (!kIsWide<V>) {
    asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(each), "x"(factor));
  } else
#endif
  {
    sum += each * factor;
  }
}

template <typename V, int kRows, int kVectors, bool kIsDifference>
[[gnu::always_inline]] inline void multiply_tile(const GemmTile& call) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
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
  const auto step = [&](int k) __attribute__((always_inline)) {
    if (k * kLanes % kLine == 0 && k < kRows) {
      __builtin_prefetch(left + call.block + k * kLanes, 0, 3);
    }
    __builtin_prefetch(ahead + k * kLine, 0, 2);
    V factor[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      const std::int64_t at = (k * kVectors + j) * kLanes;
      factor[j] = load_vector<V>(right + at);
      if constexpr (kIsDifference) {
        if (at % kLine == 0) {
          __builtin_prefetch(right + kDistance + at, 0, 3);
          __builtin_prefetch(subtrahend + kDistance + at, 0, 3);
        }
        factor[j] -= load_vector<V>(subtrahend + at);
        store_vector(difference + at, factor[j]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V each = left[i * kLanes + k] - V{};
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) multiply_add(sums[i][j], each, factor[j]);
    }
  };
  for (std::int64_t block = 0; block < call.blocks; ++block) {
    if constexpr (kIsWide<V>) {
#pragma GCC unroll 1
      for (int k = 0; k < kLanes; ++k) step(k);
    } else {
#pragma GCC unroll 8
      for (int k = 0; k < kLanes; ++k) step(k);
    }
    left += call.block;
    right += kLanes * kVectors * kLanes;
    ahead += kLanes * kLine;
    if constexpr (kIsDifference) {
      subtrahend += kLanes * kVectors * kLanes;
      difference += kLanes * kVectors * kLanes;
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

template <int kRows, int kVectors, bool kIsDifference>
NPU_TARGET_AVX512 void gemm_micro_kernel_avx512(const GemmTile& call) {
  multiply_tile<Float16, kRows, kVectors, kIsDifference>(call);
}
template <int kRows, int kVectors, bool kIsDifference>
NPU_TARGET_AVX2 void gemm_micro_kernel_avx2(const GemmTile& call) {
  multiply_tile<NarrowFloats, kRows, kVectors, kIsDifference>(call);
}

template <typename V, int kVectors, bool kIsDifference, int... kRows>
constexpr std::array<GemmMicroKernel, sizeof...(kRows)> gemm_micro_kernels(
    std::integer_sequence<int, kRows...> /*rows*/) {
  if constexpr (kIsWide<V>) {
    return {gemm_micro_kernel_avx512<kRows + 1, kVectors, kIsDifference>...};
  } else {
    return {gemm_micro_kernel_avx2<kRows + 1, kVectors, kIsDifference>...};
  }
}

/// The micro-kernel for 1 to kTileRowsOf<V> rows is element rows - 1.
template <typename V, int kVectors, bool kIsDifference = false>
inline constexpr auto kGemmMicroKernels = gemm_micro_kernels<V, kVectors, kIsDifference>(
    std::make_integer_sequence<int, kTileRowsOf<V>>{});

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of the kernels that multiply matrices: 14 rows by 2 vectors of results stay in
// the 32 registers of AVX-512 and of NEON, 6 by 2 in the 16 of AVX2.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// Rows of a tile.
template <typename V>
inline constexpr std::int64_t kTileRowsOf = sizeof(V) == sizeof(Float8) ? 6 : 14;
constexpr std::int64_t tile_rows(VectorIsa isa) {
  return isa == VectorIsa::kAvx512 ? kTileRowsOf<Float16> : kTileRowsOf<NarrowFloats>;
}
inline constexpr std::int64_t kLine = 16;  ///< floats of a line of a cache

/// What a micro-kernel multiplies with. All but floats as they are it makes first, and stores them
/// as floats for those that read the same.
enum class Right : std::uint8_t {
  kFloats,
  kDifference,  ///< right - subtrahend
  kHalves,      ///< `narrow`, numbers of float16
  kBFloats,     ///< and of bfloat16
};

/// target[row, 0..lanes * vectors) = sum over k of left[row, k] * right[k, 0..lanes * vectors).
struct GemmTile {
  const float* left;   ///< [blocks, `block` / lanes >= rows, lanes]: elements of k for each row
  std::int64_t block;  ///< floats from one block to the next
  std::int64_t blocks;
  const float* right;       ///< [lanes * blocks, lanes * vectors]
  const float* subtrahend;  ///< lies as `right` does
  float* made;              ///< where what is made is stored, which may be either of the two
  const float* ahead;       ///< lanes * blocks lines of a cache to fetch into L2
  float* target;            ///< rows are 2 * lanes floats apart
  bool adds = false;        ///< to what target holds
  const std::uint16_t* narrow = nullptr;  ///< in the place of `right`
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

/// Where a vector of what is multiplied with lies, as in GemmTile.
struct RightPlace {
  const float* right;
  const float* subtrahend;
  const std::uint16_t* narrow;
  float* made;
};

/// That vector. What it is made of is read once and comes from L2: it is fetched `distance`
/// elements ahead, at the beginning of a line.
template <typename V, Right kRight>
[[gnu::always_inline]] inline V load_right(const RightPlace& from, std::int64_t at,
                                           std::int64_t distance) {
  if constexpr (kRight == Right::kFloats) return load_vector<V>(from.right + at);
  V value;
  if constexpr (kRight == Right::kDifference) {
    if (at % kLine == 0) {
      __builtin_prefetch(from.right + distance + at, 0, 3);
      __builtin_prefetch(from.subtrahend + distance + at, 0, 3);
    }
    value = load_vector<V>(from.right + at) - load_vector<V>(from.subtrahend + at);
  } else {
    if (at % kLine == 0) __builtin_prefetch(from.narrow + distance + at, 0, 3);
    value = kRight == Right::kHalves ? load_halves<V, true>(from.narrow + at)
                                     : load_as_floats<V>(from.narrow + at);
  }
  store_vector(from.made + at, value);
  return value;
}

template <typename V, int kRows, int kVectors, Right kRight>
[[gnu::always_inline]] inline void multiply_tile(const GemmTile& call) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  constexpr std::int64_t kBlock = kLanes * kVectors * kLanes;  // of what is multiplied with
  // A few rows wait for what they are multiplied with, which is read once and from memory.
  constexpr bool kReadsOnce = kRows <= 4 && kRight == Right::kFloats;
  constexpr std::int64_t kPage = 1024;
  const float* left = call.left;
  const float* right = call.right;
  const float* subtrahend = call.subtrahend;
  const std::uint16_t* narrow = call.narrow;
  float* made = call.made;
  const float* ahead = call.ahead;
  const auto step = [&](int k) __attribute__((always_inline)) {
    if (k * kLanes % kLine == 0 && k < kRows) {
      __builtin_prefetch(left + call.block + k * kLanes, 0, 3);
    }
    if constexpr (!kReadsOnce) __builtin_prefetch(ahead + k * kLine, 0, 2);
    V factor[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      const std::int64_t at = (k * kVectors + j) * kLanes;
      if constexpr (kReadsOnce) {
        if (at % kLine == 0) __builtin_prefetch(right + at + kPage, 0, 3);
      }
      factor[j] = load_right<V, kRight>({right, subtrahend, narrow, made}, at, kBlock / kLanes * 8);
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
    ahead += kLanes * kLine;
    if constexpr (kRight == Right::kFloats || kRight == Right::kDifference) {
      right += kBlock;
    } else {
      narrow += kBlock;
    }
    if constexpr (kRight == Right::kDifference) subtrahend += kBlock;
    if constexpr (kRight != Right::kFloats) made += kBlock;
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

template <int kRows, int kVectors, Right kRight>
NPU_TARGET_AVX512 void gemm_micro_kernel_avx512(const GemmTile& call) {
  multiply_tile<Float16, kRows, kVectors, kRight>(call);
}
template <int kRows, int kVectors, Right kRight>
NPU_TARGET_AVX2 void gemm_micro_kernel_avx2(const GemmTile& call) {
  multiply_tile<NarrowFloats, kRows, kVectors, kRight>(call);
}

template <typename V, int kVectors, Right kRight, int... kRows>
constexpr std::array<GemmMicroKernel, sizeof...(kRows)> gemm_micro_kernels(
    std::integer_sequence<int, kRows...> /*rows*/) {
  if constexpr (kIsWide<V>) {
    return {gemm_micro_kernel_avx512<kRows + 1, kVectors, kRight>...};
  } else {
    return {gemm_micro_kernel_avx2<kRows + 1, kVectors, kRight>...};
  }
}

/// The micro-kernel for 1 to kTileRowsOf<V> rows is element rows - 1.
template <typename V, int kVectors, Right kRight = Right::kFloats>
inline constexpr auto kGemmMicroKernels =
    gemm_micro_kernels<V, kVectors, kRight>(std::make_integer_sequence<int, kTileRowsOf<V>>{});

}  // namespace npu::onednn

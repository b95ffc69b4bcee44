// SPDX-License-Identifier: Apache-2.0
#pragma once

// The micro-kernel of products in float16: up to 14 rows by 32 columns.

#include <array>
#include <cstdint>

#include "kernels/base/simd.hpp"

namespace npu::onednn {

inline constexpr std::int64_t kHalfTileRows = 14;
inline constexpr std::int64_t kHalfColumns = 32;  ///< numbers of float16 of a vector of 512 bits

/// target[row, 0..32) = sum over k of left[row, k] * right[k, 0..32), every HalfGemm::kRun products
/// of a row added up in float16, those sums in float32.
struct HalfTile {
  const std::uint16_t* left;   ///< [blocks, rows, 16]: elements of k for each row
  const std::uint16_t* right;  ///< [16 * blocks, 32]
  std::int64_t blocks;
  float* target;  ///< [rows, 32]
};

/// For 1 to 14 rows.
using HalfMicroKernels = std::array<void (*)(const HalfTile&), kHalfTileRows>;

/// Those of AVX512-FP16, or those for any CPU with AVX2, which round each sum.
const HalfMicroKernels& half_micro_kernels(bool is_native);

}  // namespace npu::onednn

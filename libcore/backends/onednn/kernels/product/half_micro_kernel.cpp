// SPDX-License-Identifier: Apache-2.0
// Tiles of products in float16. O(rows * blocks * 16) multiply-adds of vectors.
#include "kernels/product/half_micro_kernel.hpp"

#include <algorithm>
#include <utility>

#include "kernels/product/half_gemm.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kBlock = 16;  // of k
constexpr std::int64_t kRunBlocks = HalfGemm::kRun / kBlock;

/// The same as AVX512-FP16 does with one rounding: a product of two float16 numbers is a float, and
/// so is nearly every sum with a third.
template <int kRows>
NPU_TARGET_AVX2 void multiply_rounding(const HalfTile& call) {
  using V = NarrowFloats;
  constexpr std::int64_t kLanes = kLanesOf<V>;
  std::uint16_t bits[kLanes];
  for (int row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < kHalfColumns; column += kLanes) {
      V all{};
      for (std::int64_t run = 0; run < call.blocks; run += kRunBlocks) {
        const std::int64_t last = std::min(call.blocks, run + kRunBlocks) * kBlock;
        V sum{};
        for (std::int64_t k = run * kBlock; k < last; ++k) {
          const std::uint16_t* left = call.left + (k / kBlock * kRows + row) * kBlock + k % kBlock;
          for (std::uint16_t& each : bits) each = *left;
          const V factor = load_halves<V, true>(bits);
          sum += factor * load_halves<V, true>(call.right + k * kHalfColumns + column);
          store_halves(bits, sum);
          sum = load_halves<V, true>(bits);
        }
        all += sum;
      }
      store_vector(call.target + row * kHalfColumns + column, all);
    }
  }
}

#if NPU_HAS_FLOAT16
using Halves = _Float16 __attribute__((vector_size(64)));

using HalvesOfOne = _Float16 __attribute__((vector_size(32)));

/// Adds sums to floats.
[[gnu::always_inline]] NPU_TARGET_FLOAT16 inline void add_widened(HalvesOfOne sums, bool is_first,
                                                                  float* to) {
  const Float16 floats = _mm512_cvtxph_ps(sums);
  store_vector(to, is_first ? floats : floats + load_vector<Float16>(to));
}

template <int kRows>
NPU_TARGET_FLOAT16 void multiply_native(const HalfTile& call) {
  const void* left_bits = call.left;
  const auto* left = static_cast<const _Float16*>(left_bits);
  const std::uint16_t* right = call.right;
  for (std::int64_t run = 0; run < call.blocks; run += kRunBlocks) {
    Halves sums[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) sums[i] = Halves{};
    const std::int64_t blocks = std::min(call.blocks - run, kRunBlocks);
    for (std::int64_t block = 0; block < blocks; ++block, left += kRows * kBlock) {
#pragma GCC unroll 1
      for (int k = 0; k < kBlock; ++k, right += kHalfColumns) {
        Halves factor;
        std::memcpy(&factor, right, sizeof factor);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) sums[i] += left[i * kBlock + k] * factor;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      float* to = call.target + i * kHalfColumns;
      add_widened(__builtin_shufflevector(sums[i], sums[i], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                          12, 13, 14, 15),
                  run == 0, to);
      add_widened(__builtin_shufflevector(sums[i], sums[i], 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                          26, 27, 28, 29, 30, 31),
                  run == 0, to + kHalfColumns / 2);
    }
  }
}

template <int... kRows>
constexpr HalfMicroKernels native_kernels(std::integer_sequence<int, kRows...> /*rows*/) {
  return {multiply_native<kRows + 1>...};
}
#endif

template <int... kRows>
constexpr HalfMicroKernels rounding_kernels(std::integer_sequence<int, kRows...> /*rows*/) {
  return {multiply_rounding<kRows + 1>...};
}

}  // namespace

const HalfMicroKernels& half_micro_kernels([[maybe_unused]] bool is_native) {
  constexpr std::make_integer_sequence<int, kHalfTileRows> kRowCounts;
#if NPU_HAS_FLOAT16
  static constexpr HalfMicroKernels kNative = native_kernels(kRowCounts);
  if (is_native) return kNative;
#endif
  static constexpr HalfMicroKernels kRounding = rounding_kernels(kRowCounts);
  return kRounding;
}

}  // namespace npu::onednn

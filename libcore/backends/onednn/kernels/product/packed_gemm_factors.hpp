// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a PackedGemm multiplies its rows with: panels of weights, differences of them, and weights
// of 16 bits, tile after tile of rows.

#include <algorithm>
#include <cstdint>

#include "kernels/base/gemm_micro_kernel.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn::packed_gemm {

/// Rows of a task as tiles of up to `most`.
struct Tiles {
  std::int64_t rows;
  std::int64_t most;
  std::int64_t count = ceil_div(rows, most);
  std::int64_t begin(std::int64_t tile) const { return rows * tile / count; }
  std::int64_t size(std::int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

/// Right factors: a panel, the difference of two of them, or one of 16 bits; the last two are made
/// by the first tile.
struct Factor {
  const float* panel;
  const float* subtrahend = nullptr;
  float* made = nullptr;
  const std::uint16_t* narrow = nullptr;
};

/// Memory that is to be fetched, in floats.
struct Ahead {
  const float* begin;
  std::int64_t floats;
};

/// Multiplies, and has weights fetched while it does.
template <typename V>
class Multiplier {
 public:
  static constexpr std::int64_t kLanes = kLanesOf<V>;

  Multiplier(const Tiles& tiles, std::int64_t length, DType weights, const Ahead& ahead)
      : tiles_(tiles),
        length_(length),
        weights_(weights),
        ahead_(ahead.begin),
        ahead_end_(ahead.begin + ahead.floats) {}

  /// target[row, 0..lanes * vectors) = left * right; `left` is a copy, of which rows behind `rows`
  /// are left out.
  void run(const float* left, const Factor& right, std::int64_t vectors, std::int64_t rows,
           float* target) {
    Factor factor = right;
    for (std::int64_t tile = 0; tile < tiles_.count; ++tile) {
      const std::int64_t begin = tiles_.begin(tile);
      const std::int64_t count = std::min(tiles_.size(tile), rows - begin);
      if (count <= 0) break;
      const auto kernel = static_cast<std::size_t>(count - 1);
      const float* ahead = factor.panel;
      if (ahead_ < ahead_end_) {
        ahead = ahead_;
        ahead_ += length_ * kLine;
      }
      const auto function =
          factor.subtrahend != nullptr ? kGemmMicroKernels<V, 2, Right::kDifference>[kernel]
          : factor.narrow != nullptr
              ? (weights_ == DType::kFloat16 ? kGemmMicroKernels<V, 2, Right::kHalves>[kernel]
                                             : kGemmMicroKernels<V, 2, Right::kBFloats>[kernel])
          : vectors == 2 ? kGemmMicroKernels<V, 2>[kernel]
                         : kGemmMicroKernels<V, 1>[kernel];
      function({left + begin * length_, tiles_.size(tile) * kLanes, length_ / kLanes, factor.panel,
                factor.subtrahend, factor.made, ahead, target + begin * 2 * kLanes, false,
                factor.narrow});
      if (factor.made != nullptr) factor = {factor.made};
    }
  }

 private:
  Tiles tiles_;
  std::int64_t length_;
  DType weights_;
  const float* ahead_;
  const float* ahead_end_;
};

/// The weights of a unit.
struct Weights {
  const float* floats;
  const std::uint16_t* narrow;  ///< in their place
  float* panels;                ///< where these become floats

  /// From element `at` on, for the product that reads them first.
  Factor first(std::int64_t at) const {
    if (narrow == nullptr) return {floats + at};
    return {panels + at, nullptr, panels + at, narrow + at};
  }
  /// For those behind it.
  const float* panel(std::int64_t at) const { return (narrow == nullptr ? floats : panels) + at; }
};

/// Makes floats of `count` weights from element `at` on, where no product reads them first.
template <typename V>
NPU_INLINE void widen(const Weights& weights, DType type, std::int64_t at, std::int64_t count) {
  if (weights.narrow == nullptr) return;
  const std::uint16_t* from = weights.narrow + at;
  float* to = weights.panels + at;
  if (type == DType::kFloat16) {
    for (std::int64_t i = 0; i < count; i += kLanesOf<V>) {
      store_vector(to + i, load_halves<V, true>(from + i));
    }
    return;
  }
  for (std::int64_t i = 0; i < count; i += kLanesOf<V>) {
    store_vector(to + i, load_as_floats<V>(from + i));
  }
}

}  // namespace npu::onednn::packed_gemm

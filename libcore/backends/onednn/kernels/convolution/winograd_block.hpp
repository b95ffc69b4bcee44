// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the Winograd kernel and its computation by the definition share: a unit of work, and where
// things lie in weights and targets.

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/base/simd.hpp"
#include "kernels/convolution/winograd.hpp"

namespace npu::onednn::winograd {

/// Target channels at a time, and how often there are so many.
inline std::int64_t columns_at_once(const Winograd& call) { return 2 * lanes_of(call.isa); }
inline std::int64_t columns_of(const Winograd& call) {
  return ceil_div(call.target_channels, columns_at_once(call));
}
constexpr std::int64_t kMostPixels = 112;  // computed together by the definition
constexpr std::int64_t kMostSummed = Winograd::kMostSummed;

/// What one unit of work is.
struct Block {
  const Winograd* call;
  const float* source;
  const float* weight;
  const float* bias;
  const float* const* operands;
  float* target;
  float* scratch;
  std::int64_t first_tile;
  std::int64_t last_tile;
  std::int64_t first_column;  ///< in steps of columns_at_once
  std::int64_t last_column;
};

/// The transformed weights, behind which lie those of the definition.
inline std::int64_t transformed_floats(const Winograd& call) {
  return call.filter.all_weights() * call.source_channels * call.target_channels;
}

/// Where the weights say how large the energy of a tile may be; behind it is a number for each
/// columns_at_once target channels, not zero where their weights are uneven.
inline std::int64_t limit_place(const Winograd& call) {
  return transformed_floats(call) +
         call.filter.all_taps() * call.source_channels * call.target_channels;
}

/// Whether the weights of some target channels are to be computed by the definition.
[[gnu::always_inline]] inline bool is_uneven_column(const Block& block, std::int64_t column) {
  return block.weight[limit_place(*block.call) + 1 + column] != 0.0F;
}

/// Where a tile lies.
struct Place {
  std::int64_t image;
  std::int64_t y;  ///< of its first result
  std::int64_t x;
};

[[gnu::always_inline]] inline Place place_of(const Winograd& call, std::int64_t tile) {
  const std::int64_t across = ceil_div(call.target_extent[1], call.filter.tile[1]);
  const std::int64_t down = ceil_div(call.target_extent[0], call.filter.tile[0]);
  return {tile / (across * down), tile / across % down * call.filter.tile[0],
          tile % across * call.filter.tile[1]};
}

/// Which of the planes of a tensor with so many blocks of channels is an image's first; its next
/// one is `frames` further on.
[[gnu::always_inline]] inline std::int64_t first_plane(const Winograd& call, std::int64_t blocks,
                                                       std::int64_t image) {
  return image / call.frames * blocks * call.frames + image % call.frames;
}

/// All results of some tiles, for those columns of a block whose weights are uneven or for all, by
/// the definition. They use the block's scratch memory.
void define_avx2(const Block& block, std::span<const std::int32_t> tiles, bool of_uneven_columns);
void define_avx512(const Block& block, std::span<const std::int32_t> tiles, bool of_uneven_columns);

}  // namespace npu::onednn::winograd

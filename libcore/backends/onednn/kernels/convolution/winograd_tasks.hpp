// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a Winograd convolution is cut: how many tiles are transformed before weights are read, what
// threads share, and what scratch memory that takes.

#include <algorithm>
#include <cstdint>

#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/convolution/winograd_block.hpp"

namespace npu::onednn::winograd {

/// What the L2 of CPUs of a level holds, in floats.
struct Cache {
  std::int64_t tiles;    ///< of transformed sources and products
  std::int64_t weights;  ///< that stay in it, too
};
inline constexpr Cache kCacheAvx512{std::int64_t{160} * 1024,
                                    std::int64_t{128} * 1024};  // of 1 MiB
inline constexpr Cache kCacheAvx2{std::int64_t{64} * 1024,
                                  std::int64_t{64} * 1024};  // of 512 KiB or less
inline constexpr std::int64_t kLargeWeights =
    std::int64_t{3} * 1024 * 1024;  // that come from memory
inline constexpr std::int64_t kPadding =
    16;  // a multiple of 4 KiB apart they would share places in L1
inline constexpr std::int64_t kMostTiles = 432;  // that fit into the cache, of the smallest ones
inline constexpr std::int64_t kFewTiles = 14;    // beside weights in the L2
inline constexpr std::int64_t kLeastTiles = 4;   // for which it is worth to read all weights
inline constexpr std::int64_t kLeastTilesOfLarge = 12;
inline constexpr std::int64_t kMostUneven = 512;  // that wait

/// Of the transformed sources of so many tiles for one of the products.
inline std::int64_t product_floats(const Winograd& call, std::int64_t tiles) {
  return tiles * call.source_channels + kPadding;
}

inline std::int64_t tile_floats(const Winograd& call) {
  return call.filter.products() * (call.source_channels + kPadding + columns_at_once(call));
}

/// Tiles that are transformed before weights are read, where it can be full micro-kernels. Where
/// weights come from the L2, few of them leave room for the weights; where they come from memory,
/// many of them wait for it less often.
inline std::int64_t tiles_at_once(const Winograd& call) {
  const Cache& cache = call.isa == VectorIsa::kAvx512 ? kCacheAvx512 : kCacheAvx2;
  const std::int64_t weights = transformed_floats(call);
  const std::int64_t least = weights > kLargeWeights ? kLeastTilesOfLarge : kLeastTiles;
  const std::int64_t most = std::clamp(cache.tiles / tile_floats(call), least, kMostTiles);
  const std::int64_t tiles = std::min(most, weights <= cache.weights ? kFewTiles : call.tiles());
  const std::int64_t rows = tile_rows(call.isa);
  return tiles < rows ? tiles : tiles / rows * rows;
}

inline std::int64_t scratch_floats(const Winograd& call) {
  const std::int64_t by_definition =
      kMostPixels * (kMostSummed + columns_of(call) * columns_at_once(call));
  return std::max(tile_floats(call) * tiles_at_once(call), by_definition);
}

/// Whether more than half of a receptive field may lie outside.
inline bool has_wide_padding(const Winograd& call) {
  for (int i = 0; i < 2; ++i) {
    const std::int64_t half = (call.filter.taps[i] - 1) / 2;
    const std::int64_t all = call.filter.stride * (call.target_extent[i] - 1) +
                             call.filter.taps[i] - call.source_extent[i];
    if (call.pad[i] > half || all - call.pad[i] > half) return true;
  }
  return false;
}

/// Whether threads share the target channels and not the tiles: each then reads its part of the
/// weights, but transforms all sources.
inline bool shares_channels(const Winograd& call) {
  const std::int64_t tiles = call.tiles();
  const std::int64_t at_once = tiles_at_once(call);
  const std::int64_t threads = call.threads;
  if (columns_of(call) < 2 * threads) return false;
  // In floats that come from memory or the last cache; a transform is worth about 2.5 for each of
  // its results.
  const double weights = static_cast<double>(transformed_floats(call));
  const double sources =
      2.5 * static_cast<double>(tiles * call.filter.products() * call.source_channels);
  const double by_channels = weights * static_cast<double>(ceil_div(tiles, at_once)) +
                             sources * static_cast<double>(threads);
  const double by_tiles =
      weights * static_cast<double>(threads * ceil_div(ceil_div(tiles, threads), at_once)) +
      sources;
  return by_channels < by_tiles;
}

}  // namespace npu::onednn::winograd

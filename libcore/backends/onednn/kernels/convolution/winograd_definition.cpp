// SPDX-License-Identifier: Apache-2.0
// Tiles of a Winograd convolution that a transform would spoil, by the definition: a product of
// matrices whose left one is made of the receptive fields of up to 112 results (im2col), so many
// taps and channels at a time as sums are cut into. The weights lie behind the transformed ones.
// O(results * taps * channels in * channels out / lanes) multiply-adds of vectors.
#include <algorithm>

#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/simd.hpp"
#include "kernels/convolution/winograd_block.hpp"

namespace npu::onednn::winograd {

namespace {

constexpr std::int64_t kFewPixels = 56;  // whose sources stay in the L1, if weights do in the L2
constexpr std::int64_t kWeightsInL2 = std::int64_t{256} * 1024;  // floats

/// Results that are computed together by the definition. Places are in vectors of channels, of
/// the first vector: those of a thread's part of a tensor that fits into memory.
struct Pixels {
  std::int32_t y[kMostPixels];  ///< where the receptive field begins, which may be outside
  std::int32_t x[kMostPixels];
  std::int32_t source[kMostPixels];
  std::int32_t target[kMostPixels];
  std::int64_t count = 0;
};

template <std::int64_t kLanes>
NPU_INLINE void add_pixel(const Winograd& call, const Place& place, Pixels& pixels) {
  const std::int64_t y = place.y * call.filter.stride - call.pad[0];
  const std::int64_t x = place.x * call.filter.stride - call.pad[1];
  const std::int64_t source = first_plane(call, call.source_channels / kLanes, place.image);
  const std::int64_t target = first_plane(call, call.target_channels / kLanes, place.image);
  const std::int64_t i = pixels.count++;
  pixels.y[i] = static_cast<std::int32_t>(y);
  pixels.x[i] = static_cast<std::int32_t>(x);
  pixels.source[i] =
      static_cast<std::int32_t>((source * call.source_extent[0] + y) * call.source_extent[1] + x);
  pixels.target[i] = static_cast<std::int32_t>(
      (target * call.target_extent[0] + place.y) * call.target_extent[1] + place.x);
}

/// Source elements [k block, pixel, lanes] for the k blocks [begin, end): a tap and a vector of
/// channels each.
template <typename V>
NPU_INLINE void copy_fields(const Block& block, const Pixels& pixels, std::int64_t begin,
                            std::int64_t end, float* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const Winograd& call = *block.call;
  const auto height = static_cast<std::uint32_t>(call.source_extent[0]);
  const auto width = static_cast<std::uint32_t>(call.source_extent[1]);
  const std::int64_t groups = call.source_channels / kLanes;
  std::int32_t from[kMostPixels];
  std::int64_t tap = -1;
  for (std::int64_t at = begin; at < end; ++at) {
    if (at / groups != tap) {
      tap = at / groups;
      const auto down = static_cast<std::int32_t>(tap / call.filter.taps[1]);
      const auto right = static_cast<std::int32_t>(tap % call.filter.taps[1]);
      const std::int32_t step = down * static_cast<std::int32_t>(width) + right;
      for (std::int64_t i = 0; i < pixels.count; ++i) {
        const bool exists = (static_cast<std::uint32_t>(pixels.y[i] + down) < height) &
                            (static_cast<std::uint32_t>(pixels.x[i] + right) < width);
        from[i] = exists ? pixels.source[i] + step : -1;
      }
    }
    const float* plane = block.source + at % groups * call.frames * height * width * kLanes;
    for (std::int64_t i = 0; i < pixels.count; ++i, to += kLanes) {
      store_vector(to, from[i] < 0 ? V{} : load_vector<V>(plane + from[i] * kLanes));
    }
  }
}

/// Where the definition's weights of two vectors of target channels lie: [taps, source channels,
/// up to 2 * lanes].
NPU_INLINE const float* definition_weights(const Block& block, std::int64_t column) {
  const Winograd& call = *block.call;
  return block.weight + transformed_floats(call) +
         column * columns_at_once(call) * call.filter.all_taps() * call.source_channels;
}

/// Bias, epilogue and the way to the target for two vectors of target channels of some pixels.
template <typename V>
NPU_INLINE void store_pixels(const Block& block, const Pixels& pixels, std::int64_t column,
                             std::int64_t vectors, const float* sums) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const Winograd& call = *block.call;
  for (std::int64_t vector = 0; vector < vectors; ++vector) {
    const std::int64_t group = 2 * column + vector;
    const V bias = call.has_bias ? load_vector<V>(block.bias + group * kLanes) : V{};
    const std::int64_t plane = group * call.frames * call.target_extent[0] * call.target_extent[1];
    for (std::int64_t i = 0; i < pixels.count; ++i) {
      const std::int64_t at = (plane + pixels.target[i]) * kLanes;
      const V sum = load_vector<V>(sums + i * 2 * kLanes + vector * kLanes);
      store_vector(block.target + at, apply_steps<kIsWide<V>>(call.epilogue, sum + bias,
                                                              block.target, block.operands, at));
    }
  }
}

/// A product of matrices, the left one of the pixels' receptive fields, for those columns of the
/// block whose weights are as `of_uneven_columns` says, or for all if it says no and tiles are not
/// even.
template <typename V>
NPU_INLINE void define_pixels(const Block& block, const Pixels& pixels, bool of_uneven_columns) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kColumns = 2 * kLanes;
  const Winograd& call = *block.call;
  const std::int64_t groups = call.target_channels / kLanes;
  const std::int64_t blocks = call.filter.all_taps() * call.source_channels / kLanes;
  const std::int64_t cuts = ceil_div(pixels.count, kTileRowsOf<V>);
  float* sums = block.scratch + kMostPixels * kMostSummed;
  const std::int64_t runs = ceil_div(blocks, kMostSummed / kLanes);
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t begin = blocks * run / runs;
    const std::int64_t end = blocks * (run + 1) / runs;
    copy_fields<V>(block, pixels, begin, end, block.scratch);
    for (std::int64_t column = block.first_column; column < block.last_column; ++column) {
      if (of_uneven_columns && !is_uneven_column(block, column)) continue;
      const std::int64_t vectors = std::min<std::int64_t>(2, groups - 2 * column);
      const auto& kernels = vectors == 2 ? kGemmMicroKernels<V, 2> : kGemmMicroKernels<V, 1>;
      const std::int64_t width = vectors * kLanes;
      const std::int64_t lines = ceil_div(width, kLine);  // of the weights for each k
      const float* weight = definition_weights(block, column) + begin * kLanes * width;
      float* to = sums + (column - block.first_column) * kMostPixels * kColumns;
      // The next column's weights are fetched.
      const float* next = weight + kColumns * kLanes * blocks;
      for (std::int64_t cut = 0; cut < cuts; ++cut) {
        const std::int64_t first = pixels.count * cut / cuts;
        const std::int64_t last = pixels.count * (cut + 1) / cuts;
        kernels[static_cast<std::size_t>(last - first - 1)](
            {block.scratch + first * kLanes, pixels.count * kLanes, end - begin, weight, nullptr,
             nullptr, cut < lines ? next + cut * (end - begin) * kLanes * kLine : weight,
             to + first * kColumns, begin != 0});
      }
      if (end == blocks) store_pixels<V>(block, pixels, column, vectors, to);
    }
  }
}

/// All results of some tiles.
template <typename V>
NPU_INLINE void define_tiles(const Block& block, std::span<const std::int32_t> tiles,
                             bool of_uneven_columns) {
  const Winograd& call = *block.call;
  const auto end = [&](const Place& place) __attribute__((always_inline)) {
    return Place{place.image, std::min(call.target_extent[0], place.y + call.filter.tile[0]),
                 std::min(call.target_extent[1], place.x + call.filter.tile[1])};
  };
  std::int64_t left = 0;
  for (const std::int32_t tile : tiles) {
    const Place place = place_of(call, tile);
    left += (end(place).y - place.y) * (end(place).x - place.x);
  }
  const bool is_small = limit_place(call) - transformed_floats(call) <= kWeightsInL2;
  const std::int64_t parts =
      std::max<std::int64_t>(1, ceil_div(left, is_small ? kFewPixels : kMostPixels));
  const std::int64_t most = ceil_div(left, parts);
  Pixels pixels;
  for (const std::int32_t tile : tiles) {
    const Place place = place_of(call, tile);
    for (std::int64_t y = place.y; y < end(place).y; ++y) {
      for (std::int64_t x = place.x; x < end(place).x; ++x) {
        add_pixel<kLanesOf<V>>(call, {place.image, y, x}, pixels);
        if (pixels.count < most && pixels.count < left) continue;
        define_pixels<V>(block, pixels, of_uneven_columns);
        left -= pixels.count;
        pixels.count = 0;
      }
    }
  }
}

}  // namespace

NPU_TARGET_AVX2 void define_avx2(const Block& block, std::span<const std::int32_t> tiles,
                                 bool of_uneven_columns) {
  define_tiles<NarrowFloats>(block, tiles, of_uneven_columns);
}
NPU_TARGET_AVX512 void define_avx512(const Block& block, std::span<const std::int32_t> tiles,
                                     bool of_uneven_columns) {
  define_tiles<Float16>(block, tiles, of_uneven_columns);
}

}  // namespace npu::onednn::winograd

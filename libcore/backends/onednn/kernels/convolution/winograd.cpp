// SPDX-License-Identifier: Apache-2.0
// Winograd convolution: tiles of the source are transformed, multiplied with transformed weights
// position by position, summed over channels, and transformed back. F(m, r) needs m + r - 1
// products where the definition needs m * r. With stride 2 a result reads even elements with the
// even taps and odd ones with the odd taps: two filters with stride 1, whose results are added.
//
// A thread takes a block of tiles and of target channels: it transforms the sources of all
// channels, which then lie in the L2, and for two vectors of target channels at a time
// multiplies (up to 14 tiles, 6 with AVX2, by 2 vectors in registers), transforms back, and applies
// bias and epilogue. What the next tile reads and writes is fetched: no CPU foresees it. Weights
// are read in order, once for as many tiles as the L2 holds; where they are too large for a cache
// themselves, threads share them and not the tiles, and a panel is fetched while the one before it
// is multiplied. Sums over channels are cut after 128, so that rounding errors do not grow.
//
// Tiles whose elements are too different for that, or not finite, and target channels (two vectors
// of them) whose weights are, are computed by the definition; which ones depends on the numbers
// alone, not on the threads.
//
// O(tiles * products * channels in * channels out / lanes) multiply-adds of vectors; memory for
// each thread O(products * block * channels in).
#include "kernels/convolution/winograd.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"
#include "kernels/convolution/winograd_block.hpp"
#include "kernels/convolution/winograd_guard.hpp"
#include "kernels/convolution/winograd_tasks.hpp"
#include "kernels/convolution/winograd_transforms.hpp"
#include "kernels/convolution/winograd_weights.hpp"

namespace npu::onednn {

namespace {

using winograd::amplification;
using winograd::Axis;
using winograd::Block;
using winograd::columns_of;
using winograd::define_avx2;
using winograd::define_avx512;
using winograd::first_plane;
using winograd::Guard;
using winograd::has_wide_padding;
using winograd::is_uneven_column;
using winograd::kMostSummed;
using winograd::kMostTiles;
using winograd::kMostUneven;
using winograd::limit_place;
using winograd::Place;
using winograd::place_of;
using winograd::product_floats;
using winograd::scratch_floats;
using winograd::shares_channels;
using winograd::tiles_at_once;
using winograd::transform_result;
using winograd::transform_source;

/// The tiles of a run that are transformed, and those of this run and earlier ones that wait to be
/// computed by the definition.
struct Sorted {
  std::array<std::int32_t, kMostTiles> even;
  std::array<std::int32_t, kMostUneven + kMostTiles> uneven;
  std::int64_t even_count = 0;
  std::int64_t uneven_count = 0;
};

/// A vector of channels of a tile of the source.
struct Patch {
  const float* from;
  std::int64_t row;  ///< floats from one row to the next
};

/// Those of the tile whose first element is at (y, x) of a plane: where they lie, or if the tile
/// sticks out, copied with zeros around.
template <typename V, int kCountY, int kCountX>
NPU_INLINE Patch patch_at(const Winograd& call, const float* plane, std::int64_t y, std::int64_t x,
                          bool inside, float* copy) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const std::int64_t height = call.source_extent[0];
  const std::int64_t width = call.source_extent[1];
  if (inside) return {plane + (y * width + x) * kLanes, width * kLanes};
  for (int r = 0; r < kCountY; ++r) {
    for (int c = 0; c < kCountX; ++c) {
      const bool exists = y + r >= 0 && y + r < height && x + c >= 0 && x + c < width;
      store_vector(copy + (r * kCountX + c) * kLanes,
                   exists ? load_vector<V>(plane + ((y + r) * width + x + c) * kLanes) : V{});
    }
  }
  return {copy, std::int64_t{kCountX} * kLanes};
}

/// Fetches what a tile's patch has beside that of the tile to its left.
template <typename V, typename Down, typename Across>
NPU_INLINE void fetch_patch(const Winograd& call, const float* plane, std::int64_t y,
                            std::int64_t x) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr int kPixels = static_cast<int>(kLine / kLanes);  // of a line
  constexpr int kNew = Across::kStride * Across::kTile;
  for (int r = 0; r < Down::kCount; ++r) {
    const std::int64_t row = std::clamp<std::int64_t>(y + r, 0, call.source_extent[0] - 1);
    const float* line = plane + row * call.source_extent[1] * kLanes;
#pragma GCC unroll 10
    for (int c = 0; c < kNew; c += kPixels) {
      const std::int64_t column =
          std::clamp<std::int64_t>(x + Across::kCount - 1 - c, 0, call.source_extent[1] - 1);
      __builtin_prefetch(line + column * kLanes);
    }
  }
}

template <typename V, int kCount>
NPU_INLINE void load_column(const Patch& patch, int column, V (&elements)[kCount]) {
#pragma GCC unroll 10
  for (int r = 0; r < kCount; ++r) {
    elements[r] = load_vector<V>(patch.from + r * patch.row + column * kLanesOf<V>);
  }
}

/// Transforms the sources of `rows` tiles from `first` on. An uneven one is overwritten by the
/// next; behind it a tile is looked at before it is transformed, since they come in crowds.
template <typename V, typename Down, typename Across>
NPU_INLINE void load_sources(const Block& block, std::int64_t first, std::int64_t rows, float* to,
                             Sorted& sorted) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr int kCountY = Down::kCount;
  constexpr int kCountX = Across::kCount;
  using TileGuard = Guard<V, Down, Across>;
  const Winograd& call = *block.call;
  const std::int64_t plane = call.source_extent[0] * call.source_extent[1] * kLanes;
  const std::int64_t apart = call.frames * plane;  // of two blocks of channels
  const std::int64_t groups = call.source_channels / kLanes;
  const std::int64_t step = product_floats(call, rows);
  const float limit = block.weight[limit_place(call)];
  const bool is_wide = has_wide_padding(call);
  float copy[std::int64_t{kCountY} * kCountX * kLanes];
  bool is_even = true;
  sorted.even_count = 0;
  Place next = place_of(call, first);
  for (std::int64_t tile = first; tile < first + rows; ++tile) {
    const Place place = next;
    next = place_of(call, std::min(tile + 1, block.last_tile - 1));
    const std::int64_t y = place.y * Down::kStride - call.pad[0];
    const std::int64_t x = place.x * Across::kStride - call.pad[1];
    const bool inside = y >= 0 && x >= 0 && y + kCountY <= call.source_extent[0] &&
                        x + kCountX <= call.source_extent[1];
    const float* image = block.source + first_plane(call, groups, place.image) * plane;
    const float* next_image = block.source + first_plane(call, groups, next.image) * plane;
    if (!is_even) {
      TileGuard guard;
      for (std::int64_t group = 0; group < groups; ++group) {
        const Patch patch =
            patch_at<V, kCountY, kCountX>(call, image + group * apart, y, x, inside, copy);
#pragma GCC unroll 10
        for (int c = 0; c < kCountX; ++c) {
          V column[kCountY];
          load_column(patch, c, column);
          guard.add(c, column);
        }
      }
      is_even = guard.is_even(y, x, call.source_extent, is_wide, limit);
    }
    if (is_even) {
      TileGuard guard;
      for (std::int64_t group = 0; group < groups; ++group) {
        const Patch patch =
            patch_at<V, kCountY, kCountX>(call, image + group * apart, y, x, inside, copy);
        fetch_patch<V, Down, Across>(call, next_image + group * apart,
                                     next.y * Down::kStride - call.pad[0],
                                     next.x * Across::kStride - call.pad[1]);
        V middle[kCountY][kCountX];
#pragma GCC unroll 10
        for (int c = 0; c < kCountX; ++c) {
          V column[kCountY];
          load_column(patch, c, column);
          guard.add(c, column);
          transform_source<Down>(column, 1, &middle[0][c], kCountX);
        }
#pragma GCC unroll 1
        for (int r = 0; r < kCountY; ++r) {
          V line[kCountX];
          transform_source<Across>(middle[r], 1, line, 1);
          float* out =
              to + std::int64_t{r} * kCountX * step + (group * rows + sorted.even_count) * kLanes;
#pragma GCC unroll 10
          for (int c = 0; c < kCountX; ++c) store_vector(out + c * step, line[c]);
        }
      }
      is_even = guard.is_even(y, x, call.source_extent, is_wide, limit);
    }
    sorted.even[static_cast<std::size_t>(sorted.even_count)] = static_cast<std::int32_t>(tile);
    sorted.uneven[static_cast<std::size_t>(sorted.uneven_count)] = static_cast<std::int32_t>(tile);
    sorted.even_count += is_even ? 1 : 0;
    sorted.uneven_count += is_even ? 0 : 1;
  }
}

/// All steps of the epilogue on results side by side, of which the first `count` are stored from
/// `place` of the target on. What convolutions have behind them most often stays in registers.
template <typename V, int kMost>
NPU_INLINE void finish_line(const Block& block, V (&line)[kMost], std::int64_t count,
                            std::int64_t place) {
  using Kind = EpilogueStep::Kind;
  const auto each = [&](const auto& function) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < kMost; ++i) line[i] = function(line[i]);
  };
  const auto with = [&](const float* others, const auto& function) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < kMost; ++i) {
      if (i >= count) break;
      line[i] = function(line[i], load_vector<V>(others + place + i * kLanesOf<V>));
    }
  };
  std::size_t operand = 0;
  for (const EpilogueStep& step : block.call->epilogue) {
    switch (step.kind) {
      case Kind::kAccumulate:
        with(
            block.target, [&](V value, V other) __attribute__((always_inline)) {
              return value + other * step.alpha;
            });
        break;
      case Kind::kAdd:
        with(
            block.operands[operand++],
            [](V value, V other) __attribute__((always_inline)) { return value + other; });
        break;
      case Kind::kMultiply:
        with(
            block.operands[operand++],
            [](V value, V other) __attribute__((always_inline)) { return value * other; });
        break;
      default:
        if (step.is_plain_relu()) {
          each([](V value) __attribute__((always_inline)) { return value < 0.0F ? V{} : value; });
        } else {
          V values[kMost];
          std::copy_n(line, kMost, values);
#pragma GCC unroll 1
          for (V& value : values) value = apply_step<kIsWide<V>>(step, value);
          std::copy_n(values, kMost, line);
        }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kMost; ++i) {
    if (i >= count) break;
    store_vector(block.target + place + i * kLanesOf<V>, line[i]);
  }
}

template <typename V>
NPU_INLINE std::int64_t target_plane(const Winograd& call, std::int64_t image, std::int64_t group) {
  return first_plane(call, call.target_channels / kLanesOf<V>, image) + group * call.frames;
}

/// Fetches what is written of a tile's results.
template <typename V, typename Down, typename Across>
NPU_INLINE void fetch_tile(const Block& block, std::int64_t group, const Place& place) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const Winograd& call = *block.call;
  const std::int64_t height = call.target_extent[0];
  const std::int64_t width = call.target_extent[1];
  const std::int64_t plane = target_plane<V>(call, place.image, group) * height * width;
  for (int r = 0; r < Down::kTile; ++r) {
    const std::int64_t row = std::min(place.y + r, height - 1);
    const float* to = block.target + (plane + row * width + place.x) * kLanes;
    for (std::int64_t c = 0; c < Across::kTile * kLanes; c += kLine) __builtin_prefetch(to + c, 1);
  }
}

template <typename V, typename Down, typename Across>
NPU_INLINE void store_results(const Block& block, std::span<const std::int32_t> tiles,
                              std::int64_t group, const float* from) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr int kCountY = Down::kCount;
  constexpr int kCountX = Across::kCount;
  const Winograd& call = *block.call;
  const std::int64_t height = call.target_extent[0];
  const std::int64_t width = call.target_extent[1];
  const V bias = call.has_bias ? load_vector<V>(block.bias + group * kLanes) : V{};
  const auto rows = static_cast<std::int64_t>(tiles.size());
  Place next = place_of(call, tiles.front());
  for (std::int64_t i = 0; i < rows; ++i) {
    const Place place = next;
    next = place_of(call, tiles[static_cast<std::size_t>(std::min(i + 1, rows - 1))]);
    fetch_tile<V, Down, Across>(block, group, next);
    V middle[Down::kTile][kCountX];
    for (int c = 0; c < kCountX; ++c) {
      V column[kCountY];
#pragma GCC unroll 10
      for (int r = 0; r < kCountY; ++r) {
        column[r] = load_vector<V>(from + ((r * kCountX + c) * rows + i) * 2 * kLanes);
      }
      transform_result<Down>(column, 1, &middle[0][c], kCountX);
    }
    const std::int64_t plane = target_plane<V>(call, place.image, group) * height * width;
    const std::int64_t lines = std::min<std::int64_t>(Down::kTile, height - place.y);
    const std::int64_t columns = std::min<std::int64_t>(Across::kTile, width - place.x);
    for (std::int64_t r = 0; r < lines; ++r) {
      V line[Across::kTile];
      transform_result<Across>(middle[r], 1, line, 1);
      const std::int64_t at = (plane + (place.y + r) * width + place.x) * kLanes;
      for (V& value : line) value += bias;
      finish_line(block, line, columns, at);
    }
  }
}

/// Which of the transformed weights a product is of.
NPU_INLINE std::int64_t weight_of(const Winograd::Filter& filter, std::int64_t down,
                                  std::int64_t across) {
  return std::min(down, filter.weights(0) - 1) * filter.weights(1) +
         std::min(across, filter.weights(1) - 1);
}

/// Products of `tiles` transformed tiles, of `stride` that there is room for, with the weights of
/// two vectors of target channels. Sums over channels are cut, so that their rounding errors do not
/// grow with the number of channels.
template <typename V>
NPU_INLINE void multiply(const Block& block, std::int64_t tiles, std::int64_t stride,
                         std::int64_t column, std::int64_t vectors, float* products) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const Winograd& call = *block.call;
  const std::int64_t count = call.filter.products();
  const std::int64_t across = call.filter.points(1);
  const std::int64_t channels = call.source_channels;
  const std::int64_t cuts = ceil_div(tiles, kTileRowsOf<V>);
  const auto& kernels = vectors == 2 ? kGemmMicroKernels<V, 2> : kGemmMicroKernels<V, 1>;
  const std::int64_t panel = channels * vectors * kLanes;
  const float* weights = block.weight + column * 2 * kLanes * call.filter.all_weights() * channels;
  const std::int64_t lines = ceil_div(vectors * kLanes, kLine);  // of a panel, for each channel
  for (std::int64_t product = 0; product < count; ++product) {
    const float* weight =
        weights + weight_of(call.filter, product / across, product % across) * panel;
    for (std::int64_t cut = 0; cut < cuts; ++cut) {
      const std::int64_t begin = tiles * cut / cuts;
      const std::int64_t end = tiles * (cut + 1) / cuts;
      const auto kernel = kernels[static_cast<std::size_t>(end - begin - 1)];
      const float* from = block.scratch + product * product_floats(call, stride) + begin * kLanes;
      // The next panel follows, the next column's first one behind the last; what lies behind
      // all of them is fetched for nothing.
      const float* ahead = cut < lines ? weight + panel + cut * channels * kLine : weight;
      for (std::int64_t k = 0; k < channels; k += kMostSummed) {
        kernel({from + k * stride, stride * kLanes, std::min(kMostSummed, channels - k) / kLanes,
                weight + k * vectors * kLanes, nullptr, nullptr, ahead + k * kLine,
                products + (product * tiles + begin) * 2 * kLanes, k != 0});
      }
    }
  }
}

template <typename V, typename Down, typename Across>
NPU_INLINE void run_block(const Block& block) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr int kProducts = Down::kCount * Across::kCount;
  const Winograd& call = *block.call;
  const std::int64_t at_once = tiles_at_once(call);
  const std::int64_t groups = call.target_channels / kLanes;
  float* products = block.scratch + kProducts * product_floats(call, at_once);
  const std::int64_t count = block.last_tile - block.first_tile;
  const std::int64_t runs = ceil_div(count, at_once);
  const std::int64_t unit = at_once % kTileRowsOf<V> == 0 ? kTileRowsOf<V> : 1;
  const std::int64_t units = ceil_div(count, unit);
  bool has_uneven_columns = false;
  for (std::int64_t column = block.first_column; column < block.last_column; ++column) {
    has_uneven_columns = has_uneven_columns || is_uneven_column(block, column);
  }
  Sorted sorted;
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t first = block.first_tile + units * run / runs * unit;
    const std::int64_t rows =
        std::min(block.last_tile, block.first_tile + units * (run + 1) / runs * unit) - first;
    load_sources<V, Down, Across>(block, first, rows, block.scratch, sorted);
    const std::span<const std::int32_t> even(sorted.even.data(),
                                             static_cast<std::size_t>(sorted.even_count));
    for (std::int64_t column = block.first_column; !even.empty() && column < block.last_column;
         ++column) {
      if (has_uneven_columns && is_uneven_column(block, column)) continue;
      const std::int64_t vectors = std::min<std::int64_t>(2, groups - 2 * column);
      multiply<V>(block, sorted.even_count, rows, column, vectors, products);
      for (std::int64_t vector = 0; vector < vectors; ++vector) {
        store_results<V, Down, Across>(block, even, 2 * column + vector,
                                       products + vector * kLanes);
      }
    }
    // By the definition; the scratch memory is free again.
    const auto define = kIsWide<V> ? define_avx512 : define_avx2;
    if (has_uneven_columns && !even.empty()) define(block, even, true);
    if (sorted.uneven_count >= kMostUneven || (run + 1 == runs && sorted.uneven_count != 0)) {
      define(block, {sorted.uneven.data(), static_cast<std::size_t>(sorted.uneven_count)}, false);
      sorted.uneven_count = 0;
    }
  }
}

template <typename Down, typename Across>
NPU_TARGET_AVX2 void run_avx2(const Block& block) {
  run_block<NarrowFloats, Down, Across>(block);
}
template <typename Down, typename Across>
NPU_TARGET_AVX512 void run_avx512(const Block& block) {
  run_block<Float16, Down, Across>(block);
}

using Run = void (*)(const Block&);

/// One row of the table of kernels.
struct Kernel {
  Winograd::Filter filter;
  Run avx2;
  Run avx512;
  double amplification;
};

template <typename Down, typename Across>
Kernel kernel() {
  static_assert(Down::kStride == Across::kStride);
  return {{{Down::kTile, Across::kTile}, {Down::kTaps, Across::kTaps}, Down::kStride},
          run_avx2<Down, Across>,
          run_avx512<Down, Across>,
          amplification<Down>() * amplification<Across>()};
}
using One = Axis<1, 1>;
const Kernel kKernels[] = {
    kernel<Axis<2, 3>, Axis<2, 3>>(), kernel<Axis<4, 3>, Axis<4, 3>>(),
    kernel<Axis<2, 5>, Axis<2, 5>>(), kernel<One, Axis<4, 3>>(),
    kernel<Axis<4, 3>, One>(),        kernel<One, Axis<4, 5>>(),
    kernel<Axis<4, 5>, One>(),        kernel<One, Axis<2, 7>>(),
    kernel<Axis<2, 7>, One>(),        kernel<One, Axis<4, 7>>(),
    kernel<Axis<4, 7>, One>(),        kernel<Axis<2, 3, 2>, Axis<2, 3, 2>>(),
};

const Kernel& kernel_of(const Winograd& call) {
  return *std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Kernel& each) {
    return std::equal(each.filter.tile, each.filter.tile + 2, call.filter.tile) &&
           std::equal(each.filter.taps, each.filter.taps + 2, call.filter.taps) &&
           each.filter.stride == call.filter.stride;
  });
}

}  // namespace

std::vector<Winograd::Filter> winograd_filters(std::int64_t kernel_height,
                                               std::int64_t kernel_width, std::int64_t stride) {
  std::vector<Winograd::Filter> result;
  for (const Kernel& each : kKernels) {
    if (each.filter.taps[0] == kernel_height && each.filter.taps[1] == kernel_width &&
        each.filter.stride == stride) {
      result.push_back(each.filter);
    }
  }
  return result;
}

double Winograd::rounding() const {
  // The transform of a source adds as much as some ten channels more do.
  constexpr double kTransform = 10.5;
  constexpr double kOfASum = 0.307;  // times the square root of what is summed, for even operands
  const auto summed = static_cast<double>(std::min(kMostSummed, source_channels));
  return kOfASum * kernel_of(*this).amplification * std::sqrt(summed + kTransform);
}

std::int64_t Winograd::tiles() const {
  return batch * ceil_div(target_extent[0], filter.tile[0]) *
         ceil_div(target_extent[1], filter.tile[1]);
}

std::size_t Winograd::weight_floats() const {
  return static_cast<std::size_t>(limit_place(*this) + 1 + columns_of(*this));
}

std::size_t Winograd::scratch_bytes() const {
  return static_cast<std::size_t>(scratch_floats(*this) * threads) * sizeof(float);
}

Winograd::Operands Winograd::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<const float>(), in.next_if<const float>(has_bias),
          in.epilogue(epilogue),  in.next<float>(),       in.next<float>()};
}

void Winograd::run(const Operands& operands) const {
  const Kernel& kernel = kernel_of(*this);
  const Run body = isa == VectorIsa::kAvx512 ? kernel.avx512 : kernel.avx2;
  const std::int64_t count = tiles();
  // Some blocks for each thread, of full micro-kernels and large enough for what is read for each.
  constexpr std::int64_t kBlocks = 4;
  const std::int64_t rows = tile_rows(isa);
  const std::int64_t columns = columns_of(*this);
  const std::int64_t units = ceil_div(count, rows);
  const std::int64_t least = std::min<std::int64_t>(threads, units);
  const std::int64_t blocks = shares_channels(*this)
                                  ? 1
                                  : std::clamp(count / (2 * tiles_at_once(*this)), least,
                                               std::max(least, kBlocks * threads));
  const auto begin_of = [&](std::int64_t block) {
    return blocks == least ? count * block / blocks
                           : std::min(count, units * block / blocks * rows);
  };
  const std::int64_t parts = std::min(columns, ceil_div(threads, blocks));
  const std::int64_t floats = scratch_floats(*this);
  share_pieces(blocks * parts, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t block = piece / parts;
    const std::int64_t part = piece % parts;
    body({this, operands.source, operands.weight, operands.bias, operands.epilogue.data(),
          operands.target, operands.scratch + thread * floats, begin_of(block), begin_of(block + 1),
          columns * part / parts, columns * (part + 1) / parts});
  });
}

Footprint footprint(const Winograd& kernel) {
  constexpr std::int64_t kMostVectors = INT32_MAX;  // places of blocks have 32 bits
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count weights = winograd::checked_weights(kernel);
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count batch = at_least_one(kernel.batch, "batch");
  require(kernel.frames >= 1 && kernel.batch % kernel.frames == 0,
          "'batch' is no multiple of 'frames'");
  const Count inputs = kernel.source_channels;
  const Count outputs = kernel.target_channels;
  const Count products = kernel.filter.products();
  Count source = batch * inputs;
  Count target = batch * outputs;
  for (int i = 0; i < 2; ++i) {
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * at_least_one(kernel.target_extent[i], "target_extent");
    require(kernel.pad[i] >= 0 && kernel.pad[i] < kernel.filter.taps[i],
            "'pad' is not below the taps");
  }
  const Count border = Count{8} * (Count{kernel.source_extent[1]} + 8);
  require(source.value() / lanes + border.value() <= kMostVectors &&
              (target + Count{1024}).value() / lanes <= kMostVectors,
          "a tensor has too many elements");
  FootprintBuilder builder;
  builder.read(source)
      .read(weights)
      .read_if(kernel.has_bias, outputs)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Transformed sources and products of 12 tiles, or of as many as stay in the L2; or 112 results
  // of all channels.
  const Count tiles = products * (inputs + 48) * 12 + (1 << 18);
  return builder.with_scratch(kernel, (tiles + Count{112} * (outputs + 160)) * kFloat);
}

}  // namespace npu::onednn

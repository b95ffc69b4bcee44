// SPDX-License-Identifier: Apache-2.0
// Convolutions by minimal filtering: tiles of the source are transformed, multiplied with
// transformed weights position by position, summed over channels, and transformed back. F(m, r)
// needs m + r - 1 products where the definition needs m * r; the matrices are those of Toom and
// Cook's algorithm, made at compile time. Points come in pairs a and -a beside 0 and infinity, so
// that half of each transform is shared, and are near 1, which keeps rounding errors low.
//
// A thread takes a block of tiles and of target channels: it transforms the sources of all
// channels, which then lie in the second cache, and for 32 target channels at a time multiplies (up
// to 14 tiles by 2 vectors in registers), transforms back, and applies bias and epilogue. Weights
// are read in order, once for as many tiles as the cache holds; where they are too large for a
// cache themselves, threads share them and not the tiles, and a panel is fetched while the one
// before it is multiplied. O(tiles * products *
// channels in * channels out / 16) multiply-adds of vectors; memory for each thread O(products *
// block * channels in).
#include "kernels/winograd.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm_micro_kernel.hpp"
#include "kernels/simd.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kColumns = 2 * kLanes;  // target channels at a time
constexpr std::int64_t kCacheFloats =
    std::int64_t{160} * 1024;  // of transformed sources and products in the second cache
constexpr std::int64_t kSmallWeights = std::int64_t{128} * 1024;  // floats that stay in it, too

/// The finite points for a number of products: those among small fractions that gave the least
/// errors of results for random operands.
constexpr std::array<double, 9> points_for(int products) {
  if (products <= 4) return {0.0, 1.0, -1.0};
  if (products <= 6) return {0.0, 0.75, -0.75, 1.5, -1.5};
  if (products <= 8) return {0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0};
  return {0.0, 0.5, -0.5, 0.75, -0.75, 1.25, -1.25, 2.0, -2.0};
}

/// result = A^T ((G g) * (B^T d)); the last point is infinity.
template <int kTile, int kTaps>
struct Matrices {
  static constexpr int kCount = kTile + kTaps - 1;
  double output[kTile][kCount]{};
  double weight[kCount][kTaps]{};
  double input[kCount][kCount]{};

  constexpr Matrices() {
    constexpr auto kPoints = points_for(kCount);
    constexpr int kFinite = kCount - 1;
    for (int j = 0; j < kFinite; ++j) {
      double scale = 1.0;
      for (int l = 0; l < kFinite; ++l) scale *= l == j ? 1.0 : kPoints[j] - kPoints[l];
      double power = 1.0;
      for (int i = 0; i < kTile; ++i, power *= kPoints[j]) output[i][j] = power;
      power = 1.0;
      for (int i = 0; i < kTaps; ++i, power *= kPoints[j]) weight[j][i] = power / scale;
      multiply_out(input[j], kFinite, j);
    }
    output[kTile - 1][kFinite] = 1.0;
    weight[kFinite][kTaps - 1] = 1.0;
    multiply_out(input[kFinite], kFinite, -1);
  }

 private:
  /// The coefficients of the product of x - point over all points but one.
  static constexpr void multiply_out(double* coefficients, int finite, int without) {
    constexpr auto kPoints = points_for(kCount);
    coefficients[0] = 1.0;
    int degree = 0;
    for (int l = 0; l < finite; ++l) {
      if (l == without) continue;
      for (int i = ++degree; i > 0; --i) {
        coefficients[i] = coefficients[i - 1] - kPoints[l] * coefficients[i];
      }
      coefficients[0] *= -kPoints[l];
    }
  }
};

template <int kTile, int kTaps>
constexpr Matrices<kTile, kTaps> kMatrices{};

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
  std::int64_t first_column;  ///< in steps of kColumns
  std::int64_t last_column;
};

/// Of the transformed sources of so many tiles for one of the products.
std::int64_t product_floats(const Winograd& call, std::int64_t tiles) {
  // A multiple of 4 KiB apart they would share their places in the first cache.
  return tiles * call.source_channels + kLanes;
}

std::int64_t tile_floats(const Winograd& call) {
  return call.filter.products() * (call.source_channels + kLanes + kColumns);
}

/// Tiles that are transformed before weights are read. Where weights come from the second cache,
/// few of them leave room for the weights.
std::int64_t tiles_at_once(const Winograd& call) {
  const std::int64_t most = std::max<std::int64_t>(4, kCacheFloats / tile_floats(call));
  const bool is_small = static_cast<std::int64_t>(call.weight_floats()) <= kSmallWeights;
  return std::min(most, is_small ? kTileRows : call.tiles());
}

std::int64_t scratch_floats(const Winograd& call) {
  return tile_floats(call) * tiles_at_once(call);
}

/// Whether threads share the target channels and not the tiles: each then reads its part of the
/// weights, but transforms all sources.
bool shares_channels(const Winograd& call) {
  const std::int64_t tiles = call.tiles();
  const std::int64_t at_once = tiles_at_once(call);
  const std::int64_t threads = call.threads;
  if (ceil_div(call.target_channels, kColumns) < 2 * threads) return false;
  // In floats that come from memory or the last cache; a transform is worth about 2.5 for each of
  // its results.
  const double weights = static_cast<double>(call.weight_floats());
  const double sources =
      2.5 * static_cast<double>(tiles * call.filter.products() * call.source_channels);
  const double by_channels = weights * static_cast<double>(ceil_div(tiles, at_once)) +
                             sources * static_cast<double>(threads);
  const double by_tiles =
      weights * static_cast<double>(threads * ceil_div(ceil_div(tiles, threads), at_once)) +
      sources;
  return by_channels < by_tiles;
}

using V = Float16;
#define NPU_INLINE [[gnu::always_inline]] inline

template <typename Body, int... kIndex>
NPU_INLINE void unroll(std::integer_sequence<int, kIndex...> /*indices*/, Body& body) {
  (body(std::integral_constant<int, kIndex>{}), ...);
}
template <int kCount, typename Body>
NPU_INLINE void unroll(Body body) {
  unroll(std::make_integer_sequence<int, kCount>{}, body);
}

/// to[i * to_step] = sum over j of B^T[i][j] * from[j * from_step].
template <int kTile, int kTaps>
NPU_INLINE void transform_source(const V* from, std::int64_t from_step, V* to,
                                 std::int64_t to_step) {
  constexpr int kCount = kTile + kTaps - 1;
  if constexpr (kCount == 1) {
    *to = *from;
    return;
  } else {
    constexpr int kLast = kCount - 1;
    V d[kCount];
    unroll<kCount>([&](auto i) __attribute__((always_inline)) { d[i] = from[i * from_step]; });
    // All coefficients of the first row belong to even powers, of the last one to odd powers.
    const auto sum = [&](auto row, auto parity) __attribute__((always_inline)) {
      V result{};
      unroll<kCount>([&](auto i) __attribute__((always_inline)) {
        constexpr double kFactor = kMatrices<kTile, kTaps>.input[row][i];
        if constexpr (i % 2 == parity && kFactor == 1.0) {
          result += d[i];
        } else if constexpr (i % 2 == parity && kFactor != 0.0) {
          result += d[i] * static_cast<float>(kFactor);
        }
      });
      return result;
    };
    constexpr std::integral_constant<int, 0> kEven;
    constexpr std::integral_constant<int, 1> kOdd;
    to[0] = sum(kEven, kEven);
    to[kLast * to_step] =
        sum(std::integral_constant<int, kLast>{}, std::integral_constant<int, kLast % 2>{});
    unroll<(kCount - 2) / 2>([&](auto pair) __attribute__((always_inline)) {
      constexpr std::integral_constant<int, 1 + 2 * pair> kRow;
      const V even = sum(kRow, kEven);
      const V odd = sum(kRow, kOdd);
      to[kRow * to_step] = even + odd;
      to[(kRow + 1) * to_step] = even - odd;
    });
  }
}

/// to[i * to_step] = sum over j of A^T[i][j] * from[j * from_step].
template <int kTile, int kTaps>
NPU_INLINE void transform_result(const V* from, std::int64_t from_step, V* to,
                                 std::int64_t to_step) {
  constexpr int kCount = kTile + kTaps - 1;
  if constexpr (kCount == 1) {
    *to = *from;
    return;
  } else {
    constexpr int kPairs = (kCount - 2) / 2;
    V sums[kPairs];
    V differences[kPairs];
    unroll<kPairs>([&](auto pair) __attribute__((always_inline)) {
      const V plus = from[(1 + 2 * pair) * from_step];
      const V minus = from[(2 + 2 * pair) * from_step];
      sums[pair] = plus + minus;
      differences[pair] = plus - minus;
    });
    unroll<kTile>([&](auto i) __attribute__((always_inline)) {
      V result{};
      if constexpr (i == 0) result = from[0];
      if constexpr (i == kTile - 1) result += from[(kCount - 1) * from_step];
      unroll<kPairs>([&](auto pair) __attribute__((always_inline)) {
        constexpr double kFactor = kMatrices<kTile, kTaps>.output[i][1 + 2 * pair];
        const V& term = i % 2 == 0 ? sums[pair] : differences[pair];
        if constexpr (kFactor == 1.0) {
          result += term;
        } else {
          result += term * static_cast<float>(kFactor);
        }
      });
      to[i * to_step] = result;
    });
  }
}

/// Where a tile lies.
struct Place {
  std::int64_t image;
  std::int64_t y;  ///< of its first result
  std::int64_t x;
};

NPU_INLINE Place place_of(const Winograd& call, std::int64_t tile) {
  const std::int64_t across = ceil_div(call.target_extent[1], call.filter.tile[1]);
  const std::int64_t down = ceil_div(call.target_extent[0], call.filter.tile[0]);
  return {tile / (across * down), tile / across % down * call.filter.tile[0],
          tile % across * call.filter.tile[1]};
}

template <int kTileY, int kTapsY, int kTileX, int kTapsX>
NPU_INLINE void load_sources(const Block& block, std::int64_t first, std::int64_t rows, float* to) {
  constexpr int kCountY = kTileY + kTapsY - 1;
  constexpr int kCountX = kTileX + kTapsX - 1;
  const Winograd& call = *block.call;
  const std::int64_t height = call.source_extent[0];
  const std::int64_t width = call.source_extent[1];
  const std::int64_t groups = call.source_channels / kLanes;
  const std::int64_t step = product_floats(call, rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    const Place place = place_of(call, first + i);
    const std::int64_t y = place.y - call.pad[0];
    const std::int64_t x = place.x - call.pad[1];
    const bool inside = y >= 0 && x >= 0 && y + kCountY <= height && x + kCountX <= width;
    for (std::int64_t group = 0; group < groups; ++group) {
      const float* plane = block.source + (place.image * groups + group) * height * width * kLanes;
      V patch[kCountY][kCountX];
      if (inside) {
#pragma GCC unroll 10
        for (int r = 0; r < kCountY; ++r) {
          const float* line = plane + ((y + r) * width + x) * kLanes;
#pragma GCC unroll 10
          for (int c = 0; c < kCountX; ++c) patch[r][c] = load_vector<V>(line + c * kLanes);
        }
      } else {
        for (int r = 0; r < kCountY; ++r) {
          for (int c = 0; c < kCountX; ++c) {
            const bool exists = y + r >= 0 && y + r < height && x + c >= 0 && x + c < width;
            patch[r][c] = exists ? load_vector<V>(plane + ((y + r) * width + x + c) * kLanes) : V{};
          }
        }
      }
      V middle[kCountY][kCountX];
#pragma GCC unroll 1
      for (int c = 0; c < kCountX; ++c) {
        transform_source<kTileY, kTapsY>(&patch[0][c], kCountX, &middle[0][c], kCountX);
      }
#pragma GCC unroll 1
      for (int r = 0; r < kCountY; ++r) {
        V line[kCountX];
        transform_source<kTileX, kTapsX>(middle[r], 1, line, 1);
        float* out = to + std::int64_t{r} * kCountX * step + (group * rows + i) * kLanes;
#pragma GCC unroll 10
        for (int c = 0; c < kCountX; ++c) store_vector(out + c * step, line[c]);
      }
    }
  }
}

template <bool kAvx512, int kTileY, int kTapsY, int kTileX, int kTapsX>
NPU_INLINE void store_results(const Block& block, std::int64_t first, std::int64_t rows,
                              std::int64_t group, const float* from) {
  constexpr int kCountY = kTileY + kTapsY - 1;
  constexpr int kCountX = kTileX + kTapsX - 1;
  const Winograd& call = *block.call;
  const std::int64_t height = call.target_extent[0];
  const std::int64_t width = call.target_extent[1];
  const V bias = call.has_bias ? load_vector<V>(block.bias + group * kLanes) : V{};
  for (std::int64_t i = 0; i < rows; ++i) {
    const Place place = place_of(call, first + i);
    V middle[kTileY][kCountX];
    for (int c = 0; c < kCountX; ++c) {
      V column[kCountY];
#pragma GCC unroll 10
      for (int r = 0; r < kCountY; ++r) {
        column[r] = load_vector<V>(from + ((r * kCountX + c) * rows + i) * kColumns);
      }
      transform_result<kTileY, kTapsY>(column, 1, &middle[0][c], kCountX);
    }
    const std::int64_t plane =
        (place.image * (call.target_channels / kLanes) + group) * height * width;
    const std::int64_t lines = std::min<std::int64_t>(kTileY, height - place.y);
    const std::int64_t columns = std::min<std::int64_t>(kTileX, width - place.x);
    for (std::int64_t r = 0; r < lines; ++r) {
      V line[kTileX];
      transform_result<kTileX, kTapsX>(middle[r], 1, line, 1);
      const std::int64_t at = (plane + (place.y + r) * width + place.x) * kLanes;
      for (std::int64_t c = 0; c < columns; ++c) {
        store_vector(block.target + at + c * kLanes,
                     apply_steps<kAvx512>(call.epilogue, line[c] + bias, block.target,
                                          block.operands, at + c * kLanes));
      }
    }
  }
}

template <bool kAvx512, int kTileY, int kTapsY, int kTileX, int kTapsX>
NPU_INLINE void run_block(const Block& block) {
  constexpr int kProducts = (kTileY + kTapsY - 1) * (kTileX + kTapsX - 1);
  const Winograd& call = *block.call;
  const std::int64_t at_once = tiles_at_once(call);
  const std::int64_t groups = call.target_channels / kLanes;
  float* products = block.scratch + kProducts * product_floats(call, at_once);
  const std::int64_t count = block.last_tile - block.first_tile;
  const std::int64_t runs = ceil_div(count, at_once);
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t first = block.first_tile + count * run / runs;
    const std::int64_t rows = block.first_tile + count * (run + 1) / runs - first;
    const std::int64_t cuts = ceil_div(rows, kTileRows);
    load_sources<kTileY, kTapsY, kTileX, kTapsX>(block, first, rows, block.scratch);
    for (std::int64_t column = block.first_column; column < block.last_column; ++column) {
      const std::int64_t vectors = std::min<std::int64_t>(2, groups - 2 * column);
      const auto& kernels =
          vectors == 2 ? kGemmMicroKernels<kAvx512, 2> : kGemmMicroKernels<kAvx512, 1>;
      const std::int64_t panel = call.source_channels * vectors * kLanes;
      const float* weight = block.weight + column * kColumns * kProducts * call.source_channels;
      for (int product = 0; product < kProducts; ++product, weight += panel) {
        for (std::int64_t cut = 0; cut < cuts; ++cut) {
          const std::int64_t begin = rows * cut / cuts;
          const std::int64_t end = rows * (cut + 1) / cuts;
          // The next panel follows, the next column's first one behind the last; what lies behind
          // all of them is fetched for nothing.
          const float* ahead =
              cut < vectors ? weight + panel + cut * call.source_channels * kLanes : weight;
          kernels[static_cast<std::size_t>(end - begin - 1)](
              {block.scratch + product * product_floats(call, rows) + begin * kLanes, rows * kLanes,
               call.source_channels / kLanes, weight, nullptr, nullptr, ahead,
               products + (product * rows + begin) * kColumns});
        }
      }
      for (std::int64_t vector = 0; vector < vectors; ++vector) {
        store_results<kAvx512, kTileY, kTapsY, kTileX, kTapsX>(
            block, first, rows, 2 * column + vector, products + vector * kLanes);
      }
    }
  }
}

template <int kTileY, int kTapsY, int kTileX, int kTapsX>
NPU_TARGET_AVX2 void run_avx2(const Block& block) {
  run_block<false, kTileY, kTapsY, kTileX, kTapsX>(block);
}
template <int kTileY, int kTapsY, int kTileX, int kTapsX>
NPU_TARGET_AVX512 void run_avx512(const Block& block) {
  run_block<true, kTileY, kTapsY, kTileX, kTapsX>(block);
}

using Run = void (*)(const Block&);

/// One row of the table of kernels.
struct Kernel {
  Winograd::Filter filter;
  Run avx2;
  Run avx512;
  void (*transform)(const Winograd& call, const float* weight, float* transformed);
};

/// [columns, products, source channels, up to kColumns].
template <int kTileY, int kTapsY, int kTileX, int kTapsX>
void transform_all(const Winograd& call, const float* weight, float* transformed) {
  constexpr int kCountY = kTileY + kTapsY - 1;
  constexpr int kCountX = kTileX + kTapsX - 1;
  const auto& by_row = kMatrices<kTileY, kTapsY>.weight;
  const auto& by_column = kMatrices<kTileX, kTapsX>.weight;
  const std::int64_t inputs = call.source_channels;
#pragma omp parallel for num_threads(call.threads)
  for (std::int64_t o = 0; o < call.target_channels; ++o) {
    const std::int64_t column = o / kColumns;
    const std::int64_t width = std::min(kColumns, call.target_channels - column * kColumns);
    float* to = transformed + column * kColumns * kCountY * kCountX * inputs + o % kColumns;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const float* taps = weight + (o * inputs + i) * kTapsY * kTapsX;
      double middle[kCountY][kTapsX]{};
      for (int r = 0; r < kCountY; ++r) {
        for (int k = 0; k < kTapsY; ++k) {
          for (int c = 0; c < kTapsX; ++c) {
            middle[r][c] += by_row[r][k] * static_cast<double>(taps[k * kTapsX + c]);
          }
        }
      }
      for (int r = 0; r < kCountY; ++r) {
        for (int c = 0; c < kCountX; ++c) {
          double sum = 0.0;
          for (int k = 0; k < kTapsX; ++k) sum += by_column[c][k] * middle[r][k];
          to[((r * kCountX + c) * inputs + i) * width] = static_cast<float>(sum);
        }
      }
    }
  }
}

template <int kTileY, int kTapsY, int kTileX, int kTapsX>
constexpr Kernel kernel() {
  return {{{kTileY, kTileX}, {kTapsY, kTapsX}},
          run_avx2<kTileY, kTapsY, kTileX, kTapsX>,
          run_avx512<kTileY, kTapsY, kTileX, kTapsX>,
          transform_all<kTileY, kTapsY, kTileX, kTapsX>};
}
constexpr Kernel kKernels[] = {
    kernel<2, 3, 2, 3>(), kernel<4, 3, 4, 3>(), kernel<2, 5, 2, 5>(), kernel<1, 1, 4, 3>(),
    kernel<4, 3, 1, 1>(), kernel<1, 1, 4, 5>(), kernel<4, 5, 1, 1>(), kernel<1, 1, 2, 7>(),
    kernel<2, 7, 1, 1>(), kernel<1, 1, 4, 7>(), kernel<4, 7, 1, 1>(),
};

const Kernel& kernel_of(const Winograd& call) {
  return *std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Kernel& each) {
    return std::equal(each.filter.tile, each.filter.tile + 2, call.filter.tile) &&
           std::equal(each.filter.taps, each.filter.taps + 2, call.filter.taps);
  });
}

}  // namespace

std::vector<Winograd::Filter> winograd_filters(std::int64_t kernel_height,
                                               std::int64_t kernel_width) {
  std::vector<Winograd::Filter> result;
  for (const Kernel& each : kKernels) {
    if (each.filter.taps[0] == kernel_height && each.filter.taps[1] == kernel_width) {
      result.push_back(each.filter);
    }
  }
  return result;
}

std::int64_t Winograd::tiles() const {
  return batch * ceil_div(target_extent[0], filter.tile[0]) *
         ceil_div(target_extent[1], filter.tile[1]);
}

std::size_t Winograd::weight_floats() const {
  return static_cast<std::size_t>(filter.products() * source_channels * target_channels);
}

std::size_t Winograd::scratch_bytes() const {
  return static_cast<std::size_t>(scratch_floats(*this) * threads) * sizeof(float);
}

WinogradWeights::Operands WinogradWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

void WinogradWeights::run(const Operands& operands) const {
  kernel_of(winograd).transform(winograd, operands.source, operands.target);
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
  // Whole numbers of blocks for each thread.
  const std::int64_t columns = ceil_div(target_channels, kColumns);
  const std::int64_t blocks =
      shares_channels(*this) ? 1 : std::min<std::int64_t>(threads, ceil_div(count, kTileRows));
  const std::int64_t parts = std::min(columns, ceil_div(threads, blocks));
  const std::int64_t floats = scratch_floats(*this);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t part = 0; part < parts; ++part) {
      body({this, operands.source, operands.weight, operands.bias, operands.epilogue.data(),
            operands.target, operands.scratch + omp_get_thread_num() * floats,
            count * block / blocks, count * (block + 1) / blocks, columns * part / parts,
            columns * (part + 1) / parts});
    }
  }
}

}  // namespace npu::onednn

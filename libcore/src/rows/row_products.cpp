// SPDX-License-Identifier: Apache-2.0
// Products of rows with constant weights, whose bits do not depend on the other rows.
//
// A library's GEMM cuts its work by the number of rows, and not all of its kernels add up in the
// same order, so the same row gives other bits in a part of a graph than in the whole. Here each
// result is one chain of multiply-adds over 256 of `inner` at a time, and the blocks are added up
// in their order, whichever tile the row falls into.
//
// A tile of 6 rows by 1, 2 or 4 vectors of columns is summed in registers. Rows are read where they
// lie; 256 rows of a panel of weights stay in the first cache while all tiles of a piece of rows
// pass, the piece in the second. O(rows * inner * columns), no memory besides the output. Compiled
// as segment_reduce.cpp is.
#include "rows/row_products.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "device/isa_level.hpp"
#include "rows/row_vectors.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu {
namespace {

constexpr std::int64_t kPanel = 16;   // columns
constexpr std::int64_t kBlock = 256;  // of `inner`
constexpr std::int64_t kTileRows = 6;
constexpr std::int64_t kPieceRows = 192;  // that a thread takes at once; a multiple of kTileRows

struct Tile {
  const float* x;           // the first row, from the block on
  std::int64_t stride;      // from one row to the next
  const float* panel;       // from the block on
  std::int64_t panel_step;  // from one panel to the next
  std::int64_t count;       // of the block
  const float* bias;        // of the first column; null: none, or it is not the last block
  const float* addend;      // the same
  bool relu;                // false before the last block
  bool adds;                // to `out`: not the first block
  float* out;
  std::int64_t columns;  // from one row of `out` to the next
  std::int64_t rest;     // columns that there are from the first one of the tile on
};

// sum += each * factor, rounded once where the CPU can. With 16 registers GCC makes a factor the
// sum here and there, and then moves registers.
template <typename V>
NPU_ROWS_INLINE void multiply_add(V& sum, V each, V factor) {
#if NPU_ROWS_HAVE_LEVELS && !defined(__clang__)
  if constexpr (sizeof(V) == sizeof(Floats8)) {
    asm("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(each), "x"(factor));
  } else
#endif
  {
    sum += each * factor;
  }
}

template <typename V>
NPU_ROWS_INLINE V load_columns(const float* from, std::int64_t rest) {
  return rest >= kFloatsOf<V> ? load_floats<V>(from) : load_some<V>(from, rest);
}

template <typename V>
NPU_ROWS_INLINE void finish(const Tile& tile, std::int64_t row, std::int64_t column, V sum) {
  const std::int64_t rest = tile.rest - column;
  if (rest <= 0) return;
  float* const out = tile.out + row * tile.columns + column;
  if (tile.adds) sum += load_columns<V>(out, rest);
  if (tile.bias != nullptr) sum += load_columns<V>(tile.bias + column, rest);
  if (tile.addend != nullptr) {
    sum += load_columns<V>(tile.addend + row * tile.columns + column, rest);
  }
  if (tile.relu) sum = sum < 0.0F ? V{} : sum;
  if (rest >= kFloatsOf<V>) {
    store_floats(out, sum);
  } else {
    store_some(out, sum, rest);
  }
}

template <typename V, int kRows, int kPanels>
NPU_ROWS_INLINE void multiply_tile(const Tile& tile) {
  constexpr int kOfPanel = static_cast<int>(kPanel / kFloatsOf<V>);
  constexpr int kVectors = kPanels * kOfPanel;
  V sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  const float* x = tile.x;
  const float* panel = tile.panel;
  const std::int64_t stride = tile.stride;
  const std::int64_t step = tile.panel_step;
  for (std::int64_t k = 0; k < tile.count; ++k) {
    V factor[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      factor[j] = load_floats<V>(panel + (j / kOfPanel) * step + (j % kOfPanel) * kFloatsOf<V>);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V each = x[i * stride] - V{};
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) multiply_add(sums[i][j], each, factor[j]);
    }
    ++x;
    panel += kPanel;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) finish(tile, i, j * kFloatsOf<V>, sums[i][j]);
  }
}

using MultiplyTile = void (*)(const Tile&);

#if NPU_ROWS_HAVE_LEVELS
template <int kRows, int kPanels>
NPU_ROWS_AVX512 void multiply_tile_avx512(const Tile& tile) {
  multiply_tile<Floats16, kRows, kPanels>(tile);
}
template <int kRows, int kPanels>
NPU_ROWS_AVX2 void multiply_tile_avx2(const Tile& tile) {
  multiply_tile<Floats8, kRows, kPanels>(tile);
}
#endif
template <int kRows, int kPanels>
void multiply_tile_generic(const Tile& tile) {
  multiply_tile<Floats4, kRows, kPanels>(tile);
}

// Element r - 1 is for r rows.
using TileKernels = std::array<MultiplyTile, kTileRows>;

// By the number of panels: 1, 2 and 4 where registers hold so many.
struct Level {
  std::array<TileKernels, 3> kernels;
  std::int64_t rows;    // of the highest tile
  std::int64_t panels;  // of the widest
};

#define NPU_TILE_KERNELS(function, panels)                                              \
  TileKernels {                                                                         \
    function<1, panels>, function<2, panels>, function<3, panels>, function<4, panels>, \
        function<5, panels>, function<6, panels>                                        \
  }
const Level& tile_level() {
#if NPU_ROWS_HAVE_LEVELS
  static const Level avx512{
      {NPU_TILE_KERNELS(multiply_tile_avx512, 1), NPU_TILE_KERNELS(multiply_tile_avx512, 2),
       NPU_TILE_KERNELS(multiply_tile_avx512, 4)},
      kTileRows,
      4};
  static const Level avx2{{NPU_TILE_KERNELS(multiply_tile_avx2, 1), {}, {}}, kTileRows, 1};
  if (cpu_has(CpuFeature::kAvx512)) return avx512;
  if (cpu_has(CpuFeature::kAvx2)) return avx2;
#endif
#if defined(__aarch64__)
  constexpr std::int64_t kRows = kTileRows;
#else
  constexpr std::int64_t kRows = 3;  // 12 of 16 registers hold sums
#endif
  static const Level generic{{NPU_TILE_KERNELS(multiply_tile_generic, 1), {}, {}}, kRows, 1};
  return generic;
}
#undef NPU_TILE_KERNELS

// Rows [begin, end) times some panels of columns, over one block.
void multiply_panels(const RowProduct& product, const Level& level, std::int64_t block,
                     std::int64_t panel, std::int64_t panels, std::int64_t begin,
                     std::int64_t end) {
  const ProductWeights& weights = *product.weights;
  const std::int64_t column = panel * kPanel;
  const bool is_last = block + kBlock >= weights.inner;
  const TileKernels& kernels =
      level.kernels[panels == 4 ? 2 : static_cast<std::size_t>(panels - 1)];
  Tile tile{};
  tile.stride = weights.inner;
  tile.panel_step = weights.inner * kPanel;
  tile.panel = weights.panels.as<float>() + panel * tile.panel_step + block * kPanel;
  tile.count = std::min(kBlock, weights.inner - block);
  tile.bias = is_last && product.bias != nullptr ? product.bias + column : nullptr;
  tile.relu = is_last && product.relu;
  tile.adds = block > 0;
  tile.columns = weights.columns;
  tile.rest = weights.columns - column;
  for (std::int64_t row = begin; row < end; row += level.rows) {
    tile.x = product.x + row * weights.inner + block;
    tile.out = product.out + row * weights.columns + column;
    if (is_last && product.addend != nullptr) {
      tile.addend = product.addend + row * weights.columns + column;
    }
    kernels[static_cast<std::size_t>(std::min(level.rows, end - row) - 1)](tile);
  }
}

void multiply_piece(const RowProduct& product, const Level& level, std::int64_t begin,
                    std::int64_t end) {
  const std::int64_t count = (product.weights->columns + kPanel - 1) / kPanel;
  std::int64_t block = 0;
  do {
    std::int64_t panel = 0;
    for (std::int64_t panels = level.panels; panels > 0; panels /= 2) {
      for (; panel + panels <= count; panel += panels) {
        multiply_panels(product, level, block, panel, panels, begin, end);
      }
    }
    block += kBlock;
  } while (block < product.weights->inner);
}

}  // namespace

ProductWeights pack_weights(const std::vector<WeightMatrix>& matrices) {
  ProductWeights packed;
  for (const WeightMatrix& each : matrices) {
    const Shape& shape = each.values.shape();
    packed.columns += shape[each.is_transposed ? 1 : 0];
    packed.inner = shape[each.is_transposed ? 0 : 1];
  }
  const std::int64_t panels = (packed.columns + kPanel - 1) / kPanel;
  packed.panels = Tensor(DType::kFloat32, {panels, packed.inner, kPanel});
  auto* out = packed.panels.as_mutable<float>();
  std::int64_t column = 0;
  for (const WeightMatrix& each : matrices) {
    const auto* from = each.values.as<float>();
    const std::int64_t columns = each.values.shape()[each.is_transposed ? 1 : 0];
    for (std::int64_t c = 0; c < columns; ++c, ++column) {
      float* to = out + column / kPanel * packed.inner * kPanel + column % kPanel;
      for (std::int64_t k = 0; k < packed.inner; ++k) {
        to[k * kPanel] = from[each.is_transposed ? k * columns + c : c * packed.inner + k];
      }
    }
  }
  return packed;
}

std::shared_ptr<const ProductWeights> PackedWeights::take(
    const std::vector<WeightMatrix>& matrices) {
  std::vector<const void*> key;
  for (const WeightMatrix& each : matrices) {
    key.push_back(each.values.data());
    key.push_back(each.is_transposed ? each.values.data() : nullptr);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.packed == nullptr) {
    entry.matrices = matrices;
    entry.packed = std::make_shared<const ProductWeights>(pack_weights(matrices));
  }
  return entry.packed;
}

void multiply_rows(const RowProduct& product, std::int32_t threads) {
  const ProductWeights& weights = *product.weights;
  if (product.rows == 0 || weights.columns == 0) return;
  const Level& level = tile_level();
  const std::int64_t operations =
      product.rows * std::max<std::int64_t>(weights.inner, 1) * weights.columns;
  const auto most = static_cast<std::int64_t>(thread_count(threads));
  const std::int64_t team = std::clamp<std::int64_t>(operations / 500'000, 1, most);
  // Small enough for every thread to have some, and whole tiles.
  constexpr std::int64_t kPiecesOfThread = 4;
  std::int64_t rows = kPieceRows;
  if (team > 1) {
    const std::int64_t share = product.rows / (kPiecesOfThread * team) / kTileRows * kTileRows;
    rows = std::clamp(share, 4 * kTileRows, kPieceRows);
  }
  const std::int64_t count = (product.rows + rows - 1) / rows;
  run_pieces(static_cast<std::size_t>(count), static_cast<std::size_t>(team), [&](std::size_t i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * rows;
    multiply_piece(product, level, begin, std::min(begin + rows, product.rows));
  });
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// A product for each run of rows. How long runs are is known when the program runs, so tasks are
// two blocks of columns of one group: its panel of weights is read from memory once, and for every
// tile of rows from the L2. O(rows * inner * columns / lanes) multiply-adds of vectors.
#include "kernels/product/grouped_product.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/share_work.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kParallelProducts = 65536;  // multiply-adds

/// Some rows times one or two blocks of columns.
struct Tile {
  const float* source;
  const float* weight;
  float* target;
  std::int64_t inner;
  std::int64_t columns;  ///< from a row of the target to the next one
  std::int64_t width;    ///< columns that are stored
};

template <typename V, int kRows, int kBlocks, bool kMultiplyAdds>
[[gnu::always_inline]] inline void multiply(const Tile& tile) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V sums[kRows][kBlocks];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kBlocks; ++j) sums[i][j] = V{};
  }
  const std::int64_t block = tile.inner * kLanes;
  const float* weight = tile.weight;
  for (std::int64_t k = 0; k < tile.inner; ++k) {
    V factor[kBlocks];
#pragma GCC unroll 2
    for (int j = 0; j < kBlocks; ++j) factor[j] = load_vector<V>(weight + j * block);
    weight += kLanes;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V each = tile.source[i * tile.inner + k] - V{};
#pragma GCC unroll 2
      for (int j = 0; j < kBlocks; ++j) {
        if constexpr (kMultiplyAdds) {
          multiply_add(sums[i][j], each, factor[j]);
        } else {
          sums[i][j] += each * factor[j];
        }
      }
    }
  }
  if (tile.width == kBlocks * kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kBlocks; ++j) {
        store_vector(tile.target + i * tile.columns + j * kLanes, sums[i][j]);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    float row[kBlocks * kLanes];
#pragma GCC unroll 2
    for (int j = 0; j < kBlocks; ++j) store_vector(row + j * kLanes, sums[i][j]);
    std::copy_n(row, tile.width, tile.target + i * tile.columns);
  }
}

using Multiply = void (*)(const Tile&);

template <int kRows, int kBlocks>
NPU_TARGET_AVX512 void multiply_avx512(const Tile& tile) {
  multiply<Float16, kRows, kBlocks, true>(tile);
}
template <int kRows, int kBlocks>
NPU_TARGET_AVX2 void multiply_avx2(const Tile& tile) {
  multiply<NarrowFloats, kRows, kBlocks, true>(tile);
}
template <int kRows, int kBlocks>
void multiply_anywhere(const Tile& tile) {
  multiply<NarrowFloats, kRows, kBlocks, false>(tile);
}

/// For 1 rows and so on.
template <int kBlocks, int... kRows>
constexpr auto kernels_for(VectorIsa isa, std::integer_sequence<int, kRows...> /*rows*/) {
  using Table = std::array<Multiply, sizeof...(kRows)>;
  switch (isa) {
    case VectorIsa::kAvx512:
      return Table{multiply_avx512<kRows + 1, kBlocks>...};
    case VectorIsa::kAvx2:
      return Table{multiply_avx2<kRows + 1, kBlocks>...};
    default:
      return Table{multiply_anywhere<kRows + 1, kBlocks>...};
  }
}

using MostRows = std::make_integer_sequence<int, kTileRowsOf<Float16>>;

}  // namespace

void GroupedProduct::run(const Operands& operands) const {
  std::int64_t last = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    if (operands.ends[g] < last || operands.ends[g] > rows) {
      throw Error(ErrorCode::kFailed, node + ": offsets do not ascend up to " +
                                          std::to_string(rows) + ", the number of rows");
    }
    last = operands.ends[g];
  }
  std::fill(operands.target + last * columns, operands.target + rows * columns, 0.0F);
  const auto one = kernels_for<1>(isa, MostRows{});
  const auto two = kernels_for<2>(isa, MostRows{});
  const std::int64_t lanes = lanes_of(isa);
  const std::int64_t panels = ceil_div(blocks(), 2);
  const std::int64_t most = tile_rows(isa);
  const int threads = threads_for(last * inner * columns >= kParallelProducts);
  share_pieces(groups * panels, threads, [&](std::int64_t piece, int) {
    const std::int64_t group = piece / panels;
    const std::int64_t block = piece % panels * 2;
    const auto& kernels = block + 1 < blocks() ? two : one;
    const std::int64_t width =
        std::min(columns - block * lanes, (block + 1 < blocks() ? 2 : 1) * lanes);
    const std::int64_t end = operands.ends[group];
    for (std::int64_t row = group == 0 ? 0 : operands.ends[group - 1]; row < end;) {
      const std::int64_t count = std::min(most, end - row);
      kernels[static_cast<std::size_t>(count - 1)](
          {operands.source + row * inner,
           operands.weight + (group * blocks() + block) * inner * lanes,
           operands.target + row * columns + block * lanes, inner, columns, width});
      row += count;
    }
  });
}

Footprint footprint(const GroupedProduct& kernel) {
  const Count groups = at_least_one(kernel.groups, "groups");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count columns = at_least_one(kernel.columns, "columns");
  return FootprintBuilder()
      .read(rows * inner)
      .read(groups * inner * Count{kernel.blocks()} * lanes_of(kernel.isa))
      .read(groups, 8)
      .write(rows * columns)
      .done();
}

}  // namespace npu::onednn

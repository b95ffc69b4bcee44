// SPDX-License-Identifier: Apache-2.0
// Segment reduction over compressed rows, the aggregation of graph neural networks on a CPU.
//
// Some columns of a row are summed, or their largest found, in registers over all of its edges and
// stored once, finished;
// the rows that they come from stream in, the first lines of the ones behind being fetched
// meanwhile. Elements are float32 or bfloat16, sums float32 in the order of the edges. O(edges *
// width), with no memory besides the output but values per edge for some rows at a time. Threads
// take pieces of contiguous rows with about the same number of edges.
//
// The loops are compiled for AVX-512, AVX2 and the compiler's least level, which is NEON on ARM;
// NPU_MAX_ISA lowers the level. ASan and TSan have the least one.
#include "rows/segment_reduce.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "device/isa_level.hpp"
#include "rows/row_vectors.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu {
namespace {

/// A row of the result, or one head of it.
struct Row {
  const SegmentReduce* reduce;
  std::int64_t row;
  std::int64_t first_column;  ///< of the head
  const float* weights;       ///< of the row's first edge; null: all 1
  std::int64_t size;          ///< heads * width
  std::int64_t stride;        ///< of x
};

// Edges ahead whose rows are fetched, and how many lines of each: the hardware follows a row once
// it has begun.
constexpr std::int64_t kAhead = 3;
constexpr std::int64_t kLines = 8;

template <typename T>
NPU_ROWS_INLINE void prefetch(const T* from, std::int64_t count) {
  constexpr std::int64_t kStep = 64 / sizeof(T);
  for (std::int64_t i = 0; i < std::min(count, kLines * kStep); i += kStep) {
    __builtin_prefetch(from + i);
  }
}

/// Elements of a vector from `from` on; of the last, partial one the first `rest`.
template <typename V, typename T>
NPU_ROWS_INLINE V load_part(const T* from, std::int64_t rest) {
  return rest == 0 ? load_floats<V>(from) : load_some<V>(from, rest);
}

/// Sums of the rows of the edges, each times its weight, or the largest of each column.
template <typename V, int kVectors, typename T, bool kHasWeights, bool kLargest>
NPU_ROWS_INLINE void combine_edges(const Row& row, std::int64_t column, std::int64_t rest,
                                   V (&sums)[kVectors]) {
  const SegmentReduce& reduce = *row.reduce;
  const auto* x = static_cast<const T*>(reduce.x.data) + row.first_column + column;
  const std::int64_t begin = reduce.offsets[row.row];
  const std::int64_t end = reduce.offsets[row.row + 1];
  const std::int64_t last = reduce.offsets[reduce.rows] - 1;
  const float* weight = row.weights;
  const V first = kLargest && begin < end ? V{} - std::numeric_limits<float>::infinity() : V{};
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) sums[i] = first;
  for (std::int64_t e = begin; e < end; ++e) {
    const std::int64_t source = reduce.sources == nullptr ? e : reduce.sources[e];
    if (reduce.sources != nullptr) {
      prefetch(x + reduce.sources[std::min(e + kAhead, last)] * row.stride,
               kVectors * kFloatsOf<V>);
    }
    const T* from = x + source * row.stride;
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) {
      const V value = load_part<V>(from + i * kFloatsOf<V>, rest);
      if constexpr (kLargest) {
        const V message = kHasWeights ? *weight * value : value;
        // NaN stays: nothing is at most it.
        sums[i] = ((message <= sums[i]) | (sums[i] != sums[i])) ? sums[i] : message;
      } else if constexpr (kHasWeights) {
        sums[i] += *weight * value;
      } else {
        sums[i] += value;
      }
    }
    if constexpr (kHasWeights) weight += reduce.heads;
  }
}

/// Adds factor * the row's elements.
template <typename V, int kVectors, typename T>
NPU_ROWS_INLINE void add_typed(const T* from, float factor, std::int64_t rest,
                               V (&sums)[kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    sums[i] += factor * load_part<V>(from + i * kFloatsOf<V>, rest);
  }
}

template <typename V, int kVectors>
NPU_ROWS_INLINE void add_row(const RowsOf& rows, const Row& row, std::int64_t column, float factor,
                             std::int64_t rest, V (&sums)[kVectors]) {
  const std::int64_t place =
      row.row * (rows.stride > 0 ? rows.stride : row.size) + row.first_column + column;
  if (rows.is_bfloat16) {
    add_typed(static_cast<const std::uint16_t*>(rows.data) + place, factor, rest, sums);
  } else {
    add_typed(static_cast<const float*>(rows.data) + place, factor, rest, sums);
  }
}

template <typename V, int kVectors, typename T>
NPU_ROWS_INLINE void store_typed(T* to, std::int64_t rest, const V (&sums)[kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    if (rest == 0) {
      store_floats(to + i * kFloatsOf<V>, sums[i]);
    } else {
      store_some(to, sums[i], rest);
    }
  }
}

template <typename V, int kVectors>
NPU_ROWS_INLINE void finish(const Row& row, std::int64_t column, std::int64_t rest,
                            V (&sums)[kVectors]) {
  const SegmentReduce& reduce = *row.reduce;
  const std::int64_t degree = reduce.offsets[row.row + 1] - reduce.offsets[row.row];
  if (reduce.aggregate == Aggregate::kMean && degree > 1) {
    const auto divisor = static_cast<float>(degree);
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) sums[i] /= divisor;
  }
  if (reduce.own) {
    add_row(reduce.own, row, column, reduce.own_factors[row.row], rest, sums);
  }
  if (reduce.bias != nullptr) {
    add_typed(reduce.bias + row.first_column + column, 1.0F, rest, sums);
  }
  if (reduce.addend) add_row(reduce.addend, row, column, 1.0F, rest, sums);
  if (reduce.relu) {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) sums[i] = sums[i] < 0.0F ? V{} : sums[i];
  }
  const std::int64_t place = row.row * row.size + row.first_column + column;
  if (reduce.out_is_bfloat16) {
    store_typed(static_cast<std::uint16_t*>(reduce.out) + place, rest, sums);
  } else {
    store_typed(static_cast<float*>(reduce.out) + place, rest, sums);
  }
}

template <typename V, int kVectors, typename T>
NPU_ROWS_INLINE void combine_typed(const Row& row, std::int64_t column, std::int64_t rest,
                                   V (&sums)[kVectors]) {
  const bool has_weights = row.weights != nullptr;
  if (row.reduce->aggregate == Aggregate::kLargest) {
    has_weights ? combine_edges<V, kVectors, T, true, true>(row, column, rest, sums)
                : combine_edges<V, kVectors, T, false, true>(row, column, rest, sums);
  } else {
    has_weights ? combine_edges<V, kVectors, T, true, false>(row, column, rest, sums)
                : combine_edges<V, kVectors, T, false, false>(row, column, rest, sums);
  }
}

template <typename V, int kVectors>
NPU_ROWS_INLINE void reduce_columns(const Row& row, std::int64_t column, std::int64_t rest) {
  V sums[kVectors];
  row.reduce->x.is_bfloat16 ? combine_typed<V, kVectors, std::uint16_t>(row, column, rest, sums)
                            : combine_typed<V, kVectors, float>(row, column, rest, sums);
  finish(row, column, rest, sums);
}

/// All columns of the row: as many vectors at a time as registers hold, the rest in halves, the
/// last elements by themselves.
template <typename V, int kVectors>
NPU_ROWS_INLINE void reduce_row(const Row& row, std::int64_t column) {
  const std::int64_t width = row.reduce->width;
  for (; column + kVectors * kFloatsOf<V> <= width; column += kVectors * kFloatsOf<V>) {
    reduce_columns<V, kVectors>(row, column, 0);
  }
  if constexpr (kVectors > 1) {
    reduce_row<V, kVectors / 2>(row, column);
  } else if (column < width) {
    // A whole vector that ends with the row computes some elements twice, which is faster, unless
    // the result lies where an operand was.
    if (width >= kFloatsOf<V> && row.reduce->addend.data != row.reduce->out) {
      reduce_columns<V, 1>(row, width - kFloatsOf<V>, 0);
    } else {
      reduce_columns<V, 1>(row, column, width - column);
    }
  }
}

/// Rows [begin, end); `weights` are those of the first one's first edge.
template <typename V, int kVectors>
NPU_ROWS_INLINE void reduce_rows_with(const SegmentReduce& reduce, const float* weights,
                                      std::int64_t begin, std::int64_t end) {
  const std::int64_t size = reduce.heads * reduce.width;
  const std::int64_t stride = reduce.x.stride > 0 ? reduce.x.stride : size;
  for (std::int64_t v = begin; v < end; ++v) {
    for (std::int64_t h = 0; h < reduce.heads; ++h) {
      reduce_row<V, kVectors>(
          {&reduce, v, h * reduce.width, weights == nullptr ? nullptr : weights + h, size, stride},
          0);
    }
    if (weights != nullptr) weights += (reduce.offsets[v + 1] - reduce.offsets[v]) * reduce.heads;
  }
}

using ReduceRows = SegmentPieces::ReduceRows;

#if NPU_ROWS_HAVE_LEVELS
NPU_ROWS_AVX512 void reduce_rows_avx512(const SegmentReduce& reduce, const float* weights,
                                        std::int64_t begin, std::int64_t end) {
  reduce_rows_with<Floats16, 16>(reduce, weights, begin, end);
}
NPU_ROWS_AVX2 void reduce_rows_avx2(const SegmentReduce& reduce, const float* weights,
                                    std::int64_t begin, std::int64_t end) {
  reduce_rows_with<Floats8, 8>(reduce, weights, begin, end);
}
#endif

void reduce_rows_generic(const SegmentReduce& reduce, const float* weights, std::int64_t begin,
                         std::int64_t end) {
  reduce_rows_with<Floats4, 8>(reduce, weights, begin, end);
}

ReduceRows choose_level() {
#if NPU_ROWS_HAVE_LEVELS
  if (cpu_has(CpuFeature::kAvx512)) return reduce_rows_avx512;
  if (cpu_has(CpuFeature::kAvx2)) return reduce_rows_avx2;
#endif
  return reduce_rows_generic;
}

/// Rows next to each other, some at a time if their weights have to be computed.
void reduce_range(const SegmentReduce& reduce, ReduceRows level, std::int64_t begin,
                  std::int64_t end) {
  if (reduce.weight_steps.empty()) {
    const float* weights =
        reduce.weights == nullptr ? nullptr : reduce.weights + reduce.offsets[begin] * reduce.heads;
    return level(reduce, weights, begin, end);
  }
  constexpr std::int64_t kValuesAtATime = 512;
  thread_local std::vector<std::vector<float>> values;
  EdgeRange range{reduce.offsets,
                  reduce.nodes_of_edges == nullptr ? reduce.sources : reduce.nodes_of_edges, begin,
                  begin, reduce.heads};
  while (range.first_row < end) {
    range.last_row = range.first_row + 1;
    while (range.last_row < end && range.edges() * reduce.heads < kValuesAtATime) ++range.last_row;
    level(reduce, edge_values(reduce.weight_steps, range, values), range.first_row, range.last_row);
    range.first_row = range.last_row;
  }
}

/// The rows of a piece that are wanted.
void reduce_piece(const SegmentReduce& reduce, ReduceRows level, std::int64_t begin,
                  std::int64_t end) {
  if (reduce.group == nullptr) return reduce_range(reduce, level, begin, end);
  const auto is_wanted = [&](std::int64_t v) { return reduce.group[v] == reduce.wanted_group; };
  while (begin < end) {
    if (!is_wanted(begin)) {
      ++begin;
      continue;
    }
    std::int64_t next = begin + 1;
    while (next < end && is_wanted(next)) ++next;
    reduce_range(reduce, level, begin, next);
    begin = next;
  }
}

/// The first row of one of `count` pieces with about the same number of edges and rows.
std::int64_t piece_begin(const SegmentReduce& reduce, std::int64_t piece, std::int64_t count) {
  if (piece == count) return reduce.rows;
  const std::int64_t wanted = (reduce.offsets[reduce.rows] + reduce.rows) * piece / count;
  std::int64_t low = 0;
  std::int64_t high = reduce.rows;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (reduce.offsets[middle] + middle < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

SegmentPieces::SegmentPieces(const SegmentReduce& reduce, std::int64_t threads)
    : reduce_(reduce), level_(choose_level()) {
  if (reduce.rows == 0 || reduce.heads * reduce.width == 0) return;
  const std::int64_t work =
      (reduce.offsets[reduce.rows] + reduce.rows) * reduce.heads * reduce.width;
  constexpr std::int64_t kPieces = 8;
  team_ = std::clamp<std::int64_t>(work / 100'000, 1, threads);
  count_ = team_ == 1 ? 1 : kPieces * team_;
}

void SegmentPieces::run(std::int64_t piece) const {
  reduce_piece(reduce_, level_, piece_begin(reduce_, piece, count_),
               piece_begin(reduce_, piece + 1, count_));
}

void segment_reduce(const SegmentReduce& reduce, std::int32_t threads) {
  const SegmentPieces pieces(reduce, static_cast<std::int64_t>(thread_count(threads)));
  run_pieces(static_cast<std::size_t>(pieces.count()), static_cast<std::size_t>(pieces.team()),
             [&](std::size_t t) { pieces.run(static_cast<std::int64_t>(t)); });
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rows/edge_values.hpp"

namespace npu {

/// Rows of float32 or, as 16 bits each, bfloat16.
struct RowsOf {
  const void* data = nullptr;  ///< null: none
  bool is_bfloat16 = false;
  std::int64_t stride = 0;  ///< elements between rows; 0: heads * width

  explicit operator bool() const noexcept { return data != nullptr; }
};

/// What becomes of the rows of a segment.
enum class Aggregate : std::uint8_t {
  kSum,
  kMean,     ///< the sum over the number of edges, at least 1
  kLargest,  ///< of each column; NaN is larger than all numbers, without edges it is 0
};

/// sum over the edges e of row v of weight[e, h] * x[source[e], h, :] for every row: gather,
/// message and reduce_sum in one pass, without the messages in memory. Sums are float32.
struct SegmentReduce {
  const std::int64_t* offsets = nullptr;         ///< rows + 1
  const std::int32_t* sources = nullptr;         ///< row of x by edge; null: edge e reads row e
  RowsOf x;                                      ///< [*, heads, width]
  const float* weights = nullptr;                ///< [edges, heads]; null: all 1, or those of
  std::span<const EdgeStep> weight_steps;        ///< if there are any
  const std::int32_t* nodes_of_edges = nullptr;  ///< what kSource reads; null: `sources`
  void* out = nullptr;                           ///< [rows, heads, width], overwritten
  bool out_is_bfloat16 = false;
  std::int64_t rows = 0;
  std::int64_t heads = 1;
  std::int64_t width = 1;
  Aggregate aggregate = Aggregate::kSum;
  // What is done to a row before it is stored, in this order.
  RowsOf own;                          ///< [rows, heads, width], times `own_factors`, added
  const float* own_factors = nullptr;  ///< [rows]
  const float* bias = nullptr;         ///< [heads, width], added; null: none
  RowsOf addend;                       ///< [rows, heads, width], added; may be `out`
  bool relu = false;
  // Which rows are computed, the others staying as they are: all if `group` is null, else those v
  // with group[v] == wanted_group.
  const char* group = nullptr;
  char wanted_group = 0;
};

/// The rows of a reduction in pieces with about the same number of edges and rows, for callers with
/// threads of their own. The result depends neither on their number nor on their order.
class SegmentPieces {
 public:
  using ReduceRows = void (*)(const SegmentReduce& reduce, const float* weights, std::int64_t begin,
                              std::int64_t end);

  /// For up to `threads` threads. Refers to `reduce`. Throws what cpu_has throws.
  SegmentPieces(const SegmentReduce& reduce, std::int64_t threads);
  /// Threads that are worth it.
  std::int64_t team() const noexcept { return team_; }
  /// 0 if there is nothing to do.
  std::int64_t count() const noexcept { return count_; }
  /// Any thread may call, once for each piece below count().
  void run(std::int64_t piece) const;

 private:
  const SegmentReduce& reduce_;
  ReduceRows level_;
  std::int64_t team_ = 1;
  std::int64_t count_ = 0;
};

/// Runs on `threads` threads (0: all cores) that the process keeps.
void segment_reduce(const SegmentReduce& reduce, std::int32_t threads);

}  // namespace npu

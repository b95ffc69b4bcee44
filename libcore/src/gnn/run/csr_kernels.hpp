// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace npu::gnn {

/// sum over the edges e of row v of weight[e, h] * x[source[e], h, :] for every row: gather,
/// message and reduce_sum in one pass, without the messages in memory.
struct SegmentReduce {
  const std::int64_t* offsets = nullptr;  ///< rows + 1
  const std::int32_t* sources = nullptr;  ///< row of x by edge; null: edge e reads row e
  const float* x = nullptr;               ///< [*, heads, width]
  std::int64_t x_stride = 0;              ///< elements between rows of x; 0: heads * width
  const float* weights = nullptr;         ///< [edges, heads]; null: all 1
  float* out = nullptr;                   ///< [rows, heads, width], overwritten
  std::int64_t rows = 0;
  std::int64_t heads = 1;
  std::int64_t width = 1;
  bool mean = false;  ///< divides by the number of edges of the row, at least 1
  // What is done to a row before it is stored, in this order.
  const float* bias = nullptr;     ///< [heads, width], added; null: none
  const float* addend = nullptr;   ///< [rows, heads, width], added; may be `out`; null: none
  std::int64_t addend_stride = 0;  ///< elements between rows of it; 0: heads * width
  bool relu = false;
};

/// Runs on `threads` threads (0: all cores); rows are dealt out by edges. The result does not
/// depend on the number of threads.
void segment_reduce(const SegmentReduce& reduce, std::int32_t threads);

}  // namespace npu::gnn

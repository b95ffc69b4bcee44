// SPDX-License-Identifier: Apache-2.0
// Segment reduction over compressed rows, the aggregation of graph neural networks on a CPU.
//
// Each row is summed into its place in the output, which stays in L1, while the rows that it reads
// stream in; the next edge's row is prefetched. O(edges * width), with no memory besides the
// output. Threads take pieces of contiguous rows with about the same number of edges.
#include "gnn/run/csr_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "support/thread_pool.hpp"

namespace npu::gnn {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NPU_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define NPU_CLONES
#endif

NPU_CLONES void add_row(float* __restrict out, const float* __restrict x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += x[i];
}

NPU_CLONES void add_scaled_row(float* __restrict out, const float* __restrict x, float scale,
                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += scale * x[i];
}

NPU_CLONES void divide_row(float* __restrict out, float divisor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] /= divisor;
}

/// out = factor * sum + bias + addend, at least 0 if asked for; a NaN stays.
NPU_CLONES void finish_row(float* out, const float* __restrict sum, float factor,
                           const float* __restrict bias, const float* addend, bool relu,
                           std::int64_t count) {
  if (bias != nullptr && addend != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = sum[i] * factor + bias[i] + addend[i];
  } else if (bias != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = sum[i] * factor + bias[i];
  } else if (addend != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = sum[i] * factor + addend[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = sum[i] * factor;
  }
  if (!relu) return;
  for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] < 0.0F ? 0.0F : out[i];
}

void prefetch_row(const float* row, std::int64_t count) {
  // The hardware follows a row once it has begun; its first lines have to be asked for.
  const std::int64_t lines = std::min<std::int64_t>(count, 128);
  for (std::int64_t i = 0; i < lines; i += 16) __builtin_prefetch(row + i);
}

void reduce_rows(const SegmentReduce& reduce, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = reduce.heads * reduce.width;
  const std::int64_t stride = reduce.x_stride > 0 ? reduce.x_stride : size;
  const std::int64_t addend_stride = reduce.addend_stride > 0 ? reduce.addend_stride : size;
  const std::int64_t last_edge = reduce.offsets[reduce.rows];
  const bool finishes = reduce.bias != nullptr || reduce.addend != nullptr || reduce.relu;
  std::vector<float> sums(finishes ? static_cast<std::size_t>(size) : 0);
  for (std::int64_t v = begin; v < end; ++v) {
    float* out = finishes ? sums.data() : reduce.out + v * size;
    std::fill(out, out + size, 0.0F);
    for (std::int64_t e = reduce.offsets[v]; e < reduce.offsets[v + 1]; ++e) {
      const std::int64_t source = reduce.sources == nullptr ? e : reduce.sources[e];
      if (reduce.sources != nullptr && e + 2 < last_edge) {
        prefetch_row(reduce.x + reduce.sources[e + 2] * stride, size);
      }
      const float* row = reduce.x + source * stride;
      if (reduce.weights == nullptr) {
        add_row(out, row, size);
      } else {
        for (std::int64_t h = 0; h < reduce.heads; ++h) {
          add_scaled_row(out + h * reduce.width, row + h * reduce.width,
                         reduce.weights[e * reduce.heads + h], reduce.width);
        }
      }
    }
    if (finishes) {
      const std::int64_t degree = reduce.offsets[v + 1] - reduce.offsets[v];
      const float factor = reduce.mean && degree > 1 ? 1.0F / static_cast<float>(degree) : 1.0F;
      finish_row(reduce.out + v * size, out, factor, reduce.bias,
                 reduce.addend == nullptr ? nullptr : reduce.addend + v * addend_stride,
                 reduce.relu, size);
    } else if (reduce.mean) {
      const std::int64_t degree = reduce.offsets[v + 1] - reduce.offsets[v];
      if (degree > 1) divide_row(out, static_cast<float>(degree), size);
    }
  }
}

}  // namespace

void segment_reduce(const SegmentReduce& reduce, std::int32_t threads) {
  if (reduce.rows == 0) return;
  const std::int64_t edges = reduce.offsets[reduce.rows];
  const std::int64_t work = (edges + reduce.rows) * reduce.heads * reduce.width;
  std::int64_t count = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t team = std::clamp<std::int64_t>(work / 100'000, 1, count);
  // Row bounds with the same share of edges plus rows: some pieces for each thread.
  constexpr std::int64_t kPieces = 8;
  count = team == 1 ? 1 : kPieces * team;
  std::vector<std::int64_t> bounds{0};
  for (std::int64_t t = 1; t < count; ++t) {
    const std::int64_t wanted = (edges + reduce.rows) * t / count;
    std::int64_t low = bounds.back();
    std::int64_t high = reduce.rows;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (reduce.offsets[middle] + middle < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    bounds.push_back(low);
  }
  bounds.push_back(reduce.rows);
  run_pieces(static_cast<std::size_t>(count), static_cast<std::size_t>(team),
             [&](std::size_t t) { reduce_rows(reduce, bounds[t], bounds[t + 1]); });
}

}  // namespace npu::gnn

// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a PackedGemm is cut into tasks, and k into runs. The order of packed weights follows from the
// KC blocks.

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/product/packed_gemm.hpp"

namespace npu::onednn::packed_gemm {

inline constexpr std::int64_t kStep = 16;             // k and columns are cut in steps of this many
inline constexpr std::int64_t kMaxRows = 112;         // of a task
inline constexpr std::int64_t kMinTaskRows = 24;      // worth a task of their own
inline constexpr std::int64_t kMaxRun = 1024;         // of k: rows and two panels stay in the L2
inline constexpr std::int64_t kMaxStrassenRun = 768;  // where there are 7 / 4 as many rows
inline constexpr std::int64_t kPadding =
    9 * kStep;                             // copies 4 KiB apart would share places in a cache
inline constexpr std::int64_t kTasks = 4;  // for each thread, wanted
inline constexpr std::int64_t kMinTaskColumns = 768;  // of a task: copies are then worth their time
inline constexpr std::int64_t kMinNarrowColumns = 128;  // the same with vectors of 8 floats

/// Vectors of 8 floats: the multiplications of a task then take longer beside its copies.
inline bool is_narrow(const PackedGemm& call) { return lanes_of(call.isa) == 8; }

/// Into how many tasks the columns may be cut.
inline std::int64_t most_column_groups(const PackedGemm& call) {
  const bool copies_are_cheap = is_narrow(call) && !call.use_strassen;
  const std::int64_t least = copies_are_cheap ? kMinNarrowColumns : kMinTaskColumns;
  return std::max<std::int64_t>(1, call.columns / least);
}

/// Into how many tasks the rows are cut. With Strassen's step, that decides how results are
/// rounded, and must not depend on the number of threads. Each chunk of rows reads all weights and
/// each group of columns copies all rows: with narrow vectors as few chunks as columns allow are
/// shorter (0.8 to 0.9 of the time of bert_base with two threads); wider ones are measured with
/// more.
inline std::int64_t row_chunks(const PackedGemm& call) {
  const std::int64_t least = ceil_div(call.rows, kMaxRows);
  if (call.use_strassen) return least <= 4 ? least : ceil_div(least, 4) * 4;  // to be shared evenly
  const std::int64_t groups = is_narrow(call) ? most_column_groups(call) : 1;
  const std::int64_t wanted = ceil_div(kTasks * call.threads, call.images * groups);
  return std::max(least, std::min(wanted, call.rows / kMinTaskRows));
}

/// k is cut in steps of this many.
inline std::int64_t run_step(const PackedGemm& call) {
  return call.has_strassen_order() ? 2 * kStep : kStep;
}

inline std::int64_t runs(const PackedGemm& call) {
  return ceil_div(call.inner, call.has_strassen_order() ? kMaxStrassenRun : kMaxRun);
}

inline std::int64_t run_begin(const PackedGemm& call, std::int64_t run) {
  const std::int64_t step = run_step(call);
  return call.inner / step * run / runs(call) * step;
}

/// Columns of weights that lie together: two vectors.
inline std::int64_t panel(const PackedGemm& call) { return 2 * lanes_of(call.isa); }

inline std::int64_t unit_columns(const PackedGemm& call) {
  return call.use_strassen ? 2 * panel(call) : panel(call);
}

inline std::int64_t units(const PackedGemm& call) {
  return ceil_div(call.columns, unit_columns(call));
}

/// Into how many tasks the columns are cut.
inline std::int64_t column_groups(const PackedGemm& call) {
  const std::int64_t tasks = call.images * row_chunks(call);
  const std::int64_t wanted = ceil_div(kTasks * call.threads, tasks);
  const std::int64_t needed = ceil_div(call.threads, tasks);
  const std::int64_t groups = std::max(needed, std::min(wanted, most_column_groups(call)));
  const std::int64_t even = call.threads / std::gcd(tasks, call.threads);
  return std::min(units(call), ceil_div(groups, even) * even);
}

/// Where the parts of a thread's scratch memory begin, in floats.
struct Scratch {
  std::int64_t copy = 0;      ///< floats of one copy
  std::int64_t products = 0;  ///< results of products, [8 or 1][rows][kPanel]
  std::int64_t difference = 0;
  std::int64_t panels = 0;   ///< of a unit, where weights are not floats
  std::int64_t partial = 0;  ///< sums of earlier runs
  std::int64_t all = 0;
};

inline Scratch scratch_of(const PackedGemm& call) {
  const std::int64_t most_rows = ceil_div(call.rows, row_chunks(call));
  const std::int64_t rows = call.use_strassen ? ceil_div(most_rows, 2) : most_rows;
  const std::int64_t step = run_step(call);
  const std::int64_t longest = ceil_div(call.inner / step, runs(call)) * step;
  const std::int64_t length = call.use_strassen ? longest / 2 : longest;
  Scratch result;
  result.copy = rows * length + kPadding;
  result.products = (call.use_strassen ? 7 : 1) * result.copy;
  result.difference = result.products + (call.use_strassen ? 8 : 1) * rows * panel(call) + kPadding;
  result.panels = result.difference + (call.use_strassen ? length * panel(call) + kPadding : 0);
  result.partial =
      result.panels +
      (call.weight_type != DType::kFloat32 ? longest * unit_columns(call) + kPadding : 0);
  const std::int64_t columns = ceil_div(units(call), column_groups(call)) * unit_columns(call);
  const std::int64_t padded_rows = call.use_strassen ? 2 * rows : rows;
  result.all = result.partial + (runs(call) > 1 ? padded_rows * columns : 0);
  return result;
}

}  // namespace npu::onednn::packed_gemm

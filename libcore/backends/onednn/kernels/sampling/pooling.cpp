// SPDX-License-Identifier: Apache-2.0
// Pooling of row-major planes. The rows of a window become one first, in vectors along the plane's
// rows, and then the columns of that one: O(rows of a window) for each element of the source and
// O(columns of a window) for each result. Sums are float64.
#include "kernels/sampling/pooling.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kMostColumns = 1024;  ///< of the source that are worked on at a time

/// NaN stays; without branches, so that loops become vectors.
struct Maximum {
  using Sum = float;
  static constexpr Sum kStart = -std::numeric_limits<float>::infinity();
  [[gnu::always_inline]] static Sum join(Sum sum, Sum value) {
    return (static_cast<int>(value <= sum) | static_cast<int>(sum != sum)) != 0 ? sum : value;
  }
  [[gnu::always_inline]] static float result(Sum sum, double /*divisor*/) { return sum; }
};
struct Total {
  using Sum = double;
  static constexpr Sum kStart = 0.0;
  [[gnu::always_inline]] static Sum join(Sum sum, Sum value) { return sum + value; }
  [[gnu::always_inline]] static float result(Sum sum, double divisor) {
    return static_cast<float>(sum / divisor);
  }
};

/// Rows of results, counted over all planes.
struct PooledRows {
  const WindowPool* call;
  const std::byte* source;
  std::byte* target;
  std::int64_t begin;
  std::int64_t end;
};

/// The windows in the outer two dimensions of one row of results, in a plane.
template <typename T>
struct OuterWindow {
  const T* plane;
  const Window* slice;
  const Window* row;
  const WindowPool* call;
};

/// Its rows joined into one, columns [first, end) of the source.
template <typename Op, typename T>
[[gnu::always_inline]] inline void join_rows(const OuterWindow<T>& window, std::int64_t first,
                                             std::int64_t end,
                                             typename Op::Sum* __restrict joined) {
  const WindowPool& call = *window.call;
  const std::int64_t columns = end - first;
  for (std::int64_t i = 0; i < columns; ++i) joined[i] = Op::kStart;
  for (std::int64_t z = window.slice->begin; z < window.slice->end; z += call.step[0]) {
    for (std::int64_t y = window.row->begin; y < window.row->end; y += call.step[1]) {
      const T* from = window.plane + (z * call.extents[1] + y) * call.extents[2] + first;
      for (std::int64_t i = 0; i < columns; ++i) {
        joined[i] = Op::join(joined[i], static_cast<typename Op::Sum>(load(from[i])));
      }
    }
  }
}

/// The only row of a window, where its elements are what sums are made of; else null.
template <typename Sum, typename T>
[[gnu::always_inline]] inline const Sum* own_row(const OuterWindow<T>& window) {
  if constexpr (std::is_same_v<Sum, T>) {
    const Window* slice = window.slice;
    const Window* row = window.row;
    if (slice->end - slice->begin == 1 && row->end - row->begin == 1) {
      return window.plane +
             (slice->begin * window.call->extents[1] + row->begin) * window.call->extents[2];
    }
  }
  return nullptr;
}

/// Windows of one width and divisor whose columns begin at equal distances.
struct ColumnRun {
  std::int64_t count;
  std::int64_t width;
  std::int64_t stride;
};

/// The longest one from `at` on that reads at most kMostColumns; one window may be wider.
inline ColumnRun even_run(const std::vector<Window>& columns, std::size_t at) {
  const Window& first = columns[at];
  ColumnRun run{1, first.end - first.begin, 1};
  if (at + 1 == columns.size() || columns[at + 1].begin < first.begin) return run;
  run.stride = columns[at + 1].begin - first.begin;
  const std::int64_t fit = (kMostColumns - run.width) / std::max<std::int64_t>(1, run.stride) + 1;
  const std::int64_t most =
      std::min({fit, kMostColumns, std::ssize(columns) - static_cast<std::int64_t>(at)});
  std::int64_t begin = first.begin + run.stride;
  for (; run.count < most; ++run.count, begin += run.stride) {
    const Window& next = columns[at + static_cast<std::size_t>(run.count)];
    if (next.begin != begin || next.end != begin + run.width || next.divisor != first.divisor)
      break;
  }
  return run;
}

/// Of each window in turn, so that vectors go along the results. `kStride` is 0 for any.
template <typename Op, std::int64_t kStride>
[[gnu::always_inline]] inline void join_columns(const ColumnRun& run, std::int64_t step,
                                                const typename Op::Sum* __restrict joined,
                                                typename Op::Sum* __restrict sums) {
  const std::int64_t stride = kStride != 0 ? kStride : run.stride;
  for (std::int64_t i = 0; i < run.count; ++i) sums[i] = Op::kStart;
  for (std::int64_t x = 0; x < run.width; x += step) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): all that a run reads is joined before
      sums[i] = Op::join(sums[i], joined[i * stride + x]);
    }
  }
}

/// A window with more columns than are worked on at a time.
template <typename Op, typename T>
[[gnu::always_inline]] inline typename Op::Sum wide_sum(const OuterWindow<T>& window,
                                                        const Window& column,
                                                        typename Op::Sum* joined) {
  const std::int64_t step = window.call->step[2];
  const std::int64_t part = std::max<std::int64_t>(1, kMostColumns / step) * step;
  typename Op::Sum sum = Op::kStart;
  for (std::int64_t x = column.begin; x < column.end; x += part) {
    const std::int64_t end = std::min(x + std::min(part, kMostColumns), column.end);
    join_rows<Op>(window, x, end, joined);
    for (std::int64_t i = 0; i < end - x; i += step) sum = Op::join(sum, joined[i]);
  }
  return sum;
}

template <typename Op, typename T>
[[gnu::always_inline]] inline void pool_row(const OuterWindow<T>& window, T* target) {
  using Sum = typename Op::Sum;
  Sum joined[kMostColumns];
  Sum sums[kMostColumns];
  const WindowPool& call = *window.call;
  const std::vector<Window>& columns = call.windows[2];
  for (std::size_t at = 0; at < columns.size();) {
    const Window& first = columns[at];
    const ColumnRun run = even_run(columns, at);
    if (run.width > kMostColumns) {
      sums[0] = wide_sum<Op>(window, first, joined);
    } else {
      const Sum* from = own_row<Sum>(window);
      if (from != nullptr) {
        from += first.begin;
      } else {
        join_rows<Op>(window, first.begin, first.end + (run.count - 1) * run.stride, joined);
        from = joined;
      }
      if (run.stride == 1) {
        join_columns<Op, 1>(run, call.step[2], from, sums);
      } else if (run.stride == 2) {
        join_columns<Op, 2>(run, call.step[2], from, sums);
      } else {
        join_columns<Op, 0>(run, call.step[2], from, sums);
      }
    }
    const std::int64_t divisor = call.divisor_override != 0
                                     ? call.divisor_override
                                     : window.slice->divisor * window.row->divisor * first.divisor;
    for (std::int64_t i = 0; i < run.count; ++i) {
      store(target[at + static_cast<std::size_t>(i)],
            Op::result(sums[i], static_cast<double>(divisor)));
    }
    at += static_cast<std::size_t>(run.count);
  }
}

template <typename Op, typename T>
[[gnu::always_inline]] inline void pool_rows(const PooledRows& rows) {
  const WindowPool& call = *rows.call;
  const auto& [slices, heights, columns] = call.windows;
  const std::int64_t elements_of_plane = call.extents[0] * call.extents[1] * call.extents[2];
  const auto height = static_cast<std::int64_t>(heights.size());
  const std::int64_t per_plane = static_cast<std::int64_t>(slices.size()) * height;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    const std::int64_t within = i % per_plane;
    const OuterWindow<T> window{elements<T>(rows.source) + i / per_plane * elements_of_plane,
                                &slices[static_cast<std::size_t>(within / height)],
                                &heights[static_cast<std::size_t>(within % height)], &call};
    pool_row<Op>(window, elements<T>(rows.target) + i * static_cast<std::int64_t>(columns.size()));
  }
}

template <typename Op, typename T>
void rows_anywhere(const PooledRows& rows) {
  pool_rows<Op, T>(rows);
}
template <typename Op, typename T>
NPU_TARGET_AVX2 void rows_avx2(const PooledRows& rows) {
  pool_rows<Op, T>(rows);
}
template <typename Op, typename T>
NPU_TARGET_AVX512 void rows_avx512(const PooledRows& rows) {
  pool_rows<Op, T>(rows);
}

template <typename Op>
auto body_for(const WindowPool& call) {
  return call.type == DType::kFloat32 ? for_isa(call.isa, rows_anywhere<Op, float>,
                                                rows_avx2<Op, float>, rows_avx512<Op, float>)
                                      : for_isa(call.isa, rows_anywhere<Op, BFloat16>,
                                                rows_avx2<Op, BFloat16>, rows_avx512<Op, BFloat16>);
}

}  // namespace

void WindowPool::run(const Operands& operands) const {
  const auto body = is_maximum ? body_for<Maximum>(*this) : body_for<Total>(*this);
  const auto rows = planes * static_cast<std::int64_t>(windows[0].size()) *
                    static_cast<std::int64_t>(windows[1].size());
  const std::int64_t work = planes * extents[0] * extents[1] * extents[2];
  const std::int64_t together = std::max<std::int64_t>(1, kParallelElements / extents[2] / 4);
  share_range(rows, together, threads_for(work >= kParallelElements),
              [&](std::int64_t begin, std::int64_t end) {
                body({this, operands.source, operands.target, begin, end});
              });
}

void require_windows(const std::vector<Window>& windows, std::int64_t extent) {
  constexpr std::int64_t kMaxDivisor = 1 << 20;
  for (const Window& window : windows) {
    require(window.begin >= 0 && window.begin <= window.end && window.end <= extent,
            "a window lies outside its dimension");
    require(window.divisor >= 1 && window.divisor <= kMaxDivisor,
            "the divisor of a window is not in 1..2^20");
  }
}

Footprint footprint(const WindowPool& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  Count source = at_least_one(kernel.planes, "planes");
  Count target = source;
  for (int i = 0; i < 3; ++i) {
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * static_cast<std::int64_t>(kernel.windows[i].size());
    require_windows(kernel.windows[i], kernel.extents[i]);
    require(kernel.step[i] >= 1 && kernel.step[i] <= WindowPool::kMostStep,
            "'step' is not in 1..2^30");
  }
  return FootprintBuilder()
      .read(source, size_of(kernel.type))
      .write(target, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn

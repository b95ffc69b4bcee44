// SPDX-License-Identifier: Apache-2.0
// A product with constant weights in float16.
//
// A task has some rows of an image and some panels of 32 columns. It scales its rows, converts them
// to float16 and copies them into the L2, tile after tile as the innermost loop reads them, and
// multiplies them with one panel after the other. A tile keeps one vector of sums for each of up to
// 14 rows; the element of a row is an operand of the multiply-add, which repeats it. After kRun
// products the sums are added to float32 ones, which lie in the L1.
//
// O(images * rows * inner * columns / 32) multiply-adds of vectors; memory for each thread
// O(rows of a task * inner).
#include "kernels/product/half_gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/product/half_micro_kernel.hpp"
#include "kernels/product/product_spans.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kStep = 16;                        // of k in the copies of rows
constexpr std::int64_t kMaxRows = 112;                    // of a task
constexpr std::int64_t kMaxCopy = std::int64_t{1} << 18;  // numbers of float16, which the L2 holds
constexpr std::int64_t kTasks = 4;                        // for each thread, wanted
constexpr std::int64_t kMinPanels = 8;  // of a task: copies are then worth their time

// Rows are scaled to magnitudes below 2^5, columns to below 2^4.
constexpr int kRowExponent = 5;
constexpr int kColumnExponent = 4;
static_assert((HalfGemm::kRun << (kRowExponent + kColumnExponent)) < 65504, "sums overflow");
constexpr int kMaxExponent = 126;  // of factors, so that they and their inverses are normal numbers

std::int64_t panels_of(std::int64_t columns) { return ceil_div(columns, kHalfColumns); }

std::int64_t half_row_chunks(const HalfGemm& call) {
  const std::int64_t most =
      std::clamp<std::int64_t>(kMaxCopy / call.inner, kHalfTileRows, kMaxRows);
  const std::int64_t wanted = ceil_div(kTasks * call.threads, call.images);
  return std::max(ceil_div(call.rows, most), std::min(wanted, call.rows / kHalfTileRows));
}

std::int64_t half_column_groups(const HalfGemm& call) {
  const std::int64_t tasks = call.images * half_row_chunks(call);
  const std::int64_t most =
      std::max<std::int64_t>({1, panels_of(call.columns) / kMinPanels,
                              std::min<std::int64_t>(call.threads, panels_of(call.columns))});
  return std::min(most, ceil_div(kTasks * call.threads, tasks));
}

/// Where the parts of a thread's scratch memory begin, in floats.
struct HalfScratch {
  std::int64_t sums;    ///< of a tile, behind the copies of rows
  std::int64_t scales;  ///< that rows are to be multiplied with, two factors of each
  std::int64_t all;
};

HalfScratch half_scratch_of(const HalfGemm& call) {
  const std::int64_t rows = ceil_div(call.rows, half_row_chunks(call));
  HalfScratch result{};
  result.sums = rows * call.inner / 2;
  result.scales = result.sums + kHalfTileRows * kHalfColumns;
  result.all = result.scales + ceil_div(2 * rows, kStep) * kStep;
  return result;
}

struct HalfTask {
  const HalfGemm* call;
  const HalfGemm::Operands* operands;
  float* scratch;
  std::int64_t image;
  std::int64_t first_row;
  std::int64_t last_row;
  std::int64_t first_panel;
  std::int64_t last_panel;

  std::uint16_t* copies() const {
    void* memory = scratch;
    return static_cast<std::uint16_t*>(memory);
  }
};

/// Rows of a task as tiles.
struct HalfTiles {
  std::int64_t rows;
  std::int64_t count = ceil_div(rows, kHalfTileRows);
  std::int64_t begin(std::int64_t tile) const { return rows * tile / count; }
  std::int64_t size(std::int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

float power_of_two(int exponent) {
  const std::int32_t bits = (exponent + 127) << 23;
  float result = 0.0F;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// The exponent of the factor that brings a largest magnitude below 2^`wanted`.
int factor_exponent(float largest, int wanted) {
  if (largest == 0.0F) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::clamp(wanted - exponent, -kMaxExponent, kMaxExponent);
}

/// The magnitude of an element, 0 for one that is not finite.
template <typename V>
NPU_INLINE V finite_magnitude(V value) {
  typename IntegersOf<V>::Type bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0x7FFFFFFF;
  std::memcpy(&value, &bits, sizeof bits);
  return value <= std::numeric_limits<float>::max() ? value : V{};
}

/// Copies the task's rows, scaled, as the micro-kernel reads them: of each tile blocks of 16
/// elements of all rows.
template <typename V>
NPU_INLINE void copy_rows(const HalfTask& task, const HalfTiles& tiles, float* scales) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const HalfGemm& call = *task.call;
  const float* image = task.operands->source + task.image * call.source.image;
  for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
    const std::int64_t begin = tiles.begin(tile);
    const std::int64_t size = tiles.size(tile);
    std::uint16_t* to = task.copies() + begin * call.inner;
    for (std::int64_t row = 0; row < size; ++row) {
      const float* from = image + (task.first_row + begin + row) * call.source.row;
      V most{};
      for (std::int64_t k = 0; k < call.inner; k += kLanes) {
        const V each = finite_magnitude(load_vector<V>(from + k / kLanes * call.source.block));
        most = each > most ? each : most;
      }
      const int exponent = factor_exponent(largest_element(most), kRowExponent);
      const float factor = power_of_two(exponent);
      const int root = -exponent >> 1;
      scales[2 * (begin + row)] = power_of_two(root);
      scales[2 * (begin + row) + 1] = power_of_two(-exponent - root);
      for (std::int64_t k = 0; k < call.inner; k += kLanes) {
        store_halves(to + (k / kStep * size + row) * kStep + k % kStep,
                     load_vector<V>(from + k / kLanes * call.source.block) * factor);
      }
    }
  }
}

/// The square root of powers of two, rounded down to one.
template <typename V>
NPU_INLINE V root_of_powers(V scale) {
  typename IntegersOf<V>::Type bits;
  std::memcpy(&bits, &scale, sizeof bits);
  bits = ((((bits >> 23) - 127) >> 1) + 127) << 23;
  V root;
  std::memcpy(&root, &bits, sizeof root);
  return root;
}

/// Scales the sums of a tile back, and finishes and stores those of the panel's columns.
template <typename V>
NPU_INLINE void finish_tile(const HalfTask& task, std::int64_t row, std::int64_t rows,
                            std::int64_t panel, const float* scales, const float* sums) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const HalfGemm& call = *task.call;
  const HalfGemm::Operands& operands = *task.operands;
  const std::int64_t first = panel * kHalfColumns;
  const std::int64_t last = std::min(call.columns, first + kHalfColumns);
  for (std::int64_t column = first; column < last; column += kLanes) {
    // Both scales together may be beyond any float, and their roots are not: no step overflows
    // whose result does not.
    const V scale = load_vector<V>(operands.scale + column);
    const V root = root_of_powers(scale);
    const V rest = scale / root;
    const V bias = call.has_bias ? load_vector<V>(operands.bias + column) : V{};
    std::int64_t place = task.image * call.target.image + row * call.target.row +
                         column / kLanes * call.target.block;
    for (std::int64_t i = 0; i < rows; ++i, place += call.target.row) {
      const V sum = load_vector<V>(sums + i * kHalfColumns + column - first);
      const V value = sum * (root * scales[2 * i]) * (rest * scales[2 * i + 1]) + bias;
      store_vector(operands.target + place,
                   apply_steps<kIsWide<V>>(call.epilogue, value, operands.target,
                                           operands.epilogue.data(), place));
    }
  }
}

template <typename V>
NPU_INLINE void run_half_task(const HalfTask& task, const HalfMicroKernels& multiply) {
  const HalfGemm& call = *task.call;
  const HalfScratch places = half_scratch_of(call);
  const HalfTiles tiles{task.last_row - task.first_row};
  float* sums = task.scratch + places.sums;
  float* scales = task.scratch + places.scales;
  copy_rows<V>(task, tiles, scales);
  for (std::int64_t panel = task.first_panel; panel < task.last_panel; ++panel) {
    const std::uint16_t* right = task.operands->weight + panel * call.inner * kHalfColumns;
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t begin = tiles.begin(tile);
      const std::int64_t rows = tiles.size(tile);
      multiply[static_cast<std::size_t>(rows - 1)](
          {task.copies() + begin * call.inner, right, call.inner / kStep, sums});
      finish_tile<V>(task, task.first_row + begin, rows, panel, scales + 2 * begin, sums);
    }
  }
}

NPU_TARGET_AVX2 void run_half_task_avx2(const HalfTask& task, const HalfMicroKernels& multiply) {
  run_half_task<NarrowFloats>(task, multiply);
}
NPU_TARGET_AVX512 void run_half_task_avx512(const HalfTask& task,
                                            const HalfMicroKernels& multiply) {
  run_half_task<Float16>(task, multiply);
}

/// That of a column of weights.
int column_exponent(const float* weights, std::int64_t count) {
  float largest = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) {
    const float each = std::abs(weights[i]);
    if (each > largest && each <= std::numeric_limits<float>::max()) largest = each;
  }
  return factor_exponent(largest, kColumnExponent);
}

}  // namespace

std::size_t HalfGemm::weight_halves() const { return scales() * static_cast<std::size_t>(inner); }

std::size_t HalfGemm::scales() const {
  return static_cast<std::size_t>(panels_of(columns) * kHalfColumns);
}

std::size_t HalfGemm::scratch_bytes() const {
  return static_cast<std::size_t>(half_scratch_of(*this).all * threads) * sizeof(float);
}

HalfGemm::Operands HalfGemm::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.source = in.next<const float>();
  operands.weight = in.next<const std::uint16_t>();
  operands.scale = in.next<const float>();
  operands.bias = in.next_if<const float>(has_bias);
  operands.epilogue = in.epilogue(epilogue);
  operands.target = in.next<float>();
  operands.scratch = in.next<float>();
  return operands;
}

void HalfGemm::run(const Operands& operands) const {
  const bool is_wide = isa == VectorIsa::kAvx512;
  const auto body = is_wide ? run_half_task_avx512 : run_half_task_avx2;
  const HalfMicroKernels& multiply = half_micro_kernels(is_wide && cpu_multiplies_float16());
  const std::int64_t chunks = half_row_chunks(*this);
  const std::int64_t groups = half_column_groups(*this);
  const std::int64_t panels = panels_of(columns);
  const std::int64_t floats = half_scratch_of(*this).all;
  share_pieces(images * groups * chunks, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t image = piece / chunks / groups;
    const std::int64_t group = piece / chunks % groups;
    const std::int64_t chunk = piece % chunks;
    body({this, &operands, operands.scratch + thread * floats, image, rows * chunk / chunks,
          rows * (chunk + 1) / chunks, panels * group / groups, panels * (group + 1) / groups},
         multiply);
  });
}

ColumnScales::Operands ColumnScales::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

void ColumnScales::run(const Operands& operands) const {
  const std::int64_t all = panels_of(columns) * kHalfColumns;
  for (std::int64_t column = 0; column < all; ++column) {
    const bool is_there = column < columns;
    operands.target[column] =
        power_of_two(is_there ? -column_exponent(operands.source + column * inner, inner) : 0);
  }
}

HalfGemmWeights::Operands HalfGemmWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<std::uint16_t>()};
}

void HalfGemmWeights::run(const Operands& operands) const {
  share_range(panels_of(columns), 1, threads, [&](std::int64_t panel, std::int64_t) {
    std::uint16_t* to = operands.target + panel * inner * kHalfColumns;
    for (std::int64_t i = 0; i < kHalfColumns; ++i) {
      const std::int64_t column = panel * kHalfColumns + i;
      const float* from = operands.source + column * inner;
      const float factor = column < columns ? power_of_two(column_exponent(from, inner)) : 0.0F;
      for (std::int64_t k = 0; k < inner; ++k) {
        to[k * kHalfColumns + i] = column < columns ? float_to_float16(from[k] * factor) : 0;
      }
    }
  });
}

namespace {

/// Columns, filled up to panels.
Count panel_columns(std::int64_t columns) {
  return (at_least_one(columns, "columns") + (kHalfColumns - 1)).value() / kHalfColumns *
         Count{kHalfColumns};
}

}  // namespace

Footprint footprint(const HalfGemm& kernel) {
  require(kernel.inner > 0 && kernel.inner % 16 == 0, "'inner' does not fill blocks");
  require(kernel.columns > 0 && kernel.columns % 16 == 0, "'columns' does not fill blocks");
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count images = at_least_one(kernel.images, "images");
  const Count rows = at_least_one(kernel.rows, "rows");
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count target = span_of(kernel.target, images, rows, kernel.columns, lanes);
  require((images * rows * kernel.columns).value() <= target.value(),
          "steps of the target repeat elements");
  const Count columns = panel_columns(kernel.columns);
  FootprintBuilder builder;
  builder.read(span_of(kernel.source, images, rows, kernel.inner, lanes))
      .read(columns * kernel.inner, 2)
      .read(columns)
      .read_if(kernel.has_bias, kernel.columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Copies of up to 112 rows, or of 2^18 numbers; sums of a tile.
  return builder.with_scratch(kernel, (Count{128} * kernel.inner + (1 << 19)) * kFloat);
}

Footprint footprint(const HalfGemmWeights& kernel) {
  require(kernel.threads >= 1, "'threads' is below 1");
  const Count inner = at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(inner * kernel.columns)
      .write(panel_columns(kernel.columns) * inner, 2)
      .done();
}

Footprint footprint(const ColumnScales& kernel) {
  const Count inner = at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(inner * kernel.columns)
      .write(panel_columns(kernel.columns))
      .done();
}

}  // namespace npu::onednn

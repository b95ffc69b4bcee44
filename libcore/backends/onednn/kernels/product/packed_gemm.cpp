// SPDX-License-Identifier: Apache-2.0
// A product with constant weights, by the classical algorithm or by one step of Strassen's in
// Winograd's form, which takes seven products of quadrants where the definition takes eight.
//
// A task has up to 112 rows and some of the columns. It walks through k in runs: it copies its rows
// of one run into the L2, tile after tile as the innermost loop reads them (and
// normalizes them on the way if a batch norm stands in front), and multiplies them with one panel
// of weights (two vectors of columns) after the other, while the next panel is fetched. For
// Strassen's step the copies are the sums of quarters that it needs; the quarters of the weights
// are the halves of a KC block and two panels side by side, and their differences are made by the
// product that reads them first, beside its multiplications.
//
// The step mixes two rows, so that the rounding error of a small row grows with a large
// one, and an infinity in one makes NaN in both: where the sums of magnitudes of two rows differ by
// more than a factor of 16, or are not finite, a KC block is computed by the definition.
//
// Weights of 16 bits take half the way from memory. The product that reads them first makes floats
// of them, too, for all rows of the task behind its first ones.
//
// O(images * rows * inner * columns / lanes) multiply-adds of vectors, times 7 / 8 with the step;
// memory for each thread O(112 * run + rows of a task * columns of a task).
#include "kernels/product/packed_gemm.hpp"

#include <algorithm>
#include <cfloat>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/product/packed_gemm_factors.hpp"
#include "kernels/product/packed_gemm_tasks.hpp"
#include "kernels/product/product_spans.hpp"

namespace npu::onednn {

namespace {

using packed_gemm::Ahead;
using packed_gemm::column_groups;
using packed_gemm::Factor;
using packed_gemm::kMaxRows;
using packed_gemm::Multiplier;
using packed_gemm::row_chunks;
using packed_gemm::run_begin;
using packed_gemm::runs;
using packed_gemm::Scratch;
using packed_gemm::scratch_of;
using packed_gemm::Tiles;
using packed_gemm::unit_columns;
using packed_gemm::units;
using packed_gemm::Weights;
using packed_gemm::widen;

constexpr float kMaxRatio = 16.0F;  // of rows that are added

struct Task {
  const PackedGemm* call;
  const PackedGemm::Operands* operands;
  float* scratch;
  std::int64_t image;
  std::int64_t first_row;
  std::int64_t last_row;
  std::int64_t first_unit;
  std::int64_t last_unit;
};

template <typename V>
NPU_INLINE V magnitude(V value) {
  typename IntegersOf<V>::Type bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0x7FFFFFFF;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

/// One KC block of a task.
struct Run {
  std::int64_t begin;
  std::int64_t length;
  bool is_first;
  bool is_last;
};

/// Elements of the source from row `row` and element `k` on.
template <typename V>
NPU_INLINE const float* source_of(const Task& task, std::int64_t row, std::int64_t k) {
  const PackedGemm::Steps& steps = task.call->source;
  return task.operands->source + task.image * steps.image + row * steps.row +
         k / kLanesOf<V> * steps.block;
}

/// A vector of elements, normalized if a norm stands in front. The line `ahead` behind them is
/// fetched. `k` is the first element's.
template <typename V, bool kHasNorm>
NPU_INLINE V load_source(const Task& task, const float* from, std::int64_t ahead, std::int64_t k) {
  __builtin_prefetch(from + ahead);
  V value = load_vector<V>(from);
  if constexpr (kHasNorm) {
    const float* norm = task.operands->norm + k;
    value = value * load_vector<V>(norm) + load_vector<V>(norm + task.call->inner);
    if (task.call->norm_relu) value = value < 0.0F ? V{} : value;
  }
  return value;
}

/// Calls body(block, row, place of the copy) for rows [0, rows) in the order in which the source
/// lies: along rows, or where blocks are apart, along blocks.
template <std::int64_t kLanes, typename Body>
NPU_INLINE void for_each_block(bool is_blocked, const Tiles& tiles, std::int64_t rows,
                               std::int64_t length, Body body) {
  const std::int64_t blocks = length / kLanes;
  const auto visit = [&](std::int64_t first_block, std::int64_t last_block)
      __attribute__((always_inline)) {
    for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
      const std::int64_t begin = tiles.begin(tile);
      const std::int64_t size = tiles.size(tile);
      for (std::int64_t row = 0; row < std::min(size, rows - begin); ++row) {
        for (std::int64_t block = first_block; block < last_block; ++block) {
          body(block, begin + row, begin * length + (block * size + row) * kLanes);
        }
      }
    }
  };
  if (!is_blocked) return visit(0, blocks);
  for (std::int64_t block = 0; block < blocks; ++block) visit(block, block + 1);
}

/// A KC block of `rows` of the task's rows, from `first` on, as the micro-kernel reads it.
template <typename V, bool kHasNorm>
NPU_INLINE void copy_rows(const Task& task, const Tiles& tiles, std::int64_t first,
                          std::int64_t rows, std::int64_t k, std::int64_t length, float* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const PackedGemm::Steps& steps = task.call->source;
  const bool is_blocked = steps.row == kLanes;
  const std::int64_t ahead = is_blocked ? steps.block : steps.row;
  const float* from = source_of<V>(task, first, k);
  for_each_block<kLanes>(
      is_blocked, tiles, rows, length,
      [&](std::int64_t block, std::int64_t row, std::int64_t place) __attribute__((always_inline)) {
        store_vector(to + place,
                     load_source<V, kHasNorm>(task, from + row * steps.row + block * steps.block,
                                              ahead, k + block * kLanes));
      });
}

/// Where the quadrants of a KC block lie, and their sums.
struct Sums {
  std::int64_t length;  ///< of a quarter
  std::int64_t half;    ///< from one quarter of the source to the one on its right, in floats
  std::int64_t down;    ///< and to the one below
  std::int64_t ahead;   ///< to what is fetched
  std::int64_t copy;    ///< from one sum to the next
};

/// The left factors of the seven products: A11, A12, A22, S1 = A21 + A22, S2 = S1 - A11,
/// S3 = A11 - A21, S4 = A12 - S2, for a vector of elements of a row of each quarter. Adds up
/// magnitudes.
template <typename V, bool kHasNorm, bool kHasLower>
NPU_INLINE void copy_sums_at(const Task& task, const Sums& sums, const float* from, std::int64_t k,
                             float* out, V& upper, V& lower) {
  const auto load = [&](const float* at, std::int64_t element) __attribute__((always_inline)) {
    return load_source<V, kHasNorm>(task, at, sums.ahead, element);
  };
  const V a11 = load(from, k);
  const V a12 = load(from + sums.half, k + sums.length);
  V a21{};
  V a22{};
  if constexpr (kHasLower) {
    a21 = load(from + sums.down, k);
    a22 = load(from + sums.down + sums.half, k + sums.length);
    lower += magnitude(a21) + magnitude(a22);
  }
  upper += magnitude(a11) + magnitude(a12);
  const V s1 = a21 + a22;
  const V s2 = s1 - a11;
  store_vector(out, a11);
  store_vector(out + sums.copy, a12);
  store_vector(out + 2 * sums.copy, a22);
  store_vector(out + 3 * sums.copy, s1);
  store_vector(out + 4 * sums.copy, s2);
  store_vector(out + 5 * sums.copy, a11 - a21);
  store_vector(out + 6 * sums.copy, a12 - s2);
}

/// All of them for a KC block. Returns whether the rows that were added are alike.
template <typename V, bool kHasNorm>
NPU_INLINE bool copy_sums(const Task& task, const Tiles& tiles, const Run& run, std::int64_t copy,
                          float* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const PackedGemm::Steps& steps = task.call->source;
  const bool is_blocked = steps.row == kLanes;
  const std::int64_t length = run.length / 2;
  const Sums sums{length, length / kLanes * steps.block, tiles.rows * steps.row,
                  is_blocked ? steps.block : steps.row, copy};
  const std::int64_t both = task.last_row - task.first_row - tiles.rows;
  const float* from = source_of<V>(task, task.first_row, run.begin);
  V upper[kMaxRows / 2]{};
  V lower[kMaxRows / 2]{};
  for_each_block<kLanes>(
      is_blocked, tiles, both, length,
      [&](std::int64_t block, std::int64_t row, std::int64_t place) __attribute__((always_inline)) {
        copy_sums_at<V, kHasNorm, true>(task, sums, from + row * steps.row + block * steps.block,
                                        run.begin + block * kLanes, to + place, upper[row],
                                        lower[row]);
      });
  if (both < tiles.rows) {  // the last row has none below
    const std::int64_t size = tiles.size(tiles.count - 1);
    float* out = to + tiles.begin(tiles.count - 1) * length + (size - 1) * kLanes;
    for (std::int64_t block = 0; block < length / kLanes; ++block) {
      copy_sums_at<V, kHasNorm, false>(task, sums, from + both * steps.row + block * steps.block,
                                       run.begin + block * kLanes, out + block * size * kLanes,
                                       upper[both], lower[both]);
    }
  }
  bool are_alike = true;
  for (std::int64_t row = 0; row < both; ++row) {
    const float top = sum_of_elements(upper[row]);
    const float bottom = sum_of_elements(lower[row]);
    are_alike = are_alike && top <= kMaxRatio * bottom && bottom <= kMaxRatio * top &&
                top + bottom <= FLT_MAX;
  }
  return are_alike;
}

/// What is done to sums: later KC blocks go on with them, or they get bias and epilogue, of which
/// the most frequent ones are told apart here and not for each vector.
enum class Finish : std::uint8_t { kLater, kBias, kRelu, kSteps };

/// Adds what earlier KC blocks gave; keeps the sum for later ones, or finishes it.
template <typename V, bool kIsFirst, Finish kFinish>
NPU_INLINE void add_up(const Task& task, V value, V bias, std::int64_t place, float* partial) {
  if constexpr (!kIsFirst) value += load_vector<V>(partial);
  if constexpr (kFinish == Finish::kLater) return store_vector(partial, value);
  const PackedGemm::Operands& operands = *task.operands;
  value += bias;
  if constexpr (kFinish == Finish::kRelu) {
    value = value < 0.0F ? V{} : value;
  } else if constexpr (kFinish == Finish::kSteps) {
    value = apply_steps<kIsWide<V>>(task.call->epilogue, value, operands.target,
                                    operands.epilogue.data(), place);
  }
  store_vector(operands.target + place, value);
}

template <typename V>
NPU_INLINE V bias_of(const Task& task, std::int64_t column) {
  return task.call->has_bias ? load_vector<V>(task.operands->bias + column) : V{};
}

/// Where a vector of elements of the target lies.
template <typename V>
NPU_INLINE std::int64_t target_place(const Task& task, std::int64_t row, std::int64_t column) {
  const PackedGemm::Steps& steps = task.call->target;
  return task.image * steps.image + row * steps.row + column / kLanesOf<V> * steps.block;
}

/// Results come from memory: they are fetched some rows ahead.
NPU_INLINE void fetch_target(const Task& task, std::int64_t place) {
  constexpr std::int64_t kRowsAhead = 8;
  __builtin_prefetch(task.operands->target + place + kRowsAhead * task.call->target.row, 1);
}

/// Calls body<is first, finish>() for what the run is.
template <typename Body>
NPU_INLINE void for_run(const Task& task, const Run& run, Body body) {
  const auto call = [&]<Finish kFinish>() __attribute__((always_inline)) {
    if (run.is_first) {
      body.template operator()<true, kFinish>();
    } else {
      body.template operator()<false, kFinish>();
    }
  };
  const auto& steps = task.call->epilogue;
  if (!run.is_last) {
    call.template operator()<Finish::kLater>();
  } else if (steps.empty()) {
    call.template operator()<Finish::kBias>();
  } else if (steps.size() == 1 && steps[0].is_plain_relu()) {
    call.template operator()<Finish::kRelu>();
  } else {
    call.template operator()<Finish::kSteps>();
  }
}

/// Where the weights of a unit begin, in elements.
std::int64_t place_of(const Task& task, const Run& run, std::int64_t unit) {
  return task.call->columns * run.begin + unit * unit_columns(*task.call) * run.length;
}

/// Where the weights of a unit lie.
Weights weights_of(const Task& task, const Run& run, std::int64_t unit, float* panels) {
  const std::int64_t place = place_of(task, run, unit);
  if (task.call->weight_type == DType::kFloat32) {
    return {task.operands->weight + place, nullptr, nullptr};
  }
  return {nullptr, task.operands->halves + place, panels};
}

/// What is read after a unit of `columns`: the next one, or the first of the next run.
Ahead weights_behind(const Task& task, const Run& run, std::int64_t unit, std::int64_t columns) {
  const std::int64_t place = unit + 1 < task.last_unit
                                 ? place_of(task, run, unit + 1)
                                 : task.call->columns * (run.begin + run.length) +
                                       task.first_unit * unit_columns(*task.call) * run.length;
  const std::int64_t count = columns * run.length;
  if (task.call->weight_type == DType::kFloat32) return {task.operands->weight + place, count};
  const void* halves = task.operands->halves + place;
  return {static_cast<const float*>(halves), count / 2};
}

template <typename V, bool kHasNorm>
NPU_INLINE void run_classic(const Task& task) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kPanel = 2 * kLanes;
  const PackedGemm& call = *task.call;
  const Scratch places = scratch_of(call);
  const Tiles tiles{task.last_row - task.first_row, kTileRowsOf<V>};
  float* products = task.scratch + places.products;
  for (std::int64_t i = 0; i < runs(call); ++i) {
    const std::int64_t begin = run_begin(call, i);
    const Run run{begin, run_begin(call, i + 1) - begin, i == 0, i + 1 == runs(call)};
    copy_rows<V, kHasNorm>(task, tiles, task.first_row, tiles.rows, begin, run.length,
                           task.scratch);
    for (std::int64_t unit = task.first_unit; unit < task.last_unit; ++unit) {
      const std::int64_t first = unit * kPanel;
      const std::int64_t vectors = std::min(kPanel, call.columns - first) / kLanes;
      const std::int64_t columns = vectors * kLanes;
      const Weights weights = weights_of(task, run, unit, task.scratch + places.panels);
      Multiplier<V> multiplier(tiles, run.length, call.weight_type,
                               weights_behind(task, run, unit, columns));
      if (vectors != 2) widen<V>(weights, call.weight_type, 0, columns * run.length);
      multiplier.run(task.scratch, vectors == 2 ? weights.first(0) : Factor{weights.panel(0)},
                     vectors, tiles.rows, products);
      float* partial =
          task.scratch + places.partial + (unit - task.first_unit) * tiles.rows * kPanel;
      for_run(
          task, run, [&]<bool kIsFirst, Finish kFinish>() __attribute__((always_inline)) {
            for (std::int64_t at = 0; at < columns; at += kLanes) {
              const V bias = bias_of<V>(task, first + at);
              std::int64_t place = target_place<V>(task, task.first_row, first + at);
              for (std::int64_t row = 0; row < tiles.rows; ++row, place += call.target.row) {
                if constexpr (kFinish != Finish::kLater) fetch_target(task, place);
                add_up<V, kIsFirst, kFinish>(task, load_vector<V>(products + row * kPanel + at),
                                             bias, place, partial + row * kPanel + at);
              }
            }
          });
    }
  }
}

/// The four quarters of the results of a unit.
template <typename V>
struct Quarters {
  V c11;
  V c12;
  V c21;
  V c22;
};

template <typename V, bool kAreAlike>
NPU_INLINE Quarters<V> combine(const float* products, std::int64_t step) {
  const auto product = [&](int i) __attribute__((always_inline)) {
    return load_vector<V>(products + i * step);
  };
  if constexpr (kAreAlike) {
    const V p1 = product(0);
    const V p5 = product(4);
    const V u2 = p1 + product(5);
    const V u3 = u2 + product(6);
    return {p1 + product(1), u2 + p5 + product(2), u3 - product(3), u3 + p5};
  } else {
    return {product(0) + product(1), product(2) + product(3), product(4) + product(5),
            product(6) + product(7)};
  }
}

/// The results of a unit, of which `lower` rows lie `rows` below the others.
template <typename V, bool kAreAlike, bool kIsFirst, Finish kFinish>
NPU_INLINE void add_up_quarters(const Task& task, std::int64_t rows, std::int64_t lower,
                                std::int64_t unit, const float* products, float* partial) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kPanel = 2 * kLanes;
  const PackedGemm& call = *task.call;
  const std::int64_t step = rows * kPanel;
  const std::int64_t down = rows * call.target.row;
  const std::int64_t right = kPanel / kLanes * call.target.block;
  for (std::int64_t at = 0; at < kPanel; at += kLanes) {
    const std::int64_t column = unit * 2 * kPanel + at;
    const V left_bias = bias_of<V>(task, column);
    const V right_bias = bias_of<V>(task, column + kPanel);
    std::int64_t top = target_place<V>(task, task.first_row, column);
    for (std::int64_t row = 0; row < rows; ++row, top += call.target.row) {
      const std::int64_t place = row * kPanel + at;
      const Quarters<V> sums = combine<V, kAreAlike>(products + place, step);
      if constexpr (kFinish != Finish::kLater) {
        fetch_target(task, top);
        fetch_target(task, top + right);
        fetch_target(task, top + down);
        fetch_target(task, top + down + right);
      }
      float* kept = partial + place;
      add_up<V, kIsFirst, kFinish>(task, sums.c11, left_bias, top, kept);
      add_up<V, kIsFirst, kFinish>(task, sums.c12, right_bias, top + right, kept + step);
      if (row >= lower) break;
      add_up<V, kIsFirst, kFinish>(task, sums.c21, left_bias, top + down, kept + 2 * step);
      add_up<V, kIsFirst, kFinish>(task, sums.c22, right_bias, top + down + right, kept + 3 * step);
    }
  }
}

template <typename V, bool kHasNorm>
NPU_INLINE void run_strassen(const Task& task) {
  constexpr std::int64_t kPanel = 2 * kLanesOf<V>;
  const PackedGemm& call = *task.call;
  const Scratch places = scratch_of(call);
  const Tiles tiles{ceil_div(task.last_row - task.first_row, 2), kTileRowsOf<V>};
  const std::int64_t lower = task.last_row - task.first_row - tiles.rows;
  float* products = task.scratch + places.products;
  float* difference = task.scratch + places.difference;
  const std::int64_t step = tiles.rows * kPanel;
  for (std::int64_t i = 0; i < runs(call); ++i) {
    const std::int64_t begin = run_begin(call, i);
    const Run run{begin, run_begin(call, i + 1) - begin, i == 0, i + 1 == runs(call)};
    const std::int64_t length = run.length / 2;
    const auto copy = [&](int which) { return task.scratch + which * places.copy; };
    const bool are_alike = copy_sums<V, kHasNorm>(task, tiles, run, places.copy, task.scratch);
    if (!are_alike) {  // A21 in the place of a sum
      copy_rows<V, kHasNorm>(task, tiles, task.first_row + tiles.rows, lower, begin, length,
                             copy(3));
    }
    for (std::int64_t unit = task.first_unit; unit < task.last_unit; ++unit) {
      const Weights weights = weights_of(task, run, unit, task.scratch + places.panels);
      const std::int64_t quarter = length * kPanel;
      const float* b11 = weights.panel(0);
      const float* b21 = weights.panel(quarter);
      const float* b12 = weights.panel(2 * quarter);
      const float* b22 = weights.panel(3 * quarter);
      Multiplier<V> multiplier(tiles, length, call.weight_type,
                               weights_behind(task, run, unit, 2 * kPanel));
      const auto multiply = [&](int left, const Factor& right, int product, std::int64_t rows) {
        multiplier.run(copy(left), right, 2, rows, products + product * step);
      };
      if (are_alike) {
        widen<V>(weights, call.weight_type, 2 * quarter, quarter);
        multiply(0, weights.first(0), 0, tiles.rows);
        multiply(1, weights.first(quarter), 1, tiles.rows);
        multiply(6, weights.first(3 * quarter), 2, tiles.rows);     // S4 B22
        multiply(3, {b12, b11, difference}, 4, tiles.rows);         // S1 T1, T1 = B12 - B11
        multiply(4, {b22, difference, difference}, 5, tiles.rows);  // S2 T2, T2 = B22 - T1
        multiply(2, {difference, b21, difference}, 3, lower);       // A22 T4, T4 = T2 - B21
        multiply(5, {b22, b12, difference}, 6, tiles.rows);         // S3 T3, T3 = B22 - B12
      } else {
        multiply(0, weights.first(0), 0, tiles.rows);
        multiply(1, weights.first(quarter), 1, tiles.rows);
        multiply(0, weights.first(2 * quarter), 2, tiles.rows);
        multiply(1, weights.first(3 * quarter), 3, tiles.rows);
        multiply(3, {b11}, 4, lower);
        multiply(2, {b21}, 5, lower);
        multiply(3, {b12}, 6, lower);
        multiply(2, {b22}, 7, lower);
      }
      float* partial = task.scratch + places.partial + (unit - task.first_unit) * 4 * step;
      for_run(
          task, run, [&]<bool kIsFirst, Finish kFinish>() __attribute__((always_inline)) {
            if (are_alike) {
              add_up_quarters<V, true, kIsFirst, kFinish>(task, tiles.rows, lower, unit, products,
                                                          partial);
            } else {
              add_up_quarters<V, false, kIsFirst, kFinish>(task, tiles.rows, lower, unit, products,
                                                           partial);
            }
          });
    }
  }
}

template <typename V, bool kUseStrassen, bool kHasNorm>
NPU_INLINE void run_any(const Task& task) {
  if constexpr (kUseStrassen) {
    run_strassen<V, kHasNorm>(task);
  } else {
    run_classic<V, kHasNorm>(task);
  }
}

template <bool kUseStrassen, bool kHasNorm>
NPU_TARGET_AVX2 void run_avx2(const Task& task) {
  run_any<NarrowFloats, kUseStrassen, kHasNorm>(task);
}
template <bool kUseStrassen, bool kHasNorm>
NPU_TARGET_AVX512 void run_avx512(const Task& task) {
  run_any<Float16, kUseStrassen, kHasNorm>(task);
}

using TaskFunction = void (*)(const Task&);
/// By use_strassen and has_norm.
constexpr TaskFunction kRunAvx2[2][2]{{run_avx2<false, false>, run_avx2<false, true>},
                                      {run_avx2<true, false>, run_avx2<true, true>}};
constexpr TaskFunction kRunAvx512[2][2]{{run_avx512<false, false>, run_avx512<false, true>},
                                        {run_avx512<true, false>, run_avx512<true, true>}};

}  // namespace

std::size_t PackedGemm::scratch_bytes() const {
  return static_cast<std::size_t>(scratch_of(*this).all * threads) * sizeof(float);
}

PackedGemm::Operands PackedGemm::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.source = in.next<const float>();
  const bool is_float = weight_type == DType::kFloat32;
  operands.weight = in.next_if<const float>(is_float);
  operands.halves = in.next_if<const std::uint16_t>(!is_float);
  operands.norm = in.next_if<const float>(has_norm);
  operands.bias = in.next_if<const float>(has_bias);
  operands.epilogue = in.epilogue(epilogue);
  operands.target = in.next<float>();
  operands.scratch = in.next<float>();
  return operands;
}

void PackedGemm::run(const Operands& operands) const {
  const auto& bodies = isa == VectorIsa::kAvx512 ? kRunAvx512 : kRunAvx2;
  const TaskFunction body = bodies[use_strassen ? 1 : 0][has_norm ? 1 : 0];
  const std::int64_t chunks = row_chunks(*this);
  const std::int64_t groups = column_groups(*this);
  const std::int64_t all_units = units(*this);
  const std::int64_t floats = scratch_of(*this).all;
  share_pieces(images * groups * chunks, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t image = piece / chunks / groups;
    const std::int64_t group = piece / chunks % groups;
    const std::int64_t chunk = piece % chunks;
    body({this, &operands, operands.scratch + thread * floats, image, rows * chunk / chunks,
          rows * (chunk + 1) / chunks, all_units * group / groups,
          all_units * (group + 1) / groups});
  });
}

Footprint footprint(const PackedGemm& kernel) {
  checked_blocks(kernel);
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count images = at_least_one(kernel.images, "images");
  const Count rows = at_least_one(kernel.rows, "rows");
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count target = span_of(kernel.target, images, rows, kernel.columns, lanes);
  require((images * rows * kernel.columns).value() <= target.value(),
          "steps of the target repeat elements");
  FootprintBuilder builder;
  builder.read(span_of(kernel.source, images, rows, kernel.inner, lanes))
      .read(Count{kernel.inner} * kernel.columns, weight_size(kernel.weight_type))
      .read_if(kernel.has_norm, Count{2} * kernel.inner)
      .read_if(kernel.has_bias, kernel.columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Eight copies of 112 rows of a KC block, and the sums of earlier runs.
  return builder.with_scratch(kernel,
                              (Count{128} * (Count{kernel.columns} + 64) + (1 << 21)) * kFloat);
}

}  // namespace npu::onednn

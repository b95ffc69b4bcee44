// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel: for every plane, or planes that share keys and values, these are packed
// once into panels of a few vectors of columns, then for a block of queries at a time the scores,
// their softmax and the product with the values are computed while the scores lie in the cache.
// Operands are read where they are, so that no transposed copy of them is made, and results are
// written where the next op wants them.
//
// The products use tiles of 6 rows by up to 4 vectors held in registers; vectors are 16 floats with
// AVX-512, 4 with NEON, 8 elsewhere (two instructions each on CPUs without AVX). A panel stays in
// the first cache while all rows of a block are multiplied with it. One function per instruction
// set is compiled from the same source and chosen when the program starts. O(planes * queries *
// keys * width); memory O(keys * width + block * keys) per thread.
#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention/planes.hpp"
#include "kernels/base/exponentials.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kBlock = 48;  // queries at a time: 8 tiles of 6
constexpr std::int64_t kLeastBlock = 24;
constexpr std::int64_t kTileRows = 6;
constexpr std::int64_t kVector = 16;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::int64_t padded(std::int64_t count) { return (count + kVector - 1) / kVector * kVector; }

/// Where one thread's scratch memory holds what.
struct Workspace {
  float* keys;     ///< panels of [width, columns of the panel]
  float* values;   ///< panels of [keys, columns of the panel]
  float* queries;  ///< [kBlock, width]
  float* scores;   ///< [kBlock, padded keys]
  float* results;  ///< [kBlock, padded value width]
};

/// Queries at a time: where that is enough for the products, so few that the scores stay in the
/// first cache.
std::int64_t block_of(const Attention& call) {
  constexpr std::int64_t kCached = 6 * 1024;  // floats
  const std::int64_t rows = kCached / padded(call.keys) / kTileRows * kTileRows;
  return rows >= kLeastBlock ? std::min(rows, kBlock) : kBlock;
}

std::int64_t workspace_floats(const Attention& call) {
  const std::int64_t keys = padded(call.keys);
  const std::int64_t values = padded(call.value_width);
  return padded(call.width * keys + call.keys * values + kBlock * (call.width + keys + values));
}

Workspace workspace(const Attention& call, float* memory) {
  const std::int64_t keys = padded(call.keys);
  const std::int64_t values = padded(call.value_width);
  Workspace space{};
  space.keys = memory;
  space.values = space.keys + call.width * keys;
  space.scores = space.values + call.keys * values;
  space.results = space.scores + kBlock * keys;
  space.queries = space.results + kBlock * values;
  return space;
}

inline float as_float(float value) { return value; }
inline float as_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline void put(float& target, float value) { target = value; }
inline void put(std::uint16_t& target, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  target = static_cast<std::uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
}

/// Vectors of a panel, the last of which may have fewer.
template <typename V>
inline constexpr std::int64_t kPanelVectors = kIsWide<V> ? 4 : 2;
template <typename V>
inline constexpr std::int64_t kPanel = kPanelVectors<V>* kLanesOf<V>;

/// target[rows, columns] = a[rows, inner] b[inner, columns] for a tile of a panel.
template <typename V, bool kHasFma, int kRows, int kVectors>
[[gnu::always_inline]] inline void tile(std::int64_t inner, const float* a, std::int64_t a_row,
                                        const float* b, float* target, std::int64_t target_row) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[i][j] = V{};
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    V right[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) right[j] = load_vector<V>(b + (k * kVectors + j) * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V left = a[i * a_row + k] - V{};
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        if constexpr (kHasFma) {
          multiply_add(sums[i][j], left, right[j]);
        } else {
          sums[i][j] += left * right[j];
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      store_vector(target + i * target_row + j * kLanes, sums[i][j]);
    }
  }
}

/// Rows of a product with one panel.
struct PanelProduct {
  std::int64_t rows;
  std::int64_t inner;
  const float* a;
  std::int64_t a_row;
  const float* panel;
  float* target;
  std::int64_t target_row;
};

template <typename V, bool kHasFma, int kVectors>
[[gnu::always_inline]] inline void multiply_panel(const PanelProduct& call) {
  for (std::int64_t i = 0; i < call.rows; i += kTileRows) {
    tile<V, kHasFma, kTileRows, kVectors>(call.inner, call.a + i * call.a_row, call.a_row,
                                          call.panel, call.target + i * call.target_row,
                                          call.target_row);
  }
}

// Functions of their own: among other loops, GCC would keep the sums in memory.
template <int kVectors>
[[gnu::noinline]] void multiply_anywhere(const PanelProduct& call) {
  multiply_panel<NarrowFloats, false, kVectors>(call);
}
template <int kVectors>
[[gnu::noinline]] NPU_TARGET_AVX2 void multiply_avx2(const PanelProduct& call) {
  multiply_panel<NarrowFloats, true, kVectors>(call);
}
template <int kVectors>
[[gnu::noinline]] NPU_TARGET_AVX512 void multiply_avx512(const PanelProduct& call) {
  multiply_panel<Float16, true, kVectors>(call);
}

using MultiplyFunction = void (*)(const PanelProduct&);
/// By the vectors of a panel.
template <typename V, bool kHasFma>
inline constexpr MultiplyFunction kMultiply[]{nullptr, multiply_anywhere<1>, multiply_anywhere<2>};
template <>
inline constexpr MultiplyFunction kMultiply<NarrowFloats, true>[] {
  nullptr, multiply_avx2<1>, multiply_avx2<2>
};
template <>
inline constexpr MultiplyFunction kMultiply<Float16, true>[] {
  nullptr, multiply_avx512<1>, multiply_avx512<2>, multiply_avx512<3>, multiply_avx512<4>
};

/// `columns` is a multiple of the vector's length; target has that many in every row. a and target
/// have a multiple of kTileRows rows, of which those behind `rows` mean nothing.
template <typename V, bool kHasFma>
[[gnu::always_inline]] inline void product(std::int64_t rows, std::int64_t inner,
                                           std::int64_t columns, const float* a, std::int64_t a_row,
                                           const float* panels, float* target,
                                           std::int64_t target_row) {
  for (std::int64_t j = 0; j < columns; j += kPanel<V>) {
    const std::int64_t vectors = std::min(kPanel<V>, columns - j) / kLanesOf<V>;
    kMultiply<V, kHasFma>[vectors](
        {rows, inner, a, a_row, panels + inner * j, target + j, target_row});
  }
}

template <typename T, typename Change>
[[gnu::always_inline]] inline void change_row(const Attention& call, const void* mask,
                                              std::int64_t begin, float* row, Change change) {
  const T* from = static_cast<const T*>(mask) + begin;
  const std::int64_t stride = call.mask_strides[1];
  if (stride == 1) {  // a loop of its own, which becomes vectors
    for (std::int64_t j = 0; j < call.keys; ++j) row[j] = change(row[j], from[j]);
  } else {
    for (std::int64_t j = 0; j < call.keys; ++j) row[j] = change(row[j], from[j * stride]);
  }
}

/// What the mask makes of the scores of a query, from the mask's element `begin` on.
[[gnu::always_inline]] inline void mask_row(const Attention& call, const void* mask,
                                            std::int64_t begin, float* row) {
  const auto add = [](float score, auto term) { return score + as_float(term); };
  if (call.mask_type == DType::kFloat32) {
    change_row<float>(call, mask, begin, row, add);
  } else if (call.mask_type == DType::kBFloat16) {
    change_row<std::uint16_t>(call, mask, begin, row, add);
  } else {
    const bool keeps = call.mask_keeps;
    const float fill = call.mask_fill;
    change_row<std::uint8_t>(call, mask, begin, row, [=](float score, std::uint8_t truth) {
      return (truth != 0) == keeps ? score : fill;
    });
  }
}

/// exp(x - maximum) over a row; returns 1 / sum, or 0 for a row that shall be zeros.
template <typename V>
[[gnu::always_inline]] inline float softmax_row(const Attention& call, float* row) {
  const std::int64_t count = call.keys;
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t whole = count / kLanes * kLanes;
  V largest = V{} + kMinusInfinity;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const V value = load_vector<V>(row + i);
    largest = value > largest ? value : largest;
  }
  float maximum = largest_element(largest);
  for (std::int64_t i = whole; i < count; ++i) maximum = std::max(maximum, row[i]);
  // NaN is passed over so far; it comes back by the sum.
  const auto is_nan = [](float value) { return value != value; };
  if (call.zero_blocked && maximum == kMinusInfinity && std::none_of(row, row + count, is_nan)) {
    std::fill_n(row, count, 0.0F);
    return 0.0F;
  }
  V sums = V{};
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    const V value = exp_vector_negative(load_vector<V>(row + i) - maximum);
    sums += value;
    store_vector(row + i, value);
  }
  float sum = 0.0F;
  if (whole != count) {
    V rest = V{} + kMinusInfinity;
    for (std::int64_t i = whole; i < count; ++i) rest[i - whole] = row[i];
    rest = exp_vector_negative(rest - maximum);
    for (std::int64_t i = whole; i < count; ++i) {
      row[i] = rest[i - whole];
      sum += row[i];
    }
  }
  for (std::int64_t i = 0; i < kLanes; ++i) sum += sums[i];
  if (call.zero_nan && is_nan(sum)) {
    std::fill_n(row, count, 0.0F);
    return 0.0F;
  }
  return 1.0F / sum;
}

/// 1 / the length of a row, or 1 / least if that is less. Squares are float64, so that none
/// overflows; NaN is passed over, since it is in the row, too.
template <typename T>
[[gnu::always_inline]] inline float inverse_length(const T* row, std::int64_t step,
                                                   std::int64_t count, float least) {
  constexpr std::int64_t kSums = 8;
  double sums[kSums]{};
  const std::int64_t whole = step == 1 ? count / kSums * kSums : 0;
  for (std::int64_t i = 0; i < whole; i += kSums) {
    for (std::int64_t j = 0; j < kSums; ++j) {
      const auto each = static_cast<double>(as_float(row[i + j]));
      sums[j] += each * each;
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    const auto each = static_cast<double>(as_float(row[i * step]));
    sums[0] += each * each;
  }
  const double sum =
      ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  const double length = std::sqrt(sum);
  return static_cast<float>(
      1.0 / (length > static_cast<double>(least) ? length : static_cast<double>(least)));
}

/// Where column `column` of `columns` begins in panels of `rows` rows, and how far apart its rows
/// are.
struct PanelColumn {
  std::int64_t offset;
  std::int64_t row;
};
template <typename V>
[[gnu::always_inline]] inline PanelColumn panel_column(std::int64_t column, std::int64_t columns,
                                                       std::int64_t rows) {
  const std::int64_t begin = column / kPanel<V> * kPanel<V>;
  return {begin * rows + column - begin, std::min(kPanel<V>, columns - begin)};
}

template <typename V, typename T>
[[gnu::always_inline]] inline void pack_keys(const Attention& call, const T* from, float* to) {
  constexpr std::int64_t kTile = std::min(kVector, kPanel<V>);  // of columns of one panel
  static_assert(kVector % kTile == 0 && kPanel<V> % kTile == 0);
  const std::int64_t keys = padded(call.keys);
  for (std::int64_t begin = 0; begin < keys; begin += kTile) {
    const std::int64_t end = std::min(call.keys, begin + kTile);
    const PanelColumn place = panel_column<V>(begin, keys, call.width);
    float* column = to + place.offset;
    float factors[kTile];
    std::fill_n(factors, kTile, 1.0F);
    for (std::int64_t i = begin; call.least_key_length > 0.0F && i < end; ++i) {
      factors[i - begin] = inverse_length(from + i * call.key_strides[0], call.key_strides[1],
                                          call.width, call.least_key_length);
    }
    if (call.key_strides[1] == 1 && end - begin == kTile) {
      // Through a square in the cache: rows are read and columns written in runs.
      for (std::int64_t j = 0; j < call.width; j += kTile) {
        const std::int64_t columns = std::min(kTile, call.width - j);
        float square[kTile][kTile];
        for (std::int64_t i = 0; i < kTile; ++i) {
          const T* row = from + (begin + i) * call.key_strides[0] + j;
          for (std::int64_t k = 0; k < columns; ++k) square[k][i] = as_float(row[k]);
        }
        for (std::int64_t k = 0; k < columns; ++k) {
          float* line = column + (j + k) * place.row;
          for (std::int64_t i = 0; i < kTile; ++i) line[i] = square[k][i] * factors[i];
        }
      }
      continue;
    }
    for (std::int64_t j = 0; j < call.width; ++j) {
      float* line = column + j * place.row - begin;
      for (std::int64_t i = begin; i < end; ++i) {
        line[i] =
            as_float(from[i * call.key_strides[0] + j * call.key_strides[1]]) * factors[i - begin];
      }
      for (std::int64_t i = std::max(begin, end); i < begin + kTile; ++i) line[i] = 0.0F;
    }
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void pack_values(const Attention& call, const T* from, float* to) {
  const std::int64_t width = padded(call.value_width);
  for (std::int64_t begin = 0; begin < width; begin += kPanel<V>) {
    const std::int64_t columns = std::min(kPanel<V>, width - begin);
    const std::int64_t end = std::min(call.value_width, begin + columns);
    for (std::int64_t i = 0; i < call.keys; ++i, to += columns) {
      const T* row = from + i * call.value_strides[0];
      if (call.value_strides[1] == 1) {
        for (std::int64_t j = begin; j < end; ++j) to[j - begin] = as_float(row[j]);
      } else {
        for (std::int64_t j = begin; j < end; ++j) {
          to[j - begin] = as_float(row[j * call.value_strides[1]]);
        }
      }
      for (std::int64_t j = end; j < begin + columns; ++j) to[j - begin] = 0.0F;
    }
  }
}

/// The queries of planes that share keys and values, counted through.
struct Queries {
  const Attention* call;
  std::int64_t first_plane;

  struct Place {
    std::size_t plane;
    std::int64_t row;
  };
  Place operator[](std::int64_t i) const {
    return {static_cast<std::size_t>(first_plane + i / call->queries), i % call->queries};
  }
};

template <typename V, bool kHasFma, typename T>
[[gnu::always_inline]] inline void attend(const Attention& call, const Queries& queries,
                                          std::int64_t first, std::int64_t rows, const T* query,
                                          const std::byte* mask, const float* factor, T* result,
                                          const Workspace& space) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto [plane, row] = queries[first + i];
    const T* from = query + call.query_offsets[plane] + row * call.query_strides[0];
    float* to = space.queries + i * call.width;
    float scale = call.has_factor ? call.scale * factor[call.factor_offsets[plane]] : call.scale;
    if (call.least_query_length > 0.0F) {
      scale *= inverse_length(from, call.query_strides[1], call.width, call.least_query_length);
    }
    if (call.query_strides[1] == 1) {
      for (std::int64_t j = 0; j < call.width; ++j) to[j] = as_float(from[j]) * scale;
    } else {
      for (std::int64_t j = 0; j < call.width; ++j) {
        to[j] = as_float(from[j * call.query_strides[1]]) * scale;
      }
    }
  }
  const std::int64_t keys = padded(call.keys);
  product<V, kHasFma>(rows, call.width, keys, space.queries, call.width, space.keys, space.scores,
                      keys);
  float factors[kBlock];
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto [plane, place] = queries[first + i];
    float* row = space.scores + i * keys;
    if (call.has_mask) {
      mask_row(call, mask, call.mask_offsets[plane] + place * call.mask_strides[0], row);
    }
    if (call.causal) {
      for (std::int64_t j = place + 1; j < call.keys; ++j) row[j] = kMinusInfinity;
    }
    factors[i] = softmax_row<V>(call, row);
  }
  const std::int64_t width = padded(call.value_width);
  product<V, kHasFma>(rows, call.keys, width, space.scores, keys, space.values, space.results,
                      width);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto [plane, row] = queries[first + i];
    T* to = result + call.result_offsets[plane] + row * call.result_row;
    for (std::int64_t j = 0; j < call.value_width; ++j) {
      put(to[j], space.results[i * width + j] * factors[i]);
    }
  }
}

/// All of one task: the queries [first, last) of planes that share keys and values.
struct Task {
  const Attention* call;
  std::int64_t plane;
  std::int64_t first;
  std::int64_t last;
  const std::byte* query;
  const std::byte* key;
  const std::byte* value;
  const std::byte* mask;
  const float* factor;
  std::byte* result;
  float* memory;
};

/// Has rows fetched that lie apart, where the CPU does not foresee them.
template <typename T>
[[gnu::always_inline]] inline void fetch_rows(const T* from, const std::int64_t (&strides)[2],
                                              std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kLineElements = 64 / sizeof(T);
  if (strides[1] != 1) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; j += kLineElements) {
      __builtin_prefetch(from + i * strides[0] + j);
    }
  }
}

template <typename V, bool kHasFma, typename T>
[[gnu::always_inline]] inline void run_typed(const Task& task) {
  const auto typed = [](const std::byte* data) {
    return static_cast<const T*>(static_cast<const void*>(data));
  };
  const Attention& call = *task.call;
  const Workspace space = workspace(call, task.memory);
  const auto plane = static_cast<std::size_t>(task.plane);
  constexpr std::int64_t kFetched = 128;  // rows
  fetch_rows(typed(task.key) + call.key_offsets[plane], call.key_strides,
             std::min(kFetched, call.keys), call.width);
  fetch_rows(typed(task.value) + call.value_offsets[plane], call.value_strides,
             std::min(kFetched, call.keys), call.value_width);
  const Queries queries{task.call, task.plane};
  const auto [first_plane, first_row] = queries[task.first];
  fetch_rows(
      typed(task.query) + call.query_offsets[first_plane] + first_row * call.query_strides[0],
      call.query_strides, std::min({kFetched, task.last - task.first, call.queries - first_row}),
      call.width);
  pack_keys<V>(call, typed(task.key) + call.key_offsets[plane], space.keys);
  pack_values<V>(call, typed(task.value) + call.value_offsets[plane], space.values);
  const std::int64_t block = block_of(call);
  for (std::int64_t first = task.first; first < task.last; first += block) {
    attend<V, kHasFma>(call, queries, first, std::min(block, task.last - first), typed(task.query),
                       task.mask, task.factor, static_cast<T*>(static_cast<void*>(task.result)),
                       space);
  }
}

template <typename V, bool kHasFma>
[[gnu::always_inline]] inline void run_task(const Task& task) {
  if (task.call->type == DType::kFloat32) {
    run_typed<V, kHasFma, float>(task);
  } else {
    run_typed<V, kHasFma, std::uint16_t>(task);
  }
}

void run_anywhere(const Task& task) { run_task<NarrowFloats, false>(task); }
NPU_TARGET_AVX2 void run_avx2(const Task& task) { run_task<NarrowFloats, true>(task); }
NPU_TARGET_AVX512 void run_avx512(const Task& task) { run_task<Float16, true>(task); }

}  // namespace

std::size_t Attention::scratch_bytes() const {
  return static_cast<std::size_t>(workspace_floats(*this)) * sizeof(float) *
         static_cast<std::size_t>(threads);
}

std::int64_t Attention::shared_planes() const {
  return planes_that_share(key_offsets, value_offsets);
}

Attention::Operands Attention::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.query = in.next<const std::byte>();
  operands.key = in.next<const std::byte>();
  operands.value = in.next<const std::byte>();
  operands.mask = in.next_if<const std::byte>(has_mask);
  operands.factor = in.next_if<const float>(has_factor);
  operands.result = in.next<std::byte>();
  operands.scratch = in.next<float>();
  return operands;
}

void Attention::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const std::int64_t shared = shared_planes();
  const std::int64_t groups = static_cast<std::int64_t>(query_offsets.size()) / shared;
  const std::int64_t rows = shared * queries;
  // Packing is repeated for every part of a group, so groups are cut only to feed all threads.
  const std::int64_t blocks = ceil_div(rows, kBlock);
  const std::int64_t parts =
      std::clamp<std::int64_t>(ceil_div(std::int64_t{4} * threads, groups), 1, blocks);
  const std::int64_t part_rows = ceil_div(blocks, parts) * kBlock;
  const std::int64_t floats = workspace_floats(*this);
  share_pieces(groups * parts, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t first = piece % parts * part_rows;
    if (first >= rows) return;
    body({this, piece / parts * shared, first, std::min(rows, first + part_rows), operands.query,
          operands.key, operands.value, operands.mask, operands.factor, operands.result,
          operands.scratch + thread * floats});
  });
}

Footprint footprint(const Attention& kernel) {
  require(is_float(kernel.type), "a type is no float type");
  require(is_float(kernel.mask_type) || kernel.mask_type == DType::kBool,
          "'mask_type' is neither bool nor a float type");
  const Count queries = at_least_one(kernel.queries, "queries");
  const Count keys = at_least_one(kernel.keys, "keys");
  const Count width = at_least_one(kernel.width, "width");
  const Count values = at_least_one(kernel.value_width, "value_width");
  const std::size_t planes = kernel.query_offsets.size();
  require(planes > 0, "'query_offsets' is empty");
  const auto span = [&](const std::vector<std::int64_t>& offsets, Count rows, Count columns,
                        const std::int64_t* strides) {
    return planes_span(offsets, planes, rows, strides[0], columns, strides[1]);
  };
  const Count size = size_of(kernel.type);
  const std::int64_t result_strides[2]{kernel.result_row, 1};
  const Count result = span(kernel.result_offsets, queries, values, result_strides);
  require((Count{static_cast<std::int64_t>(planes)} * queries * values).value() <= result.value(),
          "results repeat elements");
  FootprintBuilder builder;
  builder.read(span(kernel.query_offsets, queries, width, kernel.query_strides), size)
      .read(span(kernel.key_offsets, keys, width, kernel.key_strides), size)
      .read(span(kernel.value_offsets, keys, values, kernel.value_strides), size);
  if (kernel.has_mask) {
    builder.read(span(kernel.mask_offsets, queries, keys, kernel.mask_strides),
                 size_of(kernel.mask_type));
  }
  if (kernel.has_factor) {
    builder.read(planes_span(kernel.factor_offsets, planes, 1, 0, 1, 0), kFloat);
  }
  builder.write(result, size);
  const Count all = (width + 16) * (keys + 16) + (keys + 16) * (values + 16) +
                    Count{48} * (width + keys + values + 48);
  return builder.with_scratch(kernel, all * kFloat);
}

}  // namespace npu::onednn

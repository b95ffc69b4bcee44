// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of attention over a cache: up to four rows of queries with a block of keys, and
// their weights with the values. Compiled once for each instruction set.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/base/exponentials.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn::cached {

inline constexpr std::int64_t kBlock = 64;  ///< keys at a time

/// Scores of a few rows of queries with a block of keys.
struct ScoresTile {
  const float* queries;
  std::int64_t query_row;
  const void* keys;
  std::int64_t key_row;
  std::int64_t width;
  std::int64_t count;  ///< keys
  float* scores;       ///< [rows, kBlock]
};

/// Sums of values by the weights of a few rows.
struct ValuesTile {
  float* sums;
  std::int64_t sum_row;
  const void* values;
  std::int64_t value_row;
  std::int64_t width;
  std::int64_t count;    ///< keys
  const float* weights;  ///< [rows, kBlock]
  const float* shrink;   ///< by row: what the sums are multiplied with first
};

template <typename V, bool kHasFma>
NPU_INLINE void add_product(V& sum, V a, V b) {
  if constexpr (kHasFma) {
    multiply_add(sum, a, b);
  } else {
    sum += a * b;
  }
}

/// The first `count` elements of a vector, zeros behind them.
template <typename V, typename T>
NPU_INLINE V load_part(const T* from, std::int64_t count) {
  T part[kLanesOf<V>]{};
  std::memcpy(part, from, static_cast<std::size_t>(count) * sizeof(T));
  return load_as_floats<V>(part);
}

/// Element i of the result is element i of `b` or `a`, as bit kStep of i is set or not, plus that
/// of the same vector with that bit changed.
template <int kStep, typename V, int... kIndex>
NPU_INLINE V fold_pair(V a, V b, std::integer_sequence<int, kIndex...> /*lanes*/) {
  constexpr int kLanes = static_cast<int>(kLanesOf<V>);
  const V own = __builtin_shufflevector(a, b, (kIndex + ((kIndex & kStep) != 0 ? kLanes : 0))...);
  const V other =
      __builtin_shufflevector(a, b, ((kIndex ^ kStep) + ((kIndex & kStep) != 0 ? kLanes : 0))...);
  return own + other;
}

/// Element i of the result is the sum of all elements of vectors[i], whatever i is in the same
/// order.
template <int kStep, typename V>
NPU_INLINE V sums_of_vectors(V* vectors) {
  constexpr int kLanes = static_cast<int>(kLanesOf<V>);
  if constexpr (kStep == kLanes) {
    return vectors[0];
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i += 2 * kStep) {
      vectors[i] = fold_pair<kStep>(vectors[i], vectors[i + kStep],
                                    std::make_integer_sequence<int, kLanes>());
    }
    return sums_of_vectors<2 * kStep>(vectors);
  }
}

template <typename V, bool kHasFma, typename T, int kRows>
NPU_INLINE void multiply_keys(const ScoresTile& call) {
  constexpr int kLanes = static_cast<int>(kLanesOf<V>);
  constexpr int kKeys = kLanes / kRows;
  const std::int64_t whole = call.width / kLanes * kLanes;
  for (std::int64_t first = 0; first < call.count; first += kKeys) {
    const T* keys[kKeys];
#pragma GCC unroll 16
    for (int j = 0; j < kKeys; ++j) {  // behind the last key it once more
      keys[j] =
          static_cast<const T*>(call.keys) + std::min(first + j, call.count - 1) * call.key_row;
    }
    V sums[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) sums[i] = V{};
    const auto step = [&](std::int64_t c, const auto& load) __attribute__((always_inline)) {
      V queries[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        queries[r] = load_vector<V>(call.queries + r * call.query_row + c);
      }
#pragma GCC unroll 16
      for (int j = 0; j < kKeys; ++j) {
        const V key = load(keys[j] + c);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          add_product<V, kHasFma>(sums[r * kKeys + j], queries[r], key);
        }
      }
    };
    for (std::int64_t c = 0; c < whole; c += kLanes) {
      step(
          c, [](const T* from) __attribute__((always_inline)) { return load_as_floats<V>(from); });
    }
    if (whole != call.width) {
      step(
          whole, [&](const T* from) __attribute__((always_inline)) {
            return load_part<V>(from, call.width - whole);
          });
    }
    float scores[kLanes];
    store_vector(scores, sums_of_vectors<1>(sums));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(call.scores + r * kBlock + first, scores + r * kKeys, kKeys * sizeof(float));
    }
  }
}

/// Scores s become cap * tanh(s).
template <typename V>
NPU_INLINE void cap_each(float* scores, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; i += kLanesOf<V>) {
    store_vector(scores + i, tanh_vector<kIsWide<V>>(load_vector<V>(scores + i)) * cap);
  }
}

template <typename V, bool kHasFma, int kRows, int kVectors, typename Load>
NPU_INLINE void add_columns(const ValuesTile& call, std::int64_t column, const Load& load) {
  V sums[kRows][kVectors];
  float* const to = call.sums + column;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = load_vector<V>(to + r * call.sum_row + v * kLanesOf<V>) * call.shrink[r];
    }
  }
  for (std::int64_t k = 0; k < call.count; ++k) {
    V values[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) values[v] = load(k, v);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V weight = call.weights[r * kBlock + k] - V{};
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) add_product<V, kHasFma>(sums[r][v], values[v], weight);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store_vector(to + r * call.sum_row + v * kLanesOf<V>, sums[r][v]);
    }
  }
}

template <typename V, bool kHasFma, typename T, int kRows>
NPU_INLINE void add_values(const ValuesTile& call) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr int kVectors = kIsWide<V> ? 4 : 2;
  const T* values = static_cast<const T*>(call.values);
  std::int64_t column = 0;
  for (; column + kVectors * kLanes <= call.width; column += kVectors * kLanes) {
    add_columns<V, kHasFma, kRows, kVectors>(
        call, column, [&](std::int64_t k, int v) __attribute__((always_inline)) {
          return load_as_floats<V>(values + k * call.value_row + column + v * kLanes);
        });
  }
  for (; column < call.width; column += kLanes) {
    const std::int64_t count = std::min(kLanes, call.width - column);
    if (count == kLanes) {
      add_columns<V, kHasFma, kRows, 1>(
          call, column, [&](std::int64_t k, int) __attribute__((always_inline)) {
            return load_as_floats<V>(values + k * call.value_row + column);
          });
    } else {
      add_columns<V, kHasFma, kRows, 1>(
          call, column, [&](std::int64_t k, int) __attribute__((always_inline)) {
            return load_part<V>(values + k * call.value_row + column, count);
          });
    }
  }
}

// Functions of their own: among other loops, GCC would keep the sums in memory.
struct Anywhere {
  using V = NarrowFloats;
  [[gnu::noinline]] static void cap_scores(float* scores, std::int64_t count, float cap) {
    cap_each<V>(scores, count, cap);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] static void scores(const ScoresTile& call) {
    multiply_keys<V, false, T, kRows>(call);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] static void values(const ValuesTile& call) {
    add_values<V, false, T, kRows>(call);
  }
};
struct Avx2 {
  using V = NarrowFloats;
  [[gnu::noinline]] NPU_TARGET_AVX2 static void cap_scores(float* scores, std::int64_t count,
                                                           float cap) {
    cap_each<V>(scores, count, cap);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] NPU_TARGET_AVX2 static void scores(const ScoresTile& call) {
    multiply_keys<V, true, T, kRows>(call);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] NPU_TARGET_AVX2 static void values(const ValuesTile& call) {
    add_values<V, true, T, kRows>(call);
  }
};
struct Avx512 {
  using V = Float16;
  [[gnu::noinline]] NPU_TARGET_AVX512 static void cap_scores(float* scores, std::int64_t count,
                                                             float cap) {
    cap_each<V>(scores, count, cap);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] NPU_TARGET_AVX512 static void scores(const ScoresTile& call) {
    multiply_keys<V, true, T, kRows>(call);
  }
  template <typename T, int kRows>
  [[gnu::noinline]] NPU_TARGET_AVX512 static void values(const ValuesTile& call) {
    add_values<V, true, T, kRows>(call);
  }
};

}  // namespace npu::onednn::cached

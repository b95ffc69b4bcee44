// SPDX-License-Identifier: Apache-2.0
// One task is a band of rows of two vectors of channels of an image: it expands the rows that the
// band needs into a buffer with a border of zeros, which stays in the L2, and runs the depthwise
// convolution over it. Rows that two bands need are computed twice, so bands are cut only for the
// cache and to feed all threads. Between the two, the tensor that is largest in such networks is
// neither written to memory nor read from it. With bfloat16 a row of results is made as floats and
// rounded then.
// O(pixels * source channels * channels / lanes + results * taps^2 / lanes) multiply-adds of
// vectors.
#include "kernels/convolution/expand_depthwise.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/gemm_micro_kernel.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kRun = 7;             // results of a row at a time
constexpr std::int64_t kBandVectors = 7168;  // of a buffer, at most, if a row fits

/// Channels of a task.
std::int64_t task_channels(const ExpandDepthwise& call) { return 2 * lanes_of(call.isa); }

std::int64_t buffer_width(const ExpandDepthwise& call) {
  return (call.target_extent[1] - 1) * call.stride + call.taps;
}

/// Rows of the buffer for a band of so many rows of results.
std::int64_t buffer_rows(const ExpandDepthwise& call, std::int64_t rows) {
  return (rows - 1) * call.stride + call.taps;
}

std::int64_t bands(const ExpandDepthwise& call) {
  const std::int64_t height = call.target_extent[0];
  const std::int64_t row_vectors = buffer_width(call) * 2;
  const std::int64_t most =
      std::max<std::int64_t>(1, (kBandVectors / row_vectors - call.taps) / call.stride + 1);
  const std::int64_t tasks = call.batch * ceil_div(call.channels, task_channels(call));
  // Few tasks for each thread are uneven.
  const std::int64_t enough = std::int64_t{8} * call.threads;
  const std::int64_t wanted = tasks >= enough ? 1 : ceil_div(enough, tasks);
  const std::int64_t least_rows = std::max<std::int64_t>(1, 4 * call.taps / call.stride);
  const std::int64_t allowed = std::max<std::int64_t>(1, height / least_rows);
  return std::min(height, std::max(ceil_div(height, most), std::min(wanted, allowed)));
}

std::int64_t buffer_floats(const ExpandDepthwise& call) {
  const std::int64_t rows = ceil_div(call.target_extent[0], bands(call));
  return buffer_rows(call, rows) * buffer_width(call) * task_channels(call);
}

/// A row of results, of bfloat16 ones.
std::int64_t row_floats(const ExpandDepthwise& call) {
  return call.bfloat16 ? call.target_extent[1] * lanes_of(call.isa) : 0;
}

std::int64_t scratch_floats(const ExpandDepthwise& call) {
  return buffer_floats(call) + row_floats(call);
}

struct Task {
  const ExpandDepthwise* call;
  const std::byte* source;
  const float* expand_weight;
  const float* expand_bias;
  const float* depthwise_weight;
  const float* depthwise_bias;
  std::byte* target;
  float* buffer;
  float* row;
  std::int64_t image;
  std::int64_t column;  ///< in steps of task_channels()
  std::int64_t first;   ///< rows of results
  std::int64_t last;
};

template <typename V>
[[gnu::always_inline]] inline void apply_to_row(const std::vector<EpilogueStep>& steps,
                                                float* values, std::int64_t vectors) {
  for (const EpilogueStep& step : steps) apply_to_all<V>(step, values, kLanesOf<V>, vectors);
}

/// An epilogue that is applied in registers: to clip, as ReLU does, too. Others take a pass over a
/// row, which is still in the L1.
struct Clip {
  float low = 0.0F;
  float high = 0.0F;
};

std::optional<Clip> clip_of(const std::vector<EpilogueStep>& steps) {
  if (steps.size() != 1) return std::nullopt;
  if (steps[0].is_plain_relu()) return Clip{0.0F, std::numeric_limits<float>::infinity()};
  if (steps[0].kind != EpilogueStep::Kind::kClip) return std::nullopt;
  return Clip{steps[0].alpha, steps[0].beta};
}

template <typename V, int kCount, int kVectors>
[[gnu::always_inline]] inline void start_sums(V (&sums)[kCount][kVectors], const float* bias) {
#pragma GCC unroll 2
  for (int j = 0; j < kVectors; ++j) {
    const V start = bias == nullptr ? V{} : load_vector<V>(bias + j * kLanesOf<V>);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) sums[i][j] = start;
  }
}

template <typename V, bool kClips, int kCount, int kVectors>
[[gnu::always_inline]] inline void store_sums(V (&sums)[kCount][kVectors], Clip clip, float* to) {
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      if constexpr (kClips) sums[i][j] = clamp_vector<kIsWide<V>>(sums[i][j], clip.low, clip.high);
      store_vector(to + (i * kVectors + j) * kLanesOf<V>, sums[i][j]);
    }
  }
}

/// to[pixel, column] = bias[column] + sum over channels; `from` is the first block of channels of
/// the first pixel, `plane` the distance of blocks.
template <typename V, bool kClips, int kCount, int kVectors>
[[gnu::always_inline]] inline void expand_pixels(const float* from, std::int64_t plane,
                                                 std::int64_t channels, const float* weight,
                                                 const float* bias, Clip clip, float* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V sums[kCount][kVectors];
  start_sums(sums, bias);
  const auto step = [&](std::int64_t k) __attribute__((always_inline)) {
    V right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) right[j] = load_vector<V>(weight + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      const V left = from[i * kLanes + k] - V{};
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) multiply_add(sums[i][j], left, right[j]);
    }
    weight += kVectors * kLanes;
  };
  for (std::int64_t begin = 0; begin < channels; begin += kLanes, from += plane) {
    if constexpr (kIsWide<V>) {
      const std::int64_t count = std::min(kLanes, channels - begin);
      for (std::int64_t k = 0; k < count; ++k) step(k);
    } else {  // whole blocks: a loop for a part of one would keep the sums out of the registers
#pragma GCC unroll 8
      for (std::int64_t k = 0; k < kLanes; ++k) step(k);
    }
  }
  store_sums<V, kClips>(sums, clip, to);
}

/// to[result] = bias + sum over taps of a run of a row, for one vector of channels.
template <typename V, bool kClips, int kTaps, int kStride, int kCount>
[[gnu::always_inline]] inline void filter_run(const float* from, std::int64_t row_stride,
                                              std::int64_t pixel, const float* weight,
                                              const float* bias, Clip clip, float* to) {
  const V start = bias == nullptr ? V{} : load_vector<V>(bias);
  V sums[kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) sums[i] = start;
  for (int r = 0; r < kTaps; ++r, from += row_stride) {
#pragma GCC unroll 5
    for (int c = 0; c < kTaps; ++c) {
      const V factor = load_vector<V>(weight + (r * kTaps + c) * pixel);
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        sums[i] += load_vector<V>(from + (i * kStride + c) * pixel) * factor;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kClips) sums[i] = clamp_vector<kIsWide<V>>(sums[i], clip.low, clip.high);
    store_vector(to + i * kLanesOf<V>, sums[i]);
  }
}

template <typename V>
[[gnu::always_inline]] inline void fill_zeros(float* values, std::int64_t vectors) {
  for (std::int64_t i = 0; i < vectors; ++i) store_vector(values + i * kLanesOf<V>, V{});
}

using Expand = void (*)(const float*, std::int64_t, std::int64_t, const float*, const float*, Clip,
                        float*);
template <bool kClips, int kCount, int kVectors>
NPU_TARGET_AVX512 void expand_avx512(const float* from, std::int64_t plane, std::int64_t channels,
                                     const float* weight, const float* bias, Clip clip, float* to) {
  expand_pixels<Float16, kClips, kCount, kVectors>(from, plane, channels, weight, bias, clip, to);
}
template <bool kClips, int kCount, int kVectors>
NPU_TARGET_AVX2 void expand_avx2(const float* from, std::int64_t plane, std::int64_t channels,
                                 const float* weight, const float* bias, Clip clip, float* to) {
  expand_pixels<NarrowFloats, kClips, kCount, kVectors>(from, plane, channels, weight, bias, clip,
                                                        to);
}
template <typename V, bool kClips, int kVectors, int... kCount>
constexpr std::array<Expand, sizeof...(kCount)> expand_table(
    std::integer_sequence<int, kCount...> /*counts*/) {
  if constexpr (kIsWide<V>) return {expand_avx512<kClips, kCount + 1, kVectors>...};
  return {expand_avx2<kClips, kCount + 1, kVectors>...};
}
/// As many pixels are expanded at a time as a tile has rows.
template <typename V>
constexpr std::make_integer_sequence<int, kTileRowsOf<V>> kPixelCounts;
template <typename V>
constexpr std::array<Expand, kTileRowsOf<V>> kExpand[2][2]{
    {expand_table<V, false, 1>(kPixelCounts<V>), expand_table<V, false, 2>(kPixelCounts<V>)},
    {expand_table<V, true, 1>(kPixelCounts<V>), expand_table<V, true, 2>(kPixelCounts<V>)}};

#if NPU_HAS_X86
#define NPU_TARGET_BFLOAT16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c")))

/// sum + the products of 16 pairs of bfloat16 numbers.
[[gnu::always_inline]] NPU_TARGET_BFLOAT16 inline Float16 add_pairs(Float16 sum,
                                                                    IntegersOf<Float16>::Type left,
                                                                    Float16 right) {
  __m512bh factors[2];
  std::memcpy(&factors[0], &left, sizeof left);
  std::memcpy(&factors[1], &right, sizeof right);
  return _mm512_dpbf16_ps(sum, factors[0], factors[1]);
}

/// The same from bfloat16 numbers, of which two neighbours meet a pair of weights at once.
template <bool kClips, int kCount, int kVectors>
NPU_TARGET_BFLOAT16 void expand_pairs(const std::uint16_t* from, std::int64_t plane,
                                      std::int64_t channels, const float* weight, const float* bias,
                                      Clip clip, float* to) {
  using V = Float16;
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V sums[kCount][kVectors];
  start_sums(sums, bias);
  for (std::int64_t begin = 0; begin < channels; begin += kLanes, from += plane) {
    const std::int64_t count = std::min(kLanes, channels - begin);
    for (std::int64_t k = 0; k < count; k += 2, weight += kVectors * kLanes) {
      V right[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) right[j] = load_vector<V>(weight + j * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        std::int32_t pair;
        std::memcpy(&pair, from + i * kLanes + k, sizeof pair);
        const IntegersOf<Float16>::Type left = IntegersOf<Float16>::Type{} + pair;
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sums[i][j] = add_pairs(sums[i][j], left, right[j]);
      }
    }
  }
  store_sums<V, kClips>(sums, clip, to);
}
using ExpandPairs = void (*)(const std::uint16_t*, std::int64_t, std::int64_t, const float*,
                             const float*, Clip, float*);
template <bool kClips, int kVectors, int... kCount>
constexpr std::array<ExpandPairs, sizeof...(kCount)> expand_pairs_table(
    std::integer_sequence<int, kCount...> /*counts*/) {
  return {expand_pairs<kClips, kCount + 1, kVectors>...};
}
constexpr auto kPairCounts = kPixelCounts<Float16>;
constexpr std::array<ExpandPairs, kTileRowsOf<Float16>> kExpandPairs[2][2]{
    {expand_pairs_table<false, 1>(kPairCounts), expand_pairs_table<false, 2>(kPairCounts)},
    {expand_pairs_table<true, 1>(kPairCounts), expand_pairs_table<true, 2>(kPairCounts)}};
#endif

using Filter = void (*)(const float*, std::int64_t, std::int64_t, const float*, const float*, Clip,
                        float*);
template <bool kClips, int kTaps, int kStride, int kCount>
NPU_TARGET_AVX512 void filter_avx512(const float* from, std::int64_t row_stride, std::int64_t pixel,
                                     const float* weight, const float* bias, Clip clip, float* to) {
  filter_run<Float16, kClips, kTaps, kStride, kCount>(from, row_stride, pixel, weight, bias, clip,
                                                      to);
}
template <bool kClips, int kTaps, int kStride, int kCount>
NPU_TARGET_AVX2 void filter_avx2(const float* from, std::int64_t row_stride, std::int64_t pixel,
                                 const float* weight, const float* bias, Clip clip, float* to) {
  filter_run<NarrowFloats, kClips, kTaps, kStride, kCount>(from, row_stride, pixel, weight, bias,
                                                           clip, to);
}
template <typename V, bool kClips, int kTaps, int kStride, int... kCount>
constexpr std::array<Filter, sizeof...(kCount)> filter_table(
    std::integer_sequence<int, kCount...> /*counts*/) {
  if constexpr (kIsWide<V>) return {filter_avx512<kClips, kTaps, kStride, kCount + 1>...};
  return {filter_avx2<kClips, kTaps, kStride, kCount + 1>...};
}
constexpr std::make_integer_sequence<int, kRun> kRuns;
template <typename V, bool kClips>
constexpr std::array<Filter, kRun> kFilters[2][2]{
    {filter_table<V, kClips, 3, 1>(kRuns), filter_table<V, kClips, 3, 2>(kRuns)},
    {filter_table<V, kClips, 5, 1>(kRuns), filter_table<V, kClips, 5, 2>(kRuns)}};

/// Rows [first, last) of the source, of which the buffer has those inside; `row` is the place of
/// the first one in it. `T` is that of the source.
template <typename V, typename T, typename Table>
[[gnu::always_inline]] inline void expand_rows(const Task& task, std::int64_t first,
                                               std::int64_t last, std::int64_t row,
                                               std::int64_t vectors, const Table& tables) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  constexpr std::int64_t kPixels = kTileRowsOf<V>;
  const ExpandDepthwise& call = *task.call;
  const std::int64_t width = call.source_extent[1];
  const std::int64_t plane = call.source_extent[0] * width * kLanes;
  const std::int64_t groups = ceil_div(call.source_channels, kLanes);
  const T* source =
      elements<const T>(task.source) + task.image * groups * plane + first * width * kLanes;
  const std::int64_t inner = call.source_channels * static_cast<std::int64_t>(sizeof(T)) /
                             static_cast<std::int64_t>(sizeof(float));
  const std::int64_t channel = task.column * 2 * kLanes;
  const float* weight = task.expand_weight + channel * inner;
  const float* bias = call.expand_has_bias ? task.expand_bias + channel : nullptr;
  const std::int64_t line = buffer_width(call);
  // A stride may leave out columns at the end.
  const std::int64_t used = std::min(width, line - call.pad[1]);
  const std::int64_t tiles = ceil_div(used, kPixels);
  const auto clip = clip_of(call.expand_epilogue);
  const auto& expand = tables[clip ? 1 : 0][static_cast<std::size_t>(vectors - 1)];
  for (std::int64_t y = 0; y < last - first; ++y, source += width * kLanes) {
    float* to = task.buffer + ((row + y) * line + call.pad[1]) * kLanes * vectors;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t x = used * tile / tiles;
      const std::int64_t count = used * (tile + 1) / tiles - x;
      expand[static_cast<std::size_t>(count - 1)](source + x * kLanes, plane, call.source_channels,
                                                  weight, bias, clip.value_or(Clip{}),
                                                  to + x * kLanes * vectors);
    }
    if (!clip) apply_to_row<V>(call.expand_epilogue, to, used * vectors);
  }
}

/// Row `y` of results of a vector of channels, whose weights and bias these are.
template <typename V>
[[gnu::always_inline]] inline void filter_row(const Task& task, std::int64_t y, const float* from,
                                              std::int64_t pixel, const float* weight,
                                              const float* bias, float* to) {
  const ExpandDepthwise& call = *task.call;
  const auto clip = clip_of(call.depthwise_epilogue);
  const int taps = call.taps == 5 ? 1 : 0;
  const auto& filters =
      clip ? kFilters<V, true>[taps][call.stride - 1] : kFilters<V, false>[taps][call.stride - 1];
  const std::int64_t row_stride = buffer_width(call) * pixel;
  const std::int64_t width = call.target_extent[1];
  from += (y - task.first) * call.stride * row_stride;
  for (std::int64_t x = 0; x < width; x += kRun) {
    const std::int64_t count = std::min(kRun, width - x);
    filters[static_cast<std::size_t>(count - 1)](from + x * call.stride * pixel, row_stride, pixel,
                                                 weight, bias, clip.value_or(Clip{}),
                                                 to + x * kLanesOf<V>);
  }
  if (!clip) apply_to_row<V>(call.depthwise_epilogue, to, width);
}

template <typename V>
[[gnu::always_inline]] inline void run_task(const Task& task) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const ExpandDepthwise& call = *task.call;
  const std::int64_t groups = call.channels / kLanes;
  const std::int64_t vectors = std::min<std::int64_t>(2, groups - 2 * task.column);
  const std::int64_t pixel = vectors * kLanes;
  const std::int64_t line = buffer_width(call);
  const std::int64_t rows = buffer_rows(call, task.last - task.first);
  const std::int64_t top = task.first * call.stride - call.pad[0];
  const std::int64_t first = std::clamp<std::int64_t>(top, 0, call.source_extent[0]);
  const std::int64_t last = std::clamp<std::int64_t>(top + rows, first, call.source_extent[0]);
  fill_zeros<V>(task.buffer, (first - top) * line * vectors);
  fill_zeros<V>(task.buffer + (last - top) * line * pixel, (top + rows - last) * line * vectors);
  const std::int64_t right = std::min(line, call.pad[1] + call.source_extent[1]);
  for (std::int64_t y = first - top; y < last - top; ++y) {
    float* at = task.buffer + y * line * pixel;
    fill_zeros<V>(at, call.pad[1] * vectors);
    fill_zeros<V>(at + right * pixel, (line - right) * vectors);
  }
#if NPU_HAS_X86
  if (kIsWide<V> && call.bfloat16) {
    expand_rows<Float16, std::uint16_t>(task, first, last, first - top, vectors, kExpandPairs);
  } else
#endif
  {
    expand_rows<V, float>(task, first, last, first - top, vectors, kExpand<V>);
  }

  const std::int64_t width = call.target_extent[1];
  const std::int64_t plane = call.target_extent[0] * width * kLanes;
  const float* weight = task.depthwise_weight + task.column * 2 * kLanes * call.taps * call.taps;
  for (std::int64_t vector = 0; vector < vectors; ++vector) {
    const std::int64_t group = 2 * task.column + vector;
    const float* bias = call.depthwise_has_bias ? task.depthwise_bias + group * kLanes : nullptr;
    const float* from = task.buffer + vector * kLanes;
    const std::int64_t begin = (task.image * groups + group) * plane;
    for (std::int64_t y = task.first; y < task.last; ++y) {
      const std::int64_t at = begin + y * width * kLanes;
      float* to = call.bfloat16 ? task.row : elements<float>(task.target) + at;
      filter_row<V>(task, y, from, pixel, weight + vector * kLanes, bias, to);
      if (!call.bfloat16) continue;
      std::uint16_t* rounded = elements<std::uint16_t>(task.target) + at;
      for (std::int64_t i = 0; i < width * kLanes; i += kLanes) {
        store_floats(rounded + i, load_vector<V>(to + i));
      }
    }
  }
}

NPU_TARGET_AVX2 void run_avx2(const Task& task) { run_task<NarrowFloats>(task); }
NPU_TARGET_AVX512 void run_avx512(const Task& task) { run_task<Float16>(task); }

}  // namespace

std::size_t ExpandDepthwise::scratch_bytes() const {
  return static_cast<std::size_t>(scratch_floats(*this) * threads) * sizeof(float);
}

PanelWeights::Operands PanelWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

void PanelWeights::run(const Operands& operands) const {
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const std::int64_t begin = channel / panel * panel;
    const std::int64_t width = std::min(panel, channels - begin);
    const float* from = operands.source + channel * inner;
    if (pairs) {
      auto* to = static_cast<std::uint16_t*>(static_cast<void*>(operands.target)) + begin * inner +
                 2 * (channel - begin);
      for (std::int64_t i = 0; i < inner; ++i) {
        to[i / 2 * 2 * width + i % 2] = rounded_bits(from[i]);
      }
      continue;
    }
    float* to = operands.target + begin * inner + channel - begin;
    for (std::int64_t i = 0; i < inner; ++i) to[i * width] = from[i];
  }
}

ExpandDepthwise::Operands ExpandDepthwise::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const std::byte>(),
          in.next<const float>(),
          in.next<const float>(),
          in.next_if<const float>(expand_has_bias),
          in.next_if<const float>(depthwise_has_bias),
          in.next<std::byte>(),
          in.next<float>()};
}

void ExpandDepthwise::run(const Operands& operands) const {
  const auto body = isa == VectorIsa::kAvx512 ? run_avx512 : run_avx2;
  const std::int64_t cuts = bands(*this);
  const std::int64_t columns = ceil_div(channels, task_channels(*this));
  const std::int64_t height = target_extent[0];
  const std::int64_t floats = scratch_floats(*this);
  share_pieces(batch * columns * cuts, threads, [&](std::int64_t piece, int thread) {
    const std::int64_t image = piece / cuts / columns;
    const std::int64_t column = piece / cuts % columns;
    const std::int64_t cut = piece % cuts;
    float* buffer = operands.scratch + thread * floats;
    body({this, operands.source, operands.expand_weight, operands.expand_bias,
          operands.depthwise_weight, operands.depthwise_bias, operands.target, buffer,
          buffer + buffer_floats(*this), image, column, height * cut / cuts,
          height * (cut + 1) / cuts});
  });
}

Footprint footprint(const ExpandDepthwise& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  require(ExpandDepthwise::supports(kernel.taps, kernel.stride), "there are no such 'taps'");
  const std::int64_t lanes = lanes_of(kernel.isa);
  require(kernel.channels > 0 && kernel.channels % lanes == 0, "'channels' fills no vectors");
  require(!kernel.bfloat16 || (cpu_multiplies_bfloat16() && kernel.isa == VectorIsa::kAvx512),
          "'bfloat16' is more than this CPU has");
  require(kernel.isa == VectorIsa::kAvx512 || kernel.source_channels % lanes == 0,
          "'source_channels' fills no blocks");
  require(!kernel.bfloat16 || kernel.source_channels % 2 == 0, "'source_channels' is odd");
  require_no_operands(kernel.expand_epilogue);
  require_no_operands(kernel.depthwise_epilogue);
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count inputs = at_least_one(kernel.source_channels, "source_channels");
  const Count channels = kernel.channels;
  Count source = batch * (Count(ceil_div(inputs.value(), lanes)) * lanes);
  Count target = batch * channels;
  Count buffer = 2 * lanes;  // floats that a thread expands at most
  for (int i = 0; i < 2; ++i) {
    const Count from = at_least_one(kernel.source_extent[i], "source_extent");
    const Count to = at_least_one(kernel.target_extent[i], "target_extent");
    source = source * from;
    target = target * to;
    require(kernel.pad[i] >= 0 && kernel.pad[i] < kernel.taps, "'pad' is not below 'taps'");
    require(last_of(to, kernel.stride).value() - kernel.pad[i] <= from.value(),
            "results lie outside the source");
    buffer = buffer * (to * kernel.stride + kernel.taps);
  }
  if (kernel.bfloat16) {
    buffer = buffer + at_least_one(kernel.target_extent[1], "target_extent") * lanes;
  }
  const Count size = size_of(kernel.bfloat16 ? DType::kBFloat16 : DType::kFloat32);
  FootprintBuilder builder;
  builder.read(source, size)
      .read(channels * inputs, size)
      .read(channels * (kernel.taps * kernel.taps))
      .read_if(kernel.expand_has_bias, channels)
      .read_if(kernel.depthwise_has_bias, channels)
      .write(target, size);
  return builder.with_scratch(kernel, buffer * kFloat);
}

Footprint footprint(const PanelWeights& kernel) {
  const Count weights =
      at_least_one(kernel.channels, "channels") * at_least_one(kernel.inner, "inner");
  require(kernel.panel > 0, "'panel' is not positive");
  require(!kernel.pairs || kernel.inner % 2 == 0, "'inner' is odd");
  return FootprintBuilder()
      .read(weights)
      .write(weights, size_of(kernel.pairs ? DType::kBFloat16 : DType::kFloat32))
      .done();
}

}  // namespace npu::onednn

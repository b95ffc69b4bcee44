// SPDX-License-Identifier: Apache-2.0
// Places and factors of some positions are computed first, a vector of positions at a time, and
// then used for every channel. A place outside the source has the value 0 and keeps its factor, so
// that a position that is no number gives none. Positions follow PyTorch's order of operations,
// since a rounding decides between two elements. O(positions * channels * taps).
#include "kernels/sampling/grid_sample.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

using Mode = GridSample::Mode;
using Padding = GridSample::Padding;

constexpr std::int64_t kPositions = 64;  // whose places are computed together
constexpr int kMostTaps = 16;

/// Positions [first, last) of one image.
struct SampleTask {
  const GridSample* call;
  const float* source;
  const float* grid;
  float* target;
  std::int64_t first;
  std::int64_t last;
};

struct Places {
  float weight[kMostTaps][kPositions];
  std::int32_t offset[kMostTaps][kPositions];  ///< -1 outside the source
};

template <typename V>
using IntegerVector = typename IntegersOf<V>::Type;

/// Positions that integers hold; what is no number stays.
template <typename V>
[[gnu::always_inline]] inline V within_integers(V x) {
  constexpr float kLimit = 1 << 22;
  x = x < -kLimit ? V{} - kLimit : x;
  return x > kLimit ? V{} + kLimit : x;
}

/// The next smaller whole number; far outside, where whole numbers are all there is, x itself.
template <typename V>
[[gnu::always_inline]] inline V floor_vector(V x) {
  const V clipped = within_integers(x);
  const V toward_zero = __builtin_convertvector(
      __builtin_convertvector(clipped == clipped ? clipped : V{}, IntegerVector<V>), V);
  const V below = toward_zero > clipped ? toward_zero - 1.0F : toward_zero;
  return clipped == x ? below : x;
}

/// From -1..1 to elements.
template <typename V>
[[gnu::always_inline]] inline V unnormalized(V x, std::int64_t extent, bool align_corners) {
  if (align_corners) return (x + 1.0F) * (static_cast<float>(extent - 1) / 2);
  return (x + 1.0F) * (static_cast<float>(extent) / 2) - 0.5F;
}

/// Into 0..extent - 1; what is no number becomes 0.
template <typename V>
[[gnu::always_inline]] inline V clipped_position(V x, std::int64_t extent) {
  const float last = static_cast<float>(extent - 1);
  x = x > 0.0F ? x : V{};
  return x < last ? x : V{} + last;
}

template <typename V>
[[gnu::always_inline]] inline V reflected(V x, std::int64_t extent, bool align_corners) {
  if (align_corners && extent == 1) return V{};
  const float low = align_corners ? 0.0F : -0.5F;
  const float twice = 2.0F * static_cast<float>(align_corners ? extent - 1 : extent);
  const V from_low = x - low;
  const V distance = from_low < 0.0F ? -from_low : from_low;
  const V extra = distance - floor_vector<V>(distance / twice) * twice;
  const V back = twice - extra;
  return (extra < back ? extra : back) + low;
}

template <typename V>
[[gnu::always_inline]] inline V padded_position(const GridSample& call, V x, std::int64_t extent) {
  if (call.padding == Padding::kZeros) return x;
  if (call.padding == Padding::kReflection) x = reflected<V>(x, extent, call.align_corners);
  return clipped_position<V>(x, extent);
}

/// A whole position as an index; -1 outside the dimension.
template <typename V>
[[gnu::always_inline]] inline IntegerVector<V> index_within(V x, std::int64_t extent) {
  using Int = IntegerVector<V>;
  const auto last = static_cast<float>(extent - 1);
  const V inside = x >= 0.0F ? x : V{} - 1.0F;
  const Int index = __builtin_convertvector(inside <= last ? inside : V{} - 1.0F, Int);
  return index;
}

template <typename V>
[[gnu::always_inline]] inline IntegerVector<V> offset_of(IntegerVector<V> y, IntegerVector<V> x,
                                                         std::int64_t width) {
  // All bits are set where one of them is negative.
  return (y * static_cast<std::int32_t>(width) + x) | ((y | x) >> 31);
}

/// Cubic convolution with A = -0.75 (Keys 1981).
template <typename V>
[[gnu::always_inline]] inline void cubic_factors(V t, V (&factors)[4]) {
  constexpr float kA = -0.75F;
  const auto far = [](V x) { return ((kA * x - 5.0F * kA) * x + 8.0F * kA) * x - 4.0F * kA; };
  const auto near = [](V x) { return ((kA + 2.0F) * x - (kA + 3.0F)) * x * x + 1.0F; };
  factors[0] = far(t + 1.0F);
  factors[1] = near(t);
  factors[2] = near(1.0F - t);
  factors[3] = far(2.0F - t);
}

/// The elements of one dimension that a position is made of.
template <typename V>
struct AxisTaps {
  V factor[4];
  IntegerVector<V> index[4];
};

template <typename V>
[[gnu::always_inline]] inline void find_taps(const GridSample& call, V coordinate,
                                             std::int64_t extent, AxisTaps<V>& taps) {
  V x = unnormalized<V>(coordinate, extent, call.align_corners);
  if (call.mode == Mode::kBicubic) {  // places are brought inside, not the position
    const V below = floor_vector<V>(x);
    cubic_factors<V>(x - below, taps.factor);
    for (int i = 0; i < 4; ++i) {
      const V place = below + static_cast<float>(i - 1);
      taps.index[i] = index_within<V>(padded_position<V>(call, place, extent), extent);
    }
    return;
  }
  x = padded_position<V>(call, x, extent);
  if (call.mode == Mode::kNearest) {
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: sums are whole numbers, ties even
    taps.factor[0] = V{} + 1.0F;
    taps.index[0] = index_within<V>((within_integers(x) + kRound) - kRound, extent);
    return;
  }
  const V below = floor_vector<V>(x);
  taps.factor[1] = x - below;
  taps.factor[0] = 1.0F - taps.factor[1];
  taps.index[0] = index_within<V>(below, extent);
  taps.index[1] = index_within<V>(below + 1.0F, extent);
}

int taps_along(Mode mode) { return mode == Mode::kBicubic ? 4 : mode == Mode::kBilinear ? 2 : 1; }

/// x and y of positions that are consecutive.
template <typename V>
struct Coordinates {
  V x;
  V y;
};

template <typename V>
[[gnu::always_inline]] inline Coordinates<V> load_coordinates(const float* from) {
  const V a = load_vector<V>(from);
  const V b = load_vector<V>(from + sizeof(V) / sizeof(float));
  if constexpr (sizeof(V) == 64) {
    return {
        __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)};
  } else if constexpr (sizeof(V) == 32) {
    return {__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
            __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)};
  } else {
    return {__builtin_shufflevector(a, b, 0, 2, 4, 6), __builtin_shufflevector(a, b, 1, 3, 5, 7)};
  }
}

template <typename V>
[[gnu::always_inline]] inline void find_places(const SampleTask& task, Places& places) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  const GridSample& call = *task.call;
  const std::int64_t count = task.last - task.first;
  const int each = taps_along(call.mode);
  for (std::int64_t begin = 0; begin < count; begin += kVector) {
    const float* from = task.grid + 2 * (task.first + begin);
    float rest[2 * kVector]{};
    if (count - begin < kVector) {
      std::copy_n(from, 2 * (count - begin), rest);
      from = rest;
    }
    const auto [x, y] = load_coordinates<V>(from);
    AxisTaps<V> columns;
    AxisTaps<V> rows;
    find_taps<V>(call, x, call.source_extent[1], columns);
    find_taps<V>(call, y, call.source_extent[0], rows);
    for (int i = 0; i < each * each; ++i) {
      const V weight = rows.factor[i / each] * columns.factor[i % each];
      const auto offset =
          offset_of<V>(rows.index[i / each], columns.index[i % each], call.source_extent[1]);
      store_vector(places.weight[i] + begin, weight);
      std::memcpy(places.offset[i] + begin, &offset, sizeof offset);
    }
  }
}

/// Elements of a plane at offsets; 0 at -1.
template <typename V>
[[gnu::always_inline]] inline V gather_vector(const float* plane, const std::int32_t* offsets) {
  using Int = IntegerVector<V>;
  Int offset;
  std::memcpy(&offset, offsets, sizeof offset);
#if NPU_HAS_X86 && !defined(__clang__)
  if constexpr (sizeof(V) == 64) {  // one instruction for what GCC makes sixteen loads of
    constexpr int kScale = sizeof(float);
    const auto inside = static_cast<std::uint16_t>(~__builtin_ia32_cvtd2mask512(offset));
    return __builtin_ia32_gathersiv16sf(V{}, plane, offset, inside, kScale);
  }
#endif
  const Int inside = offset < 0 ? Int{} : offset;
  std::int32_t at[sizeof(V) / sizeof(float)];
  std::memcpy(at, &inside, sizeof at);
  V values;
  if constexpr (sizeof(V) == 64) {
    values =
        V{plane[at[0]],  plane[at[1]],  plane[at[2]],  plane[at[3]], plane[at[4]],  plane[at[5]],
          plane[at[6]],  plane[at[7]],  plane[at[8]],  plane[at[9]], plane[at[10]], plane[at[11]],
          plane[at[12]], plane[at[13]], plane[at[14]], plane[at[15]]};
  } else if constexpr (sizeof(V) == 32) {
    values = V{plane[at[0]], plane[at[1]], plane[at[2]], plane[at[3]],
               plane[at[4]], plane[at[5]], plane[at[6]], plane[at[7]]};
  } else {
    values = V{plane[at[0]], plane[at[1]], plane[at[2]], plane[at[3]]};
  }
  return offset < 0 ? V{} : values;
}

template <typename V, int kTaps>
[[gnu::always_inline]] inline void sample_plane(const float* plane, const Places& places,
                                                std::int64_t count, float* target) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  for (std::int64_t begin = 0; begin < count; begin += kVector) {
    V sum{};
    for (int tap = 0; tap < kTaps; ++tap) {
      sum += gather_vector<V>(plane, places.offset[tap] + begin) *
             load_vector<V>(places.weight[tap] + begin);
    }
    float values[kVector];
    if (count - begin >= kVector) {
      store_vector(target + begin, sum);
    } else {
      store_vector(values, sum);
      std::copy_n(values, count - begin, target + begin);
    }
  }
}

template <typename V>
[[gnu::always_inline]] inline void sample(const SampleTask& task) {
  const GridSample& call = *task.call;
  const std::int64_t plane = call.source_extent[0] * call.source_extent[1];
  const std::int64_t result = call.target_extent[0] * call.target_extent[1];
  const std::int64_t count = task.last - task.first;
  Places places;
  find_places<V>(task, places);
  for (std::int64_t channel = 0; channel < call.channels; ++channel) {
    const float* from = task.source + channel * plane;
    float* to = task.target + channel * result + task.first;
    switch (call.mode) {
      case Mode::kBilinear:
        sample_plane<V, 4>(from, places, count, to);
        break;
      case Mode::kNearest:
        sample_plane<V, 1>(from, places, count, to);
        break;
      case Mode::kBicubic:
        sample_plane<V, 16>(from, places, count, to);
        break;
    }
  }
}

void sample_anywhere(const SampleTask& task) { sample<NarrowFloats>(task); }
NPU_TARGET_AVX2 void sample_avx2(const SampleTask& task) { sample<NarrowFloats>(task); }
NPU_TARGET_AVX512 void sample_avx512(const SampleTask& task) { sample<Float16>(task); }

}  // namespace

void GridSample::run(const Operands& operands) const {
  const auto body = for_isa(isa, sample_anywhere, sample_avx2, sample_avx512);
  const std::int64_t plane = source_extent[0] * source_extent[1];
  const std::int64_t result = target_extent[0] * target_extent[1];
  const std::int64_t chunks = ceil_div(result, kPositions);
  const int threads = threads_for(batch * result * (channels + 4) >= kParallelElements);
  share_pieces(batch * chunks, threads, [&](std::int64_t piece, int) {
    const std::int64_t image = piece / chunks;
    const std::int64_t first = piece % chunks * kPositions;
    body({this, operands.source + image * channels * plane, operands.grid + image * result * 2,
          operands.target + image * channels * result, first,
          std::min(first + kPositions, result)});
  });
}

Footprint footprint(const GridSample& kernel) {
  constexpr std::int64_t kMostElements = 1 << 30;   // places in a plane have 32 bits
  constexpr std::int64_t kMostPositions = 1 << 22;  // float32 counts them with halves between
  Count plane = 1;
  Count result = 1;
  for (int i = 0; i < 2; ++i) {
    require(kernel.source_extent[i] <= kMostPositions, "'source_extent' is above 2^22");
    plane = plane * at_least_one(kernel.source_extent[i], "source_extent");
    result = result * at_least_one(kernel.target_extent[i], "target_extent");
  }
  require(plane.value() <= kMostElements, "a plane has too many elements");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count planes = batch * at_least_one(kernel.channels, "channels");
  return FootprintBuilder()
      .read(planes * plane)
      .read(batch * result * 2)
      .write(planes * result)
      .done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Resampling in two passes over rows: a row of the source is resampled along the last dimension
// once and kept, and a row of the result is a weighted sum of kept rows. Rows of a plane come in
// order, so that the rows that one needs are mostly those of the one before. A piece of work is a
// run of rows of one plane; what an element is added up from does not depend on the pieces.
// O(rows of the source * row of the result + elements of the result * width of the other
// dimensions).
#include "kernels/sampling/resample.hpp"

#include <algorithm>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kMaxSlots = Resample::kMaxWidth * Resample::kMaxWidth;

/// Rows [first, last) of one plane of the result.
struct ResampleTask {
  const Resample* call;
  const std::byte* source;
  std::byte* target;
  float* rows;  ///< of this thread
  std::int64_t plane;
  std::int64_t first;
  std::int64_t last;
};

/// The rows of the source that are kept, and where.
struct KeptRows {
  std::int64_t row[kMaxSlots];
};

/// One row of the source along the last dimension, lanes of a vector at a time.
template <typename V, typename T>
[[gnu::always_inline]] inline void resample_lanes(const Resample& call, const T* from, float* to) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  const std::int64_t width = call.width[2];
  const std::int64_t count = call.target_extent(2);
  const std::int64_t whole = call.lanes / kVector * kVector;
  const Tap* taps = call.taps[2].data();
  for (std::int64_t x = 0; x < count; ++x, taps += width, to += call.lanes) {
    for (std::int64_t lane = 0; lane < whole; lane += kVector) {
      V sum = load_as_floats<V>(from + taps[0].index * call.lanes + lane) * taps[0].weight;
      for (std::int64_t i = 1; i < width; ++i) {
        sum += load_as_floats<V>(from + taps[i].index * call.lanes + lane) * taps[i].weight;
      }
      store_vector(to + lane, sum);
    }
    for (std::int64_t lane = whole; lane < call.lanes; ++lane) {
      float sum = load(from[taps[0].index * call.lanes + lane]) * taps[0].weight;
      for (std::int64_t i = 1; i < width; ++i) {
        sum += load(from[taps[i].index * call.lanes + lane]) * taps[i].weight;
      }
      to[lane] = sum;
    }
  }
}

template <int kWidth, typename T>
[[gnu::always_inline]] inline void resample_elements(const Resample& call, const T* from,
                                                     float* to) {
  const std::int64_t count = call.target_extent(2);
  const Tap* taps = call.taps[2].data();
  for (std::int64_t x = 0; x < count; ++x, taps += kWidth) {
    float sum = load(from[taps[0].index]) * taps[0].weight;
#pragma GCC unroll 4
    for (int i = 1; i < kWidth; ++i) sum += load(from[taps[i].index]) * taps[i].weight;
    to[x] = sum;
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void resample_row(const Resample& call, const T* from, float* to) {
  if (call.lanes != 1) return resample_lanes<V>(call, from, to);
  switch (call.width[2]) {
    case 1:
      return resample_elements<1>(call, from, to);
    case 2:
      return resample_elements<2>(call, from, to);
    case 3:
      return resample_elements<3>(call, from, to);
    default:
      return resample_elements<4>(call, from, to);
  }
}

/// The sum of rows, each with its weight, perhaps added to what stands there.
template <typename V, bool kAdds, bool kRelu, typename T>
[[gnu::always_inline]] inline void add_rows_as(const float* const* rows, const float* weights,
                                               std::int64_t slots, std::int64_t count, T* to) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  std::int64_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    V sum = load_vector<V>(rows[0] + i) * weights[0];
    for (std::int64_t s = 1; s < slots; ++s) sum += load_vector<V>(rows[s] + i) * weights[s];
    if constexpr (kAdds) sum += load_as_floats<V>(to + i);
    if constexpr (kRelu) sum = sum < 0.0F ? V{} : sum;
    store_floats(to + i, sum);
  }
  for (; i < count; ++i) {
    float sum = rows[0][i] * weights[0];
    for (std::int64_t s = 1; s < slots; ++s) sum += rows[s][i] * weights[s];
    if constexpr (kAdds) sum += load(to[i]);
    if constexpr (kRelu) sum = sum < 0.0F ? 0.0F : sum;
    store(to[i], sum);
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void add_rows(const Resample& call, const float* const* rows,
                                            const float* weights, std::int64_t slots,
                                            std::int64_t count, T* to) {
  if (call.adds) {
    call.relu ? add_rows_as<V, true, true>(rows, weights, slots, count, to)
              : add_rows_as<V, true, false>(rows, weights, slots, count, to);
  } else {
    call.relu ? add_rows_as<V, false, true>(rows, weights, slots, count, to)
              : add_rows_as<V, false, false>(rows, weights, slots, count, to);
  }
}

/// The slot that keeps a row of the source; one that no row of `needed` is in if it has to be made.
std::int64_t slot_of(const KeptRows& kept, std::int64_t slots, std::int64_t row,
                     const std::int64_t* needed) {
  for (std::int64_t s = 0; s < slots; ++s) {
    if (kept.row[s] == row) return s;
  }
  for (std::int64_t s = 0; s < slots; ++s) {
    if (std::find(needed, needed + slots, kept.row[s]) == needed + slots) return s;
  }
  return 0;  // not reached: another row than `slots` needed ones is kept
}

template <typename V, typename T>
[[gnu::always_inline]] inline void resample_typed(const ResampleTask& task) {
  const Resample& call = *task.call;
  const std::int64_t slots = call.width[0] * call.width[1];
  const std::int64_t row = call.target_extent(2) * call.lanes;
  const std::int64_t source_row = call.extents[2] * call.lanes;
  const std::int64_t rows = call.target_extent(1);
  const T* source =
      elements<T>(task.source) + task.plane * call.extents[0] * call.extents[1] * source_row;
  T* target = elements<T>(task.target) + task.plane * call.target_extent(0) * rows * row;
  KeptRows kept;
  std::fill_n(kept.row, slots, -1);
  for (std::int64_t r = task.first; r < task.last; ++r) {
    const Tap* outer = call.taps[0].data() + r / rows * call.width[0];
    const Tap* inner = call.taps[1].data() + r % rows * call.width[1];
    std::int64_t needed[kMaxSlots];
    float weights[kMaxSlots];
    const float* from[kMaxSlots];
    for (std::int64_t s = 0; s < slots; ++s) {
      const Tap& a = outer[s / call.width[1]];
      const Tap& b = inner[s % call.width[1]];
      needed[s] = a.index * call.extents[1] + b.index;
      weights[s] = a.weight * b.weight;
    }
    for (std::int64_t s = 0; s < slots; ++s) {
      const std::int64_t slot = slot_of(kept, slots, needed[s], needed);
      float* to = task.rows + slot * row;
      if (kept.row[slot] != needed[s]) {
        resample_row<V>(call, source + needed[s] * source_row, to);
        kept.row[slot] = needed[s];
      }
      from[s] = to;
    }
    add_rows<V>(call, from, weights, slots, row, target + r * row);
  }
}

template <typename V>
[[gnu::always_inline]] inline void resample_any(const ResampleTask& task) {
  task.call->type == DType::kFloat32 ? resample_typed<V, float>(task)
                                     : resample_typed<V, BFloat16>(task);
}

void resample_anywhere(const ResampleTask& task) { resample_any<NarrowFloats>(task); }
NPU_TARGET_AVX2 void resample_avx2(const ResampleTask& task) { resample_any<NarrowFloats>(task); }
NPU_TARGET_AVX512 void resample_avx512(const ResampleTask& task) { resample_any<Float16>(task); }

int wanted_threads(const Resample& call) {
  std::int64_t elements = call.planes * call.lanes;
  for (int i = 0; i < 3; ++i) elements *= call.target_extent(i);
  return elements < kParallelElements ? 1 : call.threads;
}

}  // namespace

bool Resample::is_copy() const {
  for (int i = 0; i < 3; ++i) {
    if (target_extent(i) != extents[i]) return false;
    for (std::int64_t j = 0; j < extents[i]; ++j) {
      const Tap& tap = taps[i][static_cast<std::size_t>(j * width[i])];
      if (tap.index != j || tap.weight != 1.0F) return false;
      for (std::int64_t k = 1; k < width[i]; ++k) {
        if (taps[i][static_cast<std::size_t>(j * width[i] + k)].weight != 0.0F) return false;
      }
    }
  }
  return true;
}

Resample::Operands Resample::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const std::byte>(), in.next<std::byte>(), in.next<float>()};
}

void Resample::run(const Operands& operands) const {
  constexpr std::int64_t kMinRows = 8;  // of a piece: its first ones are resampled anew
  const auto body = for_isa(isa, resample_anywhere, resample_avx2, resample_avx512);
  const std::int64_t rows = target_extent(0) * target_extent(1);
  const std::int64_t row = target_extent(2) * lanes;
  const std::int64_t parts = std::clamp<std::int64_t>(
      ceil_div(4 * std::int64_t{threads}, planes), 1, std::max<std::int64_t>(1, rows / kMinRows));
  const std::int64_t kept = width[0] * width[1] * row;
  share_pieces(planes * parts, wanted_threads(*this), [&](std::int64_t piece, int thread) {
    const std::int64_t part = piece % parts;
    body({this, operands.source, operands.target, operands.scratch + thread * kept, piece / parts,
          rows * part / parts, rows * (part + 1) / parts});
  });
}

void require_taps(const std::vector<Tap>& taps, std::int64_t width, std::int64_t extent) {
  require(width >= 1 && width <= Resample::kMaxWidth, "'width' is not in 1..4");
  require(!taps.empty() && static_cast<std::int64_t>(taps.size()) % width == 0,
          "'taps' is no multiple of 'width'");
  for (const Tap& tap : taps) {
    require(tap.index >= 0 && tap.index < extent, "a tap lies outside its dimension");
  }
}

Footprint footprint(const Resample& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  require(!kernel.adds || kernel.type == DType::kFloat32, "only float32 is added");
  const Count vectors = at_least_one(kernel.planes, "planes") * at_least_one(kernel.lanes, "lanes");
  Count source = vectors;
  Count target = vectors;
  for (int i = 0; i < 3; ++i) {
    require_taps(kernel.taps[i], kernel.width[i], kernel.extents[i]);
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * kernel.target_extent(i);
  }
  const Count row = Count{kernel.target_extent(2)} * kernel.lanes;
  FootprintBuilder builder;
  builder.read(source, size_of(kernel.type)).write(target, size_of(kernel.type));
  return builder.with_scratch(kernel, Count{kernel.width[0] * kernel.width[1]} * row * kFloat);
}

}  // namespace npu::onednn

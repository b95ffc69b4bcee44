// SPDX-License-Identifier: Apache-2.0
// Scale and shift per channel in whatever layout the value has: batch norms that nothing takes in,
// and products with one number per channel (squeeze and excitation). Bound by memory; rows are cut
// among threads. Compiled once for each instruction set.
#include "kernels/norm/scale_shift.hpp"

#include <algorithm>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

namespace {

/// One group of one outer index, from spatial position `first` to `last`.
struct Piece {
  const ScaleShift* call;
  const std::byte* source;
  const std::byte* scale;
  const std::byte* shift;
  std::byte* target;
  std::int64_t outer;
  std::int64_t group;
  std::int64_t first;
  std::int64_t last;
};

template <bool kShift, bool kRelu>
[[gnu::always_inline]] inline float apply(float value, float scale, float shift) {
  float result = value * scale;
  if constexpr (kShift) result += shift;
  if constexpr (kRelu) result = result < 0.0F ? 0.0F : result;
  return result;
}

template <typename T, bool kShift, bool kRelu, bool kVectors>
[[gnu::always_inline]] inline void run_piece(const Piece& piece) {
  const ScaleShift& call = *piece.call;
  const std::int64_t lanes = call.lanes;
  const std::int64_t channel = piece.group * lanes;
  const std::int64_t scale_at = channel + (call.scale_by_outer ? piece.outer * call.channels() : 0);
  const std::int64_t begin =
      ((piece.outer * call.groups + piece.group) * call.spatial + piece.first) * lanes;
  const std::int64_t count = piece.last - piece.first;
  const T* from = elements<T>(piece.source) + begin;
  T* to = elements<T>(piece.target) + begin;
  const auto scale_of = [&](std::int64_t i) {
    return call.scale_type == DType::kFloat32 ? elements<float>(piece.scale)[scale_at + i]
                                              : load(elements<BFloat16>(piece.scale)[scale_at + i]);
  };
  const auto shift_of = [&](std::int64_t i) {
    return kShift ? elements<float>(piece.shift)[channel + i] : 0.0F;
  };
  if (lanes == 1) {
    const float scale = scale_of(0);
    const float shift = shift_of(0);
    for (std::int64_t i = 0; i < count; ++i) {
      store(to[i], apply<kShift, kRelu>(load(from[i]), scale, shift));
    }
    return;
  }
  if (lanes == 16) {
    float scale[16];
    float shift[16];
    for (std::int64_t i = 0; i < 16; ++i) {
      scale[i] = scale_of(i);
      shift[i] = shift_of(i);
    }
    if constexpr (kVectors) {
      const auto factors = load_vector<Float16>(scale);
      const auto terms = load_vector<Float16>(shift);
      for (std::int64_t row = 0; row < count; ++row) {
        Float16 value = load_as_floats<Float16>(from + row * 16) * factors;
        if constexpr (kShift) value += terms;
        if constexpr (kRelu) value = value < 0.0F ? Float16{} : value;
        store_floats(to + row * 16, value);
      }
    } else {
      for (std::int64_t row = 0; row < count; ++row) {
        for (std::int64_t i = 0; i < 16; ++i) {
          store(to[row * 16 + i],
                apply<kShift, kRelu>(load(from[row * 16 + i]), scale[i], shift[i]));
        }
      }
    }
    return;
  }
  constexpr std::int64_t kRun = 256;
  float scale[kRun];
  float shift[kRun];
  for (std::int64_t start = 0; start < lanes; start += kRun) {
    const std::int64_t width = std::min(kRun, lanes - start);
    for (std::int64_t i = 0; i < width; ++i) {
      scale[i] = scale_of(start + i);
      shift[i] = shift_of(start + i);
    }
    for (std::int64_t row = 0; row < count; ++row) {
      const T* line = from + row * lanes + start;
      T* line_to = to + row * lanes + start;
      for (std::int64_t i = 0; i < width; ++i) {
        store(line_to[i], apply<kShift, kRelu>(load(line[i]), scale[i], shift[i]));
      }
    }
  }
}

template <typename T, bool kVectors>
[[gnu::always_inline]] inline void run_typed(const Piece& piece) {
  if (piece.call->has_shift) {
    piece.call->relu ? run_piece<T, true, true, kVectors>(piece)
                     : run_piece<T, true, false, kVectors>(piece);
  } else {
    piece.call->relu ? run_piece<T, false, true, kVectors>(piece)
                     : run_piece<T, false, false, kVectors>(piece);
  }
}

/// `kVectors`: vectors of 16 floats are registers.
template <bool kVectors>
[[gnu::always_inline]] inline void run_any(const Piece& piece) {
  piece.call->type == DType::kFloat32 ? run_typed<float, kVectors>(piece)
                                      : run_typed<BFloat16, kVectors>(piece);
}

void run_anywhere(const Piece& piece) { run_any<false>(piece); }
NPU_TARGET_AVX2 void run_avx2(const Piece& piece) { run_any<false>(piece); }
NPU_TARGET_AVX512 void run_avx512(const Piece& piece) { run_any<true>(piece); }

}  // namespace

void ScaleShift::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const std::byte* shift = operands.scale + channels() * static_cast<std::int64_t>(sizeof(float));
  // Enough pieces for all threads where there are few groups.
  const std::int64_t rows = outer * groups;
  const std::int64_t parts = rows >= 16 ? 1 : std::min<std::int64_t>(spatial, 16);
  const std::int64_t step = (spatial + parts - 1) / parts;
  const int threads = threads_for(rows * spatial * lanes >= kParallelElements);
  share_pieces(rows * parts, threads, [&](std::int64_t piece, int) {
    const std::int64_t row = piece / parts;
    const std::int64_t first = piece % parts * step;
    const std::int64_t last = std::min(spatial, first + step);
    if (first >= last) return;
    body({this, operands.source, operands.scale, shift, operands.target, row / groups, row % groups,
          first, last});
  });
}

Footprint footprint(const ScaleShift& kernel) {
  require(is_float(kernel.type) && is_float(kernel.scale_type), "a type is no float type");
  require(!kernel.has_shift || kernel.scale_type == DType::kFloat32,
          "'scale_type' is not float32, which a shift needs");
  const Count outer = at_least_one(kernel.outer, "outer");
  const Count channels =
      at_least_one(kernel.groups, "groups") * at_least_one(kernel.lanes, "lanes");
  const Count elements = outer * channels * at_least_one(kernel.spatial, "spatial");
  const Count scales = channels * (kernel.scale_by_outer ? outer : Count{1});
  const Count shifts = kernel.has_shift ? channels * 2 : channels;
  return FootprintBuilder()
      .read(elements, size_of(kernel.type), true)
      .read(std::max(scales.value(), shifts.value()), size_of(kernel.scale_type))
      .write(elements, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn

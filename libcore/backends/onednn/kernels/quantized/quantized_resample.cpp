// SPDX-License-Identifier: Apache-2.0
// Resampling of quantized numbers: sums of a few numbers with weights that add up to 1, computed
// with as floats in registers and rounded once for each result. Channels are last and taken in
// runs, which vectors go along. A piece of work is a row of the result. O(elements of the result *
// taps).
#include "kernels/quantized/quantized_resample.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/quantized/byte_checks.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kChannels = 64;  ///< in registers at a time

/// A row of the result, and what its elements have in common.
struct ResampledRow {
  const QuantizedResample* call;
  const std::byte* source;  ///< of the image
  std::byte* target;
  const Tap* outer;  ///< width[0] of them
  const Tap* inner;  ///< width[1] of them
};

/// Adds one element of the source, in one run of channels.
template <typename T>
[[gnu::always_inline]] inline void add_element(const T* from, float weight, float zero,
                                               std::int64_t count, float* sums) {
  for (std::int64_t c = 0; c < count; ++c) sums[c] += (static_cast<float>(from[c]) - zero) * weight;
}

template <typename From>
[[gnu::always_inline]] inline void add_taps(const ResampledRow& row, const Tap* taps,
                                            std::int64_t first, std::int64_t count, float* sums) {
  const QuantizedResample& call = *row.call;
  const From* source = elements<From>(row.source) + first;
  const auto zero = static_cast<float>(call.source_zero);
  for (std::int64_t a = 0; a < call.width[0]; ++a) {
    for (std::int64_t b = 0; b < call.width[1]; ++b) {
      const float weight = row.outer[a].weight * row.inner[b].weight;
      const std::int64_t line = row.outer[a].index * call.extents[1] + row.inner[b].index;
      for (std::int64_t c = 0; c < call.width[2]; ++c) {
        const std::int64_t place = line * call.extents[2] + taps[c].index;
        add_element(source + place * call.channels, weight * taps[c].weight, zero, count, sums);
      }
    }
  }
}

template <typename To>
[[gnu::always_inline]] inline void store_sums(const QuantizedResample& call, const float* sums,
                                              std::int64_t count, To* __restrict target) {
  const float factor = call.factor;
  const auto zero = static_cast<float>(call.zero);
  const auto least = static_cast<float>(call.least - call.zero);
  const auto most = static_cast<float>(call.most - call.zero);
  for (std::int64_t c = 0; c < count; ++c) {
    const float number = rounded_number(sums[c] * factor, least, most) + zero;
    target[c] = static_cast<To>(static_cast<std::int32_t>(number));
  }
}

template <typename From, typename To>
[[gnu::always_inline]] inline void resample_typed(const ResampledRow& row) {
  const QuantizedResample& call = *row.call;
  const std::int64_t columns = call.target_extent(2);
  for (std::int64_t x = 0; x < columns; ++x) {
    const Tap* taps = call.taps[2].data() + x * call.width[2];
    To* target = elements<To>(row.target) + x * call.channels;
    for (std::int64_t first = 0; first < call.channels; first += kChannels) {
      const std::int64_t count = std::min(kChannels, call.channels - first);
      float sums[kChannels] = {};
      add_taps<From>(row, taps, first, count, sums);
      store_sums(call, sums, count, target + first);
    }
  }
}

[[gnu::always_inline]] inline void resample(const ResampledRow& row) {
  const bool to_signed = row.call->to == DType::kInt8;
  if (row.call->from == DType::kInt8) {
    return to_signed ? resample_typed<std::int8_t, std::int8_t>(row)
                     : resample_typed<std::int8_t, std::uint8_t>(row);
  }
  to_signed ? resample_typed<std::uint8_t, std::int8_t>(row)
            : resample_typed<std::uint8_t, std::uint8_t>(row);
}

void resample_anywhere(const ResampledRow& row) { resample(row); }
NPU_TARGET_AVX2 void resample_avx2(const ResampledRow& row) { resample(row); }
NPU_TARGET_AVX512 void resample_avx512(const ResampledRow& row) { resample(row); }

/// Each number is one of the source.
void move_row(const ResampledRow& row) {
  const QuantizedResample& call = *row.call;
  const auto bytes = static_cast<std::size_t>(call.channels);
  const std::int64_t line = row.outer->index * call.extents[1] + row.inner->index;
  const std::byte* source = row.source + line * call.extents[2] * call.channels;
  const std::int64_t columns = call.target_extent(2);
  for (std::int64_t x = 0; x < columns; ++x) {
    const std::int64_t from = call.taps[2][static_cast<std::size_t>(x)].index;
    std::memcpy(row.target + x * call.channels, source + from * call.channels, bytes);
  }
}

bool weighs_one(const std::vector<Tap>& taps) {
  return std::all_of(taps.begin(), taps.end(), [](const Tap& tap) { return tap.weight == 1.0F; });
}

}  // namespace

bool QuantizedResample::only_moves() const {
  const bool has_one_tap = width[0] == 1 && width[1] == 1 && width[2] == 1;
  return has_one_tap && from == to && factor == 1.0F && source_zero == zero &&
         IntegerRange{least, most} == range_of(to) &&
         std::all_of(taps.begin(), taps.end(), weighs_one);
}

void QuantizedResample::run(const Operands& operands) const {
  const auto body =
      only_moves() ? move_row : for_isa(isa, resample_anywhere, resample_avx2, resample_avx512);
  const std::int64_t height = target_extent(1);
  const std::int64_t rows = target_extent(0) * height;
  const std::int64_t row = target_extent(2) * channels;
  const std::int64_t image = extents[0] * extents[1] * extents[2] * channels;
  share_pieces(
      batch * rows, threads_for(batch * rows * row >= kParallelElements),
      [&](std::int64_t piece, int) {
        const std::int64_t at = piece % rows;
        body({this, operands.source + piece / rows * image, operands.target + piece * row,
              taps[0].data() + at / height * width[0], taps[1].data() + at % height * width[1]});
      });
}

Footprint footprint(const QuantizedResample& kernel) {
  constexpr float kMostWeight = 1024.0F;  // no sum of products leaves float32
  require_bytes_of(kernel);
  Count source = at_least_one(kernel.batch, "batch") * at_least_one(kernel.channels, "channels");
  Count target = source;
  for (int i = 0; i < 3; ++i) {
    require_taps(kernel.taps[i], kernel.width[i], kernel.extents[i]);
    for (const Tap& tap : kernel.taps[i]) {
      require(std::abs(tap.weight) <= kMostWeight, "the weight of a tap is too large");
    }
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * kernel.target_extent(i);
  }
  return FootprintBuilder().read(source, 1).write(target, 1).done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Averages of windows of quantized numbers, as pooling and means over planes ask for them: exact
// sums in 32 bits, one multiplication and one rounding for each result. Channels are last and taken
// in runs, which vectors go along. O(elements of windows).
#include "kernels/quantized/quantized_average.hpp"

#include <algorithm>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/quantized/byte_checks.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kChannels = 64;  ///< of a thread's piece

/// The window of one result, in one run of channels.
struct Spot {
  const QuantizedAverage* call;
  const std::byte* source;  ///< of the image and the first channel
  std::byte* target;
  const Window* window[3];
  std::int64_t channels;
};

template <typename T>
[[gnu::always_inline]] inline void add_window(const Spot& spot, std::int32_t* sums) {
  const QuantizedAverage& call = *spot.call;
  const T* source = elements<T>(spot.source);
  const std::int64_t channels = spot.channels;
  for (std::int64_t z = spot.window[0]->begin; z < spot.window[0]->end; ++z) {
    for (std::int64_t y = spot.window[1]->begin; y < spot.window[1]->end; ++y) {
      for (std::int64_t x = spot.window[2]->begin; x < spot.window[2]->end; ++x) {
        const T* from = source + ((z * call.extents[1] + y) * call.extents[2] + x) * call.channels;
        for (std::int64_t c = 0; c < channels; ++c) sums[c] += from[c];
      }
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void store_average(const Spot& spot, const std::int32_t* sums) {
  const QuantizedAverage& call = *spot.call;
  std::int64_t count = 1;
  std::int64_t divisor = 1;
  for (const Window* window : spot.window) {
    count *= window->end - window->begin;
    divisor *= window->divisor;
  }
  if (call.divisor_override != 0) divisor = call.divisor_override;
  const auto zeros = static_cast<std::int32_t>(count * call.source_zero);
  const float factor = call.factor / static_cast<float>(divisor);
  const auto zero = static_cast<float>(call.zero);
  const auto least = static_cast<float>(call.least - call.zero);
  const auto most = static_cast<float>(call.most - call.zero);
  T* __restrict target = elements<T>(spot.target);
  const std::int64_t channels = spot.channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float number = static_cast<float>(sums[c] - zeros) * factor;
    target[c] =
        static_cast<T>(static_cast<std::int32_t>(rounded_number(number, least, most) + zero));
  }
}

[[gnu::always_inline]] inline void average(const Spot& spot) {
  std::int32_t sums[kChannels] = {};
  if (spot.call->from == DType::kInt8) {
    add_window<std::int8_t>(spot, sums);
  } else {
    add_window<std::uint8_t>(spot, sums);
  }
  if (spot.call->to == DType::kInt8) {
    store_average<std::int8_t>(spot, sums);
  } else {
    store_average<std::uint8_t>(spot, sums);
  }
}

void average_anywhere(const Spot& spot) { average(spot); }
NPU_TARGET_AVX2 void average_avx2(const Spot& spot) { average(spot); }
NPU_TARGET_AVX512 void average_avx512(const Spot& spot) { average(spot); }

}  // namespace

void QuantizedAverage::run(const Operands& operands) const {
  const auto body = for_isa(isa, average_anywhere, average_avx2, average_avx512);
  const std::vector<Window>& slices = windows[0];
  const std::vector<Window>& rows = windows[1];
  const std::vector<Window>& columns = windows[2];
  const auto spots = static_cast<std::int64_t>(slices.size() * rows.size() * columns.size());
  const std::int64_t runs = ceil_div(channels, kChannels);
  const std::int64_t elements_in = batch * extents[0] * extents[1] * extents[2] * channels;
  const auto width = static_cast<std::int64_t>(columns.size());
  const auto height = static_cast<std::int64_t>(rows.size());
  share_pieces(batch * spots * runs, threads_for(elements_in >= kParallelElements),
               [&](std::int64_t piece, int) {
                 const std::int64_t first = piece % runs * kChannels;
                 const std::int64_t spot = piece / runs % spots;
                 const std::int64_t image = piece / runs / spots;
                 body({this,
                       operands.source + image * (elements_in / batch) + first,
                       operands.target + (image * spots + spot) * channels + first,
                       {&slices[static_cast<std::size_t>(spot / width / height)],
                        &rows[static_cast<std::size_t>(spot / width % height)],
                        &columns[static_cast<std::size_t>(spot % width)]},
                       std::min(kChannels, channels - first)});
               });
}

Footprint footprint(const QuantizedAverage& kernel) {
  constexpr std::int64_t kMaxWindow = 1 << 22;  // a sum of 32 bits does not overflow
  require_bytes_of(kernel);
  Count source = at_least_one(kernel.batch, "batch") * at_least_one(kernel.channels, "channels");
  Count target = source;
  Count largest = 1;
  for (int i = 0; i < 3; ++i) {
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * static_cast<std::int64_t>(kernel.windows[i].size());
    require_windows(kernel.windows[i], kernel.extents[i]);
    std::int64_t longest = 1;
    for (const Window& window : kernel.windows[i]) {
      longest = std::max(longest, window.end - window.begin);
    }
    largest = largest * longest;
  }
  require(largest.value() <= kMaxWindow, "a window has too many elements");
  return FootprintBuilder().read(source, 1).write(target, 1).done();
}

}  // namespace npu::onednn

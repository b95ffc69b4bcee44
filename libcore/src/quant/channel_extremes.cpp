// SPDX-License-Identifier: Apache-2.0
// The extremes of each channel of a stream of tensors. O(elements).
#include "quant/channel_extremes.hpp"

#include <algorithm>
#include <cmath>

#include "npu/support/ids.hpp"

namespace npu {
namespace {

struct LowHigh {
  float low;
  float high;
};

void widen(LowHigh& extremes, float value) {
  if (!std::isfinite(value)) return;
  extremes.low = value < extremes.low ? value : extremes.low;
  extremes.high = value > extremes.high ? value : extremes.high;
}

void widen(LowHigh& extremes, std::span<const float> row) {
  float low = extremes.low;
  float high = extremes.high;
  for (const float value : row) {
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  if (std::isfinite(low) && std::isfinite(high)) {
    extremes = {low, high};
    return;
  }
  for (const float value : row) widen(extremes, value);
}

}  // namespace

std::span<const float> float_values(const Tensor& tensor, std::vector<float>& buffer) {
  const std::size_t size = index_of(tensor.element_count());
  if (tensor.dtype() == DType::kFloat32) return {tensor.as<float>(), size};
  if (!is_floating_point(tensor.dtype())) return {};
  buffer.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    buffer[i] = static_cast<float>(tensor.value_as_double(static_cast<std::int64_t>(i)));
  }
  return buffer;
}

void add_extremes(std::span<const float> values, const Shape& shape, ChannelExtremes& channels) {
  const std::size_t axis = index_of(channels.axis);
  const std::size_t size = index_of(shape[axis]);
  if (channels.low.empty()) {
    channels.low.assign(size, 0);
    channels.high.assign(size, 0);
  }
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= index_of(shape[d]);
  if (size == 0 || inner == 0) return;
  const std::size_t outer = values.size() / (size * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t c = 0; c < size; ++c) {
      LowHigh found{channels.low[c], channels.high[c]};
      const std::size_t at = (o * size + c) * inner;
      if (inner == 1) {
        widen(found, values[at]);
      } else {
        widen(found, values.subspan(at, inner));
      }
      channels.low[c] = found.low;
      channels.high[c] = found.high;
    }
  }
}

}  // namespace npu

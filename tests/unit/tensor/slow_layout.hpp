// SPDX-License-Identifier: Apache-2.0
// The offset of an element in an aligned layout, one element at a time, as defined in npu-ir(5).
// Shares no code with the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace npu::test {

struct SlowLayout {
  std::string family = "tx8";  // or "blocked", "channels_last"
  std::int64_t block = 16;

  static std::int64_t tx8_tail(std::int64_t channels) {
    for (const std::int64_t width : {4, 8, 16, 32, 64}) {
      if (channels <= width) return width;
    }
    return -1;
  }

  /// Channels that one batch item has room for.
  std::int64_t room(std::int64_t channels, std::int64_t element) const {
    if (family == "channels_last") return channels;
    if (family == "blocked") {
      std::int64_t padded = channels;
      while (padded % block != 0) ++padded;
      return padded;
    }
    const std::int64_t wide = element == 1 ? 128 : 64;
    std::int64_t whole = 0;
    while (channels - whole > wide / 2 && channels - whole >= wide) whole += wide;
    const std::int64_t rest = channels - whole;
    if (rest == 0) return whole;
    return whole + (rest > wide / 2 ? wide : tx8_tail(rest));
  }

  std::int64_t item_bytes(std::int64_t channels, std::int64_t pixels, std::int64_t element) const {
    std::int64_t bytes = room(channels, element) * pixels * element;
    if (family == "tx8") {
      while (bytes % 256 != 0) ++bytes;
    }
    return bytes;
  }

  /// Offset in bytes of channel c of pixel p of batch item n.
  std::int64_t offset(std::int64_t n, std::int64_t c, std::int64_t p, std::int64_t channels,
                      std::int64_t pixels, std::int64_t element) const {
    const std::int64_t item = n * item_bytes(channels, pixels, element);
    if (family == "channels_last") return item + (p * channels + c) * element;
    const std::int64_t wide = family == "blocked" ? block : element == 1 ? 128 : 64;
    const std::int64_t before = c / wide * wide;  // channels in whole blocks in front of it
    const std::int64_t left = room(channels, element) - before;
    const std::int64_t width = left < wide ? left : wide;
    return item + (before * pixels + p * width + (c - before)) * element;
  }

  std::int64_t bytes(const std::vector<std::int64_t>& shape, std::int64_t element) const {
    std::int64_t items = 1;
    std::int64_t channels = 1;
    std::int64_t pixels = 1;
    if (shape.size() == 1) channels = shape[0];
    if (shape.size() > 1) {
      items = shape[0];
      channels = shape[1];
      for (std::size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
    }
    if (items * channels * pixels == 0) return 0;
    return items * item_bytes(channels, pixels, element);
  }
};

}  // namespace npu::test

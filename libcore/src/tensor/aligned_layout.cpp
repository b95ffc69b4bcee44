// SPDX-License-Identifier: Apache-2.0
// Sizes of channel-aligned layouts. In each of them one batch item is a row of segments, and a
// segment is a matrix [pixels][width] that holds `width` neighbouring channels; the families differ
// in the widths and in the alignment of an item's start. O(dimensions).
#include "tensor/aligned_layout.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace npu {
namespace {

constexpr std::int64_t kTx8ItemAlignment = 256;  // bytes: 2048 bits
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

constexpr std::array<std::pair<LayoutFamily, std::string_view>, 3> kFamilies{{
    {LayoutFamily::kTx8, "tx8"},
    {LayoutFamily::kBlocked, "blocked"},
    {LayoutFamily::kChannelsLast, "channels_last"},
}};

struct Extents {
  std::int64_t items = 1;
  std::int64_t channels = 1;
  std::int64_t pixels = 1;
};

Extents extents_of(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {.channels = shape[0]};
  Extents extents{.items = shape[0], .channels = shape[1]};
  for (std::size_t i = 2; i < shape.size(); ++i) extents.pixels *= shape[i];
  return extents;
}

/// `wide` segments of `width` channels, then one of `tail` channels unless that is 0.
struct Segments {
  std::int64_t wide = 0;
  std::int64_t width = 1;
  std::int64_t tail = 0;
};

Segments tx8_segments(std::int64_t channels, std::size_t element) {
  Segments segments{.width = element == 1 ? 128 : 64};
  const std::int64_t half = segments.width / 2;
  segments.wide = channels / segments.width;
  const std::int64_t rest = channels % segments.width;
  if (rest > half) {
    ++segments.wide;
  } else if (rest > 0) {
    segments.tail = 4;
    while (segments.tail < rest) segments.tail *= 2;
  }
  return segments;
}

Segments segments_of(const AlignedLayout& layout, std::int64_t channels, std::size_t element) {
  switch (layout.family) {
    case LayoutFamily::kTx8:
      return tx8_segments(channels, element);
    case LayoutFamily::kBlocked:
      return {.wide = (channels + layout.block - 1) / layout.block, .width = layout.block};
    case LayoutFamily::kChannelsLast:
      break;
  }
  return {.wide = 1, .width = channels};
}

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kLargest : product;
}

std::int64_t item_bytes(const AlignedLayout& layout, const Extents& extents, std::size_t element) {
  const Segments segments = segments_of(layout, extents.channels, element);
  std::int64_t bytes = saturating_product(segments.wide, segments.width);
  bytes = bytes > kLargest - segments.tail ? kLargest : bytes + segments.tail;
  bytes = saturating_product(saturating_product(bytes, extents.pixels),
                             static_cast<std::int64_t>(element));
  if (layout.family != LayoutFamily::kTx8) return bytes;
  if (bytes > kLargest - kTx8ItemAlignment) return kLargest;
  return (bytes + kTx8ItemAlignment - 1) / kTx8ItemAlignment * kTx8ItemAlignment;
}

}  // namespace

std::string_view layout_family_name(LayoutFamily wanted) noexcept {
  for (const auto& [family, name] : kFamilies) {
    if (family == wanted) return name;
  }
  return {};
}

std::optional<LayoutFamily> parse_layout_family(std::string_view wanted) noexcept {
  for (const auto& [family, name] : kFamilies) {
    if (name == wanted) return family;
  }
  return std::nullopt;
}

std::string aligned_layout_name(const AlignedLayout& layout) {
  std::string name(layout_family_name(layout.family));
  if (layout.family == LayoutFamily::kBlocked) name += std::to_string(layout.block);
  return name;
}

bool has_aligned_form(DType dtype) noexcept { return dtype_size(dtype) <= 4; }

std::int64_t aligned_bytes(const AlignedLayout& layout, DType dtype, const Shape& shape) noexcept {
  const Extents extents = extents_of(shape);
  if (extents.items == 0 || extents.channels == 0 || extents.pixels == 0) return 0;
  return saturating_product(extents.items, item_bytes(layout, extents, dtype_size(dtype)));
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Sizes of channel-aligned layouts, and conversion from and to row-major order.
//
// In each of them one batch item is a row of segments, and a segment is a matrix [pixels][width]
// that holds `width` neighbouring channels; the families differ in the widths and in the alignment
// of an item's start. So one pair of loops converts them all. It transposes a segment in tiles of a
// few pixels, which keeps both sides of the transposition in L1. O(bytes).
#include "tensor/aligned_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
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

/// Converts between `valid` channels of `pixels` elements each and a segment [pixels][width].
template <typename T, bool kToAligned>
void convert_segment(T* channels, T* segment, std::int64_t valid, std::int64_t width,
                     std::int64_t pixels) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t first = 0; first < pixels; first += kTile) {
    const std::int64_t last = std::min(first + kTile, pixels);
    for (std::int64_t c = 0; c < valid; ++c) {
      for (std::int64_t p = first; p < last; ++p) {
        T& plain = channels[c * pixels + p];
        T& aligned = segment[p * width + c];
        if constexpr (kToAligned) {
          aligned = plain;
        } else {
          plain = aligned;
        }
      }
    }
    if constexpr (kToAligned) {
      for (std::int64_t p = first; p < last; ++p) {
        std::fill(segment + p * width + valid, segment + (p + 1) * width, T{});
      }
    }
  }
}

template <typename T, bool kToAligned>
void convert(const AlignedLayout& layout, const Shape& shape, std::byte* row_major,
             std::byte* aligned) {
  const Extents extents = extents_of(shape);
  const Segments segments = segments_of(layout, extents.channels, sizeof(T));
  const std::int64_t stride = item_bytes(layout, extents, sizeof(T));
  for (std::int64_t n = 0; n < extents.items; ++n) {
    T* const plain = reinterpret_cast<T*>(row_major) + n * extents.channels * extents.pixels;
    std::byte* const item = aligned + n * stride;
    T* segment = reinterpret_cast<T*>(item);
    for (std::int64_t first = 0; first < extents.channels;) {
      const bool is_tail = first / segments.width >= segments.wide;
      const std::int64_t width = is_tail ? segments.tail : segments.width;
      const std::int64_t valid = std::min(width, extents.channels - first);
      convert_segment<T, kToAligned>(plain + first * extents.pixels, segment, valid, width,
                                     extents.pixels);
      segment += width * extents.pixels;
      first += valid;
    }
    if constexpr (kToAligned) {
      std::byte* const end = reinterpret_cast<std::byte*>(segment);
      std::fill(end, item + stride, std::byte{0});
    }
  }
}

template <bool kToAligned>
void convert(const AlignedLayout& layout, DType dtype, const Shape& shape, std::byte* row_major,
             std::byte* aligned) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  switch (dtype_size(dtype)) {
    case 1:
      return convert<std::uint8_t, kToAligned>(layout, shape, row_major, aligned);
    case 2:
      return convert<std::uint16_t, kToAligned>(layout, shape, row_major, aligned);
    default:
      return convert<std::uint32_t, kToAligned>(layout, shape, row_major, aligned);
  }
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

std::optional<AlignedLayout> parse_aligned_layout(std::string_view name) noexcept {
  const auto family = parse_layout_family(name);
  if (family && *family != LayoutFamily::kBlocked) return AlignedLayout{.family = *family};
  constexpr std::string_view kPrefix = "blocked";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  AlignedLayout layout{.family = LayoutFamily::kBlocked};
  const auto [end, error] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layout.block);
  if (error != std::errc() || end != name.data() + name.size() || layout.block < 1) {
    return std::nullopt;
  }
  return layout;
}

bool has_aligned_form(DType dtype) noexcept { return dtype_size(dtype) <= 4; }

std::int64_t aligned_bytes(const AlignedLayout& layout, DType dtype, const Shape& shape) noexcept {
  const Extents extents = extents_of(shape);
  if (extents.items == 0 || extents.channels == 0 || extents.pixels == 0) return 0;
  return saturating_product(extents.items, item_bytes(layout, extents, dtype_size(dtype)));
}

void to_aligned(const AlignedLayout& layout, DType dtype, const Shape& shape,
                const std::byte* row_major, std::byte* aligned) {
  // In this direction it is only read.
  convert<true>(layout, dtype, shape, const_cast<std::byte*>(row_major), aligned);
}

void from_aligned(const AlignedLayout& layout, DType dtype, const Shape& shape,
                  const std::byte* aligned, std::byte* row_major) {
  convert<false>(layout, dtype, shape, row_major, const_cast<std::byte*>(aligned));
}

}  // namespace npu

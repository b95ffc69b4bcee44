// SPDX-License-Identifier: Apache-2.0
// What kernels on quantized numbers read and write, and which values of their fields they can run
// with; see footprint.cpp. O(1).
#include <cmath>

#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

namespace {

/// The range is of the type's numbers, which all vectors of it hold.
void require_range(std::int64_t least, std::int64_t most, DType type) {
  const auto [low, high] = range_of(type);
  require(low <= least && least <= most && most <= high, "'least' and 'most' are no range of 'to'");
}

void require_byte(std::int64_t number, const char* reason) {
  require(number >= -128 && number <= 255, reason);
}

/// [outer, channels, inner]
template <typename Kernel>
Count elements_of(const Kernel& kernel) {
  return at_least_one(kernel.outer, "outer") * at_least_one(kernel.channels, "channels") *
         at_least_one(kernel.inner, "inner");
}

// What kernels have in common that make bytes of sums of bytes.
template <typename Kernel>
void require_bytes_of(const Kernel& kernel) {
  require(is_byte(kernel.from) && is_byte(kernel.to), "a type is not uint8 or int8");
  require_range(kernel.least, kernel.most, kernel.to);
  require_byte(kernel.source_zero, "'source_zero' is no byte");
  require_byte(kernel.zero, "'zero' is no byte");
  require(std::isfinite(kernel.factor), "'factor' is not finite");
}

}  // namespace

Footprint footprint(const Quantize& kernel) {
  require(is_byte(kernel.to) || kernel.to == DType::kInt16, "'to' is not uint8, int8 or int16");
  require_range(kernel.least, kernel.most, kernel.to);
  return FootprintBuilder()
      .read(elements_of(kernel))
      .read(kernel.channels)
      .read(kernel.channels)
      .write(elements_of(kernel), size_of(kernel.to))
      .done();
}

Footprint footprint(const Dequantize& kernel) {
  require(is_byte(kernel.from) || kernel.from == DType::kInt16 || kernel.from == DType::kInt32,
          "'from' is not uint8, int8, int16 or int32");
  return FootprintBuilder()
      .read(elements_of(kernel), size_of(kernel.from))
      .read(kernel.channels)
      .read(kernel.channels)
      .write(elements_of(kernel))
      .done();
}

Footprint footprint(const ByteTable& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count, 1).read(256, 1).write(count, 1).done();
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

Footprint footprint(const SplitRows& kernel) {
  const Count count = at_least_one(kernel.rows, "rows") * at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count).write(count * 2, 1).done();
}

namespace {

/// So few that no sum of bytes leaves 32 bits.
Count inner_of(std::int64_t inner) {
  constexpr std::int64_t kMostInner = 1 << 22;
  require(inner <= kMostInner, "'inner' is too large");
  return at_least_one(inner, "inner");
}

/// Words of four bytes of a row with its sum, or without, of int32.
Count words_of(DType type, std::int64_t inner) {
  return is_byte(type) ? Count{padded_inner(type, inner) / 4 + 1} : Count{inner};
}

}  // namespace

Footprint footprint(const IntegerRows& kernel) {
  require(is_byte(kernel.type) || kernel.type == DType::kInt32,
          "'type' is not uint8, int8 or int32");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count channels = at_least_one(kernel.channels, "channels");
  require(at_least_one(kernel.groups, "groups").value() <= kernel.channels &&
              kernel.channels % kernel.groups == 0,
          "'groups' does not divide 'channels'");
  Count source = batch * channels;
  Count rows = batch * kernel.groups;
  Count inner = kernel.channels / kernel.groups;
  for (int i = 0; i < 3; ++i) {
    source = source * at_least_one(kernel.extents[i], "extents");
    rows = rows * at_least_one(kernel.windows[i], "windows");
    inner = inner * at_least_one(kernel.taps[i], "taps");
    // Where windows lie is computed without overflow.
    static_cast<void>(Count{kernel.windows[i]} * at_least_one(kernel.stride[i], "stride") +
                      Count{kernel.taps[i]} * at_least_one(kernel.dilation[i], "dilation") +
                      Count{kernel.pad[i]});
  }
  return FootprintBuilder()
      .read(source, size_of(kernel.type))
      .read(1)
      .write(rows * words_of(kernel.type, inner_of(inner.value()).value()))
      .done();
}

Footprint footprint(const IntegerPanels& kernel) {
  require(is_byte(kernel.type), "'type' is not uint8 or int8");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count inner = inner_of(kernel.inner);
  const Count padded = Count{kernel.panels()} * IntegerPanels::kColumns;
  return FootprintBuilder()
      .read(batch * inner * columns, 1)
      .write(batch * padded * words_of(kernel.type, kernel.inner))
      .done();
}

Footprint footprint(const IntegerProduct& kernel) {
  constexpr std::int64_t kMostShift = 256;
  const bool is_bytes = kernel.type == DType::kUInt8;
  require(is_bytes || kernel.type == DType::kInt32, "'type' is not uint8 or int32");
  require(!kernel.uses_vnni || cpu_has_vnni(), "'uses_vnni' is more than this CPU has");
  for (const std::int64_t shift : {kernel.left_shift, kernel.right_shift}) {
    require(-kMostShift <= shift && shift <= kMostShift, "a shift is too large");
  }
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count words = words_of(kernel.type, inner_of(kernel.inner).value());
  const Count padded =
      is_bytes ? Count{ceil_div(kernel.columns, IntegerPanels::kColumns)} * IntegerPanels::kColumns
               : columns;
  static_cast<void>(rows * columns * words * batch);
  return FootprintBuilder()
      .read(batch * rows * words)
      .read(batch * padded * words)
      .read_if(is_bytes, kernel.left_zeros ? rows : Count{1})
      .read_if(is_bytes, kernel.right_zeros ? columns : Count{1})
      .write(target_span_of({kernel.batch, kernel.rows, kernel.columns},
                            {kernel.target_batch, kernel.target_row, 1}))
      .done();
}

Footprint footprint(const AttentionSum& kernel) {
  constexpr std::int64_t kMostCount = 1 << 22;  // a sum of 32 bits does not overflow
  require(is_byte(kernel.to) || kernel.to == DType::kFloat32, "'to' is not uint8, int8 or float32");
  if (is_byte(kernel.to)) require_range(kernel.least, kernel.most, kernel.to);
  require_byte(kernel.source_zero, "'source_zero' is no byte");
  require_byte(kernel.zero, "'zero' is no byte");
  require(std::isfinite(kernel.factor), "'factor' is not finite");
  require(kernel.count <= kMostCount, "'count' is too large");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count width = at_least_one(kernel.width, "width");
  return FootprintBuilder()
      .read(rows * 2 * at_least_one(kernel.count, "count"), 1)
      .read(rows * 2 * width)
      .write(rows * width, size_of(kernel.to))
      .done();
}

Footprint footprint(const QuantizedBinary& kernel) {
  require(is_byte(kernel.a_type) && is_byte(kernel.b_type) && is_byte(kernel.to),
          "a type is not uint8 or int8");
  require_range(kernel.least, kernel.most, kernel.to);
  for (const std::int64_t zero : {kernel.a_zero, kernel.b_zero, kernel.zero}) {
    require_byte(zero, "a zero point is no byte");
  }
  require(std::isfinite(kernel.a_factor) && std::isfinite(kernel.b_factor),
          "a factor is not finite");
  const Count part = at_least_one(kernel.outer, "outer") * at_least_one(kernel.inner, "inner");
  const Count count = part * at_least_one(kernel.repeat, "repeat") *
                      at_least_one(kernel.inner_repeat, "inner_repeat");
  return FootprintBuilder().read(count, 1).read(part, 1).write(count, 1).done();
}

}  // namespace npu::onednn

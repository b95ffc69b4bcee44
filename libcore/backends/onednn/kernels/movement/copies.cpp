// SPDX-License-Identifier: Apache-2.0
// Copies and conversions: strided, padded, concatenated, element by element. All are bound by
// memory; the outermost loop is shared among threads once there is enough work to pay for it, and
// transposing copies walk square tiles. O(elements).
#include "kernels/movement/copies.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/iteration_space.hpp"
#include "kernels/base/share_work.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

namespace {

/// `count` elements of a line.
template <typename T>
void copy_line(const StridedCopy& copy, std::int64_t count, const T* from, T* to) {
  constexpr std::size_t kBlock = 64;  // bytes: the channels of one position in blocks
  const std::int64_t source_column = copy.source_strides.back();
  const std::int64_t target_column = copy.target_strides.back();
  if (source_column == 1 && target_column == 1) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes == kBlock) {
      std::memcpy(to, from, kBlock);
    } else {
      std::memcpy(to, from, bytes);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i * target_column] = from[i * source_column];
}

/// Lines of a plane whose neighbours lie apart in the source: it is walked in square tiles, so that
/// the lines of both sides stay in the cache.
constexpr std::int64_t kTile = 32;
template <typename T>
void transpose_lines(const StridedCopy& copy, std::int64_t first, std::int64_t last, const T* from,
                     T* to) {
  const std::size_t rank = copy.extents.size();
  const std::int64_t columns = copy.extents[rank - 1];
  const std::int64_t source_column = copy.source_strides[rank - 1];
  const std::int64_t target_column = copy.target_strides[rank - 1];
  for (std::int64_t line = first; line < last; line += kTile) {
    const std::int64_t last_line = std::min(last, line + kTile);
    for (std::int64_t begin = 0; begin < columns; begin += kTile) {
      const std::int64_t end = std::min(columns, begin + kTile);
      for (std::int64_t each = line; each < last_line; ++each) {
        const T* from_line = from + each * copy.source_strides[rank - 2];
        T* to_line = to + each * copy.target_strides[rank - 2];
        for (std::int64_t i = begin; i < end; ++i) {
          to_line[i * target_column] = from_line[i * source_column];
        }
      }
    }
  }
}

template <typename T>
void copy_elements(const StridedCopy& copy, const std::byte* source_bytes,
                   std::byte* target_bytes) {
  const T* source = elements<T>(source_bytes);
  T* target = elements<T>(target_bytes);
  const std::size_t rank = copy.extents.size();
  if (rank < 2 || copy.source_strides[rank - 1] == 1) {
    for_each_row<2>(copy.extents, {&copy.source_strides, &copy.target_strides},
                    [&](std::int64_t count, const std::int64_t(&offsets)[2]) {
                      copy_line(copy, count, source + offsets[0], target + offsets[1]);
                    });
    return;
  }
  const std::int64_t lines = copy.extents[rank - 2];
  const std::int64_t plane = lines * copy.extents[rank - 1];
  if (plane <= kPieceElements) {
    share_rows<2>(copy.extents, 2, {&copy.source_strides, &copy.target_strides},
                  [&](const std::int64_t(&offsets)[2]) {
                    transpose_lines(copy, 0, lines, source + offsets[0], target + offsets[1]);
                  });
    return;
  }
  const std::int64_t total = product(copy.extents);
  const std::int64_t bands = (lines + kTile - 1) / kTile;
  share_pieces(total / plane * bands, threads_for(total >= kParallelElements),
               [&](std::int64_t piece, int) {
                 const RowWalk<2> walk(piece / bands, copy.extents, 2,
                                       {&copy.source_strides, &copy.target_strides});
                 const std::int64_t first = piece % bands * kTile;
                 transpose_lines(copy, first, std::min(lines, first + kTile),
                                 source + walk.offsets()[0], target + walk.offsets()[1]);
               });
}

template <typename From, typename To>
inline To cast_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<From, BFloat16>)
      return load(value) != 0.0F;
    else
      return value != From{};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    BFloat16 result;
    if constexpr (std::is_same_v<From, BFloat16>)
      result = value;
    else
      store(result, static_cast<float>(value));
    return result;
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return cast_value<float, To>(load(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Outside int64 the result means nothing, but must not be undefined.
    constexpr auto kLimit = static_cast<From>(9.2233720368547758e18);
    if (!(value > -kLimit && value < kLimit)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Calls body(i) for every element; on threads where there are enough of them.
template <typename Body>
void share_elements(std::int64_t count, const Body& body) {
  constexpr std::int64_t kRun = 8192;
  share_range(count, kRun, threads_for(count >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) body(i);
              });
}

template <typename From, typename To>
void cast_all(const From* source, To* target, std::int64_t count) {
  share_elements(count, [&](std::int64_t i) { target[i] = cast_value<From, To>(source[i]); });
}

template <typename Body>
void with_type(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kBFloat16:
      return body(BFloat16{});
    case DType::kInt8:
      return body(std::int8_t{});
    case DType::kUInt8:
      return body(std::uint8_t{});
    case DType::kInt16:
      return body(std::int16_t{});
    case DType::kInt32:
      return body(std::int32_t{});
    case DType::kInt64:
      return body(std::int64_t{});
    case DType::kBool:
      return body(bool{});
    default:
      return;
  }
}

}  // namespace

namespace {

struct Half {
  std::uint16_t bits;
};
float load(Half value) { return float16_to_float(value.bits); }
void store(Half& target, float value) { target.bits = float_to_float16(value); }

}  // namespace

void Convert::run(const Operands& operands) const {
  const auto convert_to = [&]<typename To>(To /*type*/) {
    const auto convert = [&]<typename From>(From /*type*/) {
      const From* values = elements<From>(operands.source);
      To* results = elements<To>(operands.target);
      share_elements(count, [&](std::int64_t i) { store(results[i], load(values[i])); });
    };
    if (from == DType::kFloat32) convert(float{});
    if (from == DType::kBFloat16) convert(BFloat16{});
    if (from == DType::kFloat16) convert(Half{});
  };
  if (to == DType::kFloat32) convert_to(float{});
  if (to == DType::kBFloat16) convert_to(BFloat16{});
  if (to == DType::kFloat16) convert_to(Half{});
}

void RoundToBFloat16::run(const Operands& operands) const {
  auto* values = elements<float>(operands.target);
  share_elements(count,
                 [&](std::int64_t i) { values[i] = load(BFloat16{rounded_bits(values[i])}); });
}

void CopyBytes::run(const Operands& operands) const {
  std::memcpy(operands.target, operands.source, static_cast<std::size_t>(bytes));
}

void StridedCopy::simplify() { simplify_space(extents, {&target_strides, &source_strides}); }

void StridedCopy::run(const Operands& operands) const {
  struct Sixteen {
    std::uint64_t parts[2];
  };
  switch (element_size) {
    case 1:
      return copy_elements<std::uint8_t>(*this, operands.source, operands.target);
    case 2:
      return copy_elements<std::uint16_t>(*this, operands.source, operands.target);
    case 4:
      return copy_elements<std::uint32_t>(*this, operands.source, operands.target);
    case 8:
      return copy_elements<std::uint64_t>(*this, operands.source, operands.target);
    default:
      return copy_elements<Sixteen>(*this, operands.source, operands.target);
  }
}

void PaddedCopy::run(const Operands& operands) const {
  if (is_byte(type)) {
    std::memset(operands.target, static_cast<int>(number), static_cast<std::size_t>(count));
  } else if (type == DType::kFloat32) {
    std::fill_n(elements<float>(operands.target), count, number);
  } else {
    std::fill_n(elements<std::uint16_t>(operands.target), count, rounded_bits(number));
  }
  copy.run(
      {operands.source, operands.target + offset * static_cast<std::int64_t>(dtype_size(type))});
}

bool Cast::supports(DType type) noexcept {
  bool known = false;
  with_type(type, [&](auto) { known = true; });
  return known;
}

void Cast::run(const Operands& operands) const {
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      cast_all(elements<decltype(from_value)>(operands.source),
               elements<decltype(to_value)>(operands.target), count);
    });
  });
}

void PlainConcat::run(const Operands& operands) const {
  const auto count = static_cast<std::int64_t>(run_bytes.size());
  std::int64_t row_bytes = 0;
  for (const std::int64_t bytes : run_bytes) row_bytes += bytes;
  const int threads = threads_for(outer * row_bytes >= 4 * kParallelElements);
  share_pieces(outer, threads, [&](std::int64_t row, int) {
    std::byte* to = operands.target + row * row_bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t bytes = run_bytes[static_cast<std::size_t>(i)];
      std::memcpy(to, operands.sources[static_cast<std::size_t>(i)] + row * bytes,
                  static_cast<std::size_t>(bytes));
      to += bytes;
    }
  });
}

Footprint footprint(const Convert& kernel) {
  const auto converts = [](DType type) { return is_float(type) || type == DType::kFloat16; };
  require(converts(kernel.from) && converts(kernel.to) && kernel.from != kernel.to,
          "'from' and 'to' are not two of float32, bfloat16 and float16");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.from))
      .write(count, size_of(kernel.to))
      .done();
}

Footprint footprint(const RoundToBFloat16& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count, kFloat, true).write(count).done();
}

Footprint footprint(const CopyBytes& kernel) {
  const Count bytes = at_least_one(kernel.bytes, "bytes");
  return FootprintBuilder().read(bytes, 1).write(bytes, 1).done();
}

Footprint footprint(const StridedCopy& kernel) {
  const std::size_t size = kernel.element_size;
  require(size == 1 || size == 2 || size == 4 || size == 8 || size == 16,
          "'element_size' is not 1, 2, 4, 8 or 16");
  const auto bytes = static_cast<std::int64_t>(size);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.source_strides), bytes)
      .write(target_span_of(kernel.extents, kernel.target_strides), bytes)
      .done();
}

Footprint footprint(const PaddedCopy& kernel) {
  require(is_float(kernel.type) || is_byte(kernel.type), "'type' is no float type and no byte");
  if (is_byte(kernel.type)) {
    const auto [least, most] = range_of(kernel.type);
    require(kernel.number >= static_cast<float>(least) && kernel.number <= static_cast<float>(most),
            "'number' is none of 'type'");
  }
  require(kernel.copy.element_size == dtype_size(kernel.type),
          "'element_size' is not that of 'type'");
  Footprint result = footprint(kernel.copy);
  const Count whole = at_least_one(kernel.count, "count") * size_of(kernel.type);
  const Count part =
      Count{kernel.offset} * size_of(kernel.type) + static_cast<std::int64_t>(result.write.bytes);
  require(part.value() <= whole.value(), "the copy leads out of 'count' elements");
  result.write.bytes = static_cast<std::size_t>(whole.value());
  return result;
}

Footprint footprint(const Cast& kernel) {
  require(Cast::supports(kernel.from) && Cast::supports(kernel.to), "there is no such cast");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.from))
      .write(count, size_of(kernel.to))
      .done();
}

Footprint footprint(const PlainConcat& kernel) {
  const Count outer = at_least_one(kernel.outer, "outer");
  require(!kernel.run_bytes.empty(), "'run_bytes' is empty");
  FootprintBuilder builder;
  Count row = 0;
  for (const std::int64_t bytes : kernel.run_bytes) {
    builder.read(outer * at_least_one(bytes, "run_bytes"), 1);
    row = row + bytes;
  }
  return builder.write(outer * row, 1).done();
}

}  // namespace npu::onednn

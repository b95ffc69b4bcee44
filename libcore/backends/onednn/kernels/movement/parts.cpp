// SPDX-License-Identifier: Apache-2.0
// Tensors put together from parts of others: rolled, flipped, repeated, overwritten in part, and
// triangles of matrices; rows behind the valid ones. Bound by memory; O(elements).
#include "kernels/movement/parts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

void CopyParts::run(const Operands& operands) const {
  for (const Part& part : parts) {
    const auto size = static_cast<std::int64_t>(part.copy.element_size);
    const std::byte* from =
        operands.sources[static_cast<std::size_t>(part.source)] + part.from * size;
    std::byte* to = operands.target + part.to * size;
    // A tensor that is overwritten where it lies.
    if (from == to && part.copy.source_strides == part.copy.target_strides) continue;
    part.copy.run({from, to});
  }
}

void Triangle::run(const Operands& operands) const {
  const auto [source, target] = operands;
  const std::int64_t row_bytes = columns * element_size;
  const int threads = threads_for(planes * rows * columns >= kParallelElements);
  share_pieces(
      planes * rows, threads, [&, source = source, target = target](std::int64_t piece, int) {
        const std::int64_t row = piece % rows;
        const std::int64_t at = piece * row_bytes;
        // An upper triangle begins at the diagonal, a lower one ends behind it.
        const std::int64_t edge =
            std::clamp(row + diagonal + (upper ? 0 : 1), std::int64_t{0}, columns) * element_size;
        const std::int64_t begin = upper ? edge : 0;
        const std::int64_t end = upper ? row_bytes : edge;
        std::byte* to = target + at;
        std::memset(to, 0, static_cast<std::size_t>(begin));
        std::memcpy(to + begin, source + at + begin, static_cast<std::size_t>(end - begin));
        std::memset(to + end, 0, static_cast<std::size_t>(row_bytes - end));
      });
}

namespace {

/// The bytes of minus infinity, the lowest ones first.
std::uint64_t lowest_bits(DType type) {
  switch (type) {
    case DType::kFloat16:
      return 0xFC00;
    case DType::kBFloat16:
      return 0xFF80;
    case DType::kFloat64:
      return 0xFFF0000000000000;
    default:
      return 0xFF800000;
  }
}

bool has_infinity(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16 ||
         type == DType::kFloat64;
}

}  // namespace

void TailRows::run(const Operands& operands) const {
  std::int64_t valid = 0;
  std::memcpy(&valid, operands.valid, sizeof valid);
  if (valid < (fill == Fill::kEdge ? 1 : 0) || valid > rows) {
    throw Error(ErrorCode::kFailed, node + ": " + std::to_string(valid) +
                                        " valid rows, expected at most " + std::to_string(rows) +
                                        (fill == Fill::kEdge ? " and at least 1" : ""));
  }
  const auto size = static_cast<std::int64_t>(dtype_size(type));
  const std::int64_t row_bytes = width * size;
  const std::uint64_t bits = fill == Fill::kLowest ? lowest_bits(type) : 0;
  const auto [source, unused, target] = operands;
  const bool is_in_place = source == target;  // a tensor that is overwritten in its own memory
  const int threads = threads_for(planes * rows * width >= kParallelElements);
  share_pieces(planes * rows, threads,
               [&, source = source, target = target](std::int64_t piece, int) {
                 const std::int64_t row = piece % rows;
                 if (is_in_place && row < valid) return;
                 std::byte* to = target + piece * row_bytes;
                 const std::int64_t from = row < valid ? piece : piece - row + valid - 1;
                 if (row < valid || fill == Fill::kEdge) {
                   std::memcpy(to, source + from * row_bytes, static_cast<std::size_t>(row_bytes));
                   return;
                 }
                 for (std::int64_t i = 0; i < row_bytes; i += size) {
                   std::memcpy(to + i, &bits, static_cast<std::size_t>(size));
                 }
               });
}

namespace {

/// Of a tensor, `low` elements before the first one of an iteration space and `high` behind it.
struct Reach {
  Count low = 0;
  Count high = 0;
};

/// The same as span_of, with strides that may be negative.
Reach reach_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides) {
  require(!extents.empty() && extents.size() == strides.size(),
          "extents and strides are not of one rank");
  Reach reach;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Count steps = at_least_one(extents[i], "extents").value() - 1;
    require(strides[i] >= -kMaxOperandBytes, "a stride is too small");
    if (strides[i] < 0) {
      reach.low = reach.low + steps * -strides[i];
    } else {
      reach.high = reach.high + steps * strides[i];
    }
  }
  return reach;
}

/// Whether its first operand is what the others are copied over, as it lies.
bool is_overwritten(const CopyParts& kernel) {
  const CopyParts::Part& first = kernel.parts.front();
  return first.source == 0 && first.from == first.to &&
         first.copy.source_strides == first.copy.target_strides &&
         std::all_of(kernel.parts.begin() + 1, kernel.parts.end(),
                     [](const CopyParts::Part& part) { return part.source != 0; });
}

}  // namespace

Footprint footprint(const CopyParts& kernel) {
  constexpr std::int64_t kMostOperands = 64;
  require(kernel.sources >= 1 && kernel.sources <= kMostOperands, "'sources' is not in 1..64");
  require(!kernel.parts.empty(), "'parts' is empty");
  const std::size_t size = kernel.parts.front().copy.element_size;
  require(is_element_size(size) || size == 16, "'element_size' is not 1, 2, 4, 8 or 16");
  std::vector<Count> reads(static_cast<std::size_t>(kernel.sources), 1);
  Count target = 1;
  Count written = 0;
  for (const CopyParts::Part& part : kernel.parts) {
    require(part.copy.element_size == size, "'element_size' differs between parts");
    require(part.source >= 0 && part.source < kernel.sources, "'source' is not there");
    const Reach reach = reach_of(part.copy.extents, part.copy.source_strides);
    require(Count{part.from}.value() >= reach.low.value(), "a part begins before its operand");
    Count& read = reads[static_cast<std::size_t>(part.source)];
    read = std::max(read.value(), (Count{part.from} + reach.high + 1).value());
    const Count span = target_span_of(part.copy.extents, part.copy.target_strides);
    target = std::max(target.value(), (Count{part.to} + span).value());
    written = written + span;
  }
  // What bounds the time by the memory.
  require(written.value() / 16 <= target.value(), "parts lie over each other too often");
  FootprintBuilder builder;
  const auto bytes = static_cast<std::int64_t>(size);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    builder.read(reads[i], bytes, i == 0 && is_overwritten(kernel));
  }
  return builder.write(target, bytes).done();
}

Footprint footprint(const TailRows& kernel) {
  const std::size_t size = dtype_size(kernel.type);
  require(is_element_size(size), "'type' has not 1, 2, 4 or 8 bytes");
  require(kernel.fill <= TailRows::Fill::kEdge, "'fill' is none that there is");
  require(kernel.fill != TailRows::Fill::kLowest || has_infinity(kernel.type),
          "'type' has no minus infinity");
  const Count elements = at_least_one(kernel.planes, "planes") * at_least_one(kernel.rows, "rows") *
                         at_least_one(kernel.width, "width");
  const auto bytes = static_cast<std::int64_t>(size);
  return FootprintBuilder().read(elements, bytes, true).read(1, 8).write(elements, bytes).done();
}

Footprint footprint(const Triangle& kernel) {
  require(is_element_size(static_cast<std::size_t>(kernel.element_size)),
          "'element_size' is not 1, 2, 4 or 8");
  require(kernel.diagonal >= -kMaxOperandBytes && kernel.diagonal <= kMaxOperandBytes,
          "'diagonal' is too far away");
  const Count elements = at_least_one(kernel.planes, "planes") * at_least_one(kernel.rows, "rows") *
                         at_least_one(kernel.columns, "columns");
  return FootprintBuilder()
      .read(elements, kernel.element_size)
      .write(elements, kernel.element_size)
      .done();
}

}  // namespace npu::onednn

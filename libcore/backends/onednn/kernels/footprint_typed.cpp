// SPDX-License-Identifier: Apache-2.0
// What kernels on integers, truth and elements by index read and write, and which values of their
// fields they can run with; see footprint.cpp. O(fields).
#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

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

bool is_countable(DType type) {
  return type == DType::kInt32 || type == DType::kInt64 || type == DType::kBool;
}

/// [outer, count, inner]
template <typename Kernel>
Count elements_of(const Kernel& kernel) {
  return at_least_one(kernel.outer, "outer") * at_least_one(kernel.count, "count") *
         at_least_one(kernel.inner, "inner");
}

bool is_element_size(std::size_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

}  // namespace

Footprint footprint(const TypedBinary& kernel) {
  require(TypedBinary::supports(kernel.op, kernel.type), "'type' is none that 'op' takes");
  const Count target_size = TypedBinary::gives_bool(kernel.op) ? Count{1} : size_of(kernel.type);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.a_strides), size_of(kernel.type))
      .read(span_of(kernel.extents, kernel.b_strides), size_of(kernel.type))
      .write(target_span_of(kernel.extents, kernel.target_strides), target_size)
      .done();
}

Footprint footprint(const Select& kernel) {
  require(is_element_size(kernel.element_size), "'element_size' is not 1, 2, 4 or 8");
  const Count size = static_cast<std::int64_t>(kernel.element_size);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.condition_strides), 1)
      .read(span_of(kernel.extents, kernel.a_strides), size)
      .read(span_of(kernel.extents, kernel.b_strides), size)
      .write(target_span_of(kernel.extents, kernel.target_strides), size)
      .done();
}

Footprint footprint(const IntegerReduction& kernel) {
  require(is_countable(kernel.type), "'type' is not int32, int64 or bool");
  return FootprintBuilder()
      .read(elements_of(kernel), size_of(kernel.type))
      .write(Count{kernel.outer} * kernel.inner, size_of(kernel.result_type()))
      .done();
}

Footprint footprint(const ArgReduction& kernel) {
  require(is_float(kernel.type) || is_countable(kernel.type), "'type' is none that it compares");
  const Count elements = elements_of(kernel);
  const Count results = Count{kernel.outer} * kernel.inner;
  Footprint result =
      FootprintBuilder().read(elements, size_of(kernel.type)).write(results, 8).done();
  if (kernel.has_values) {
    const Count values = results * size_of(kernel.type);
    result.write.bytes += static_cast<std::size_t>(values.value());
  }
  return result;
}

Footprint footprint(const RunningSum& kernel) {
  require(is_float(kernel.type) || kernel.type == DType::kInt64,
          "'type' is not float32, bfloat16 or int64");
  const Count elements = elements_of(kernel);
  return FootprintBuilder()
      .read(elements, size_of(kernel.type))
      .write(elements, size_of(kernel.type))
      .done();
}

Footprint footprint(const SortRows& kernel) {
  require(is_float(kernel.type) || is_countable(kernel.type), "'type' is none that it compares");
  require(kernel.count <= SortRows::kMostElements, "'count' is too large");
  require(kernel.kept >= 1 && kernel.kept <= kernel.count, "'kept' is not in 1..'count'");
  const Count elements = at_least_one(kernel.rows, "rows") * at_least_one(kernel.count, "count");
  Footprint result =
      FootprintBuilder().read(elements, size_of(kernel.type)).write(elements, 8).done();
  if (kernel.has_values) {
    const Count values = Count{kernel.rows} * kernel.kept * size_of(kernel.type);
    result.write.bytes += static_cast<std::size_t>(values.value());
  }
  return result;
}

Footprint footprint(const GroupedProduct& kernel) {
  const Count groups = at_least_one(kernel.groups, "groups");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count columns = at_least_one(kernel.columns, "columns");
  return FootprintBuilder()
      .read(rows * inner)
      .read(groups * inner * Count{kernel.blocks()} * lanes_of(kernel.isa))
      .read(groups, 8)
      .write(rows * columns)
      .done();
}

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
  for (const Count& read : reads) builder.read(read, bytes);
  return builder.write(target, bytes).done();
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

Footprint footprint(const IndexedCopy& kernel) {
  require(is_element_size(dtype_size(kernel.type)), "'type' is none that it copies");
  require(kernel.combine == IndexedCopy::Combine::kReplace || is_float(kernel.type) ||
              is_countable(kernel.type),
          "'type' is none that it combines");
  require(!kernel.indices.empty() && kernel.indices.size() <= IndexedCopy::kMostIndices,
          "'indices' are not 1 to 8");
  require(kernel.extents.size() <= IndexedCopy::kMostDimensions, "'extents' are more than 16");
  const Count size = size_of(kernel.type);
  const Count other = span_of(kernel.extents, kernel.other_strides);
  Count indexed = span_of(kernel.extents, kernel.indexed_strides);
  std::vector<Count> spans;
  Count most = std::max(other.value(), kernel.count);
  for (const IndexedCopy::Index& index : kernel.indices) {
    indexed = indexed + last_of(at_least_one(index.extent, "extent"), index.step);
    spans.push_back(span_of(kernel.extents, index.strides));
    most = std::max(most.value(), spans.back().value());
  }
  require(indexed.value() <= at_least_one(kernel.count, "count").value(),
          "indices lead out of 'count' elements");
  FootprintBuilder builder;
  builder.read(kernel.count, size);
  if (kernel.scatters) {
    require(count_of(kernel.extents).value() <= most.value(), "elements are written too often");
    builder.read(other, size);
  }
  for (const Count& span : spans) builder.read(span, 8);
  if (kernel.scatters) return builder.write(kernel.count, size).done();
  return builder.write(target_span_of(kernel.extents, kernel.other_strides), size).done();
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Concatenation: in place, where operands can be computed into parts of the result; by a primitive,
// where blocks allow; else by a copy, which keeps channels last.
#include <algorithm>

#include "lowering/movement/movement.hpp"

namespace npu::onednn {

namespace {

/// True if blocks of all values are the same and divide the dimensions, so that primitives may join
/// them.
bool share_blocks(const std::vector<Value>& values) {
  const auto& first = values.front().layout.data;
  for (const Value& value : values) {
    const auto& data = value.layout.data;
    const auto& blocks = data.format_desc.blocking;
    const auto& expected = first.format_desc.blocking;
    if (data.format_kind != dnnl_blocked || blocks.inner_nblks != 1 || data.extra.flags != 0 ||
        has_padding(value.layout) || !is_dense(value.layout) || expected.inner_nblks != 1 ||
        blocks.inner_idxs[0] != expected.inner_idxs[0] ||
        blocks.inner_blks[0] != expected.inner_blks[0]) {
      return false;
    }
  }
  return true;
}

/// Blocked values joined without leaving their layout; nothing if oneDNN has no primitive for it.
std::optional<Value> add_blocked_concat(Lowering& lowering, const std::vector<Value>& values,
                                        std::size_t dimension) {
  std::vector<Layout> sources;
  std::vector<PrimitiveOperand> reads;
  for (const Value& value : values) {
    sources.push_back(value.layout);
    reads.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(reads.size()), value});
  }
  try {
    const dnnl::concat::primitive_desc primitive(static_cast<int>(dimension), sources,
                                                 lowering.engine(), Lowering::attributes());
    const Value target = lowering.temporary(values.front().type, primitive.dst_desc());
    lowering.add_primitive(primitive, reads, target);
    return target;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

/// True for a layout that differs from another at most in the strides of dimensions of 1.
bool same_memory(const Layout& a, const Layout& b) {
  if (a == b) return true;
  if (is_plain(a) && is_plain(b)) return dimensions(a) == dimensions(b);
  Layout aligned = a;
  for (int i = 0; i < a.data.ndims; ++i) {
    if (a.data.dims[i] == 1 && i < b.data.ndims) {
      aligned.data.format_desc.blocking.strides[i] = b.data.format_desc.blocking.strides[i];
    }
  }
  return aligned == b;
}

/// Concatenation along the outermost dimension in memory: operands become parts of the result's
/// memory, so that whoever computes them writes into it; those that cannot are copied there.
/// Operands that make up an earlier concatenation (dense blocks) are placed with it as one. Nothing
/// if no operand can be placed.
std::optional<Value> add_placed_concat(Lowering& lowering, const std::vector<Value>& values,
                                       std::size_t dimension, std::int64_t extent) {
  std::optional<Layout> whole_layout;
  for (const Value& value : values) {
    if (value.layout.data.format_desc.blocking.inner_nblks == 1 && !whole_layout) {
      whole_layout = stacked_layout(value.layout, dimension, extent);
    }
  }
  if (!whole_layout) whole_layout = stacked_layout(values.front().layout, dimension, extent);
  if (!whole_layout) return std::nullopt;
  struct Part {
    Layout layout;
    std::int64_t offset = 0;
  };
  std::vector<Part> parts;
  std::int64_t offset = 0;
  bool places = false;
  for (const Value& value : values) {
    const auto layout = stacked_layout(*whole_layout, dimension, value.layout.data.dims[dimension]);
    if (!layout || value.type != values.front().type) return std::nullopt;
    parts.push_back({*layout, offset});
    offset += span_elements(*layout) * static_cast<std::int64_t>(dtype_size(value.type));
    places = places || (same_memory(value.layout, *layout) && lowering.can_place(value));
  }
  if (!places) return std::nullopt;
  const Value whole = lowering.temporary(values.front().type, *whole_layout);
  for (std::size_t i = 0; i < values.size();) {
    if (const auto* earlier = lowering.find_concat(values, i)) {
      const Layout expected =
          *stacked_layout(*whole_layout, dimension, earlier->whole.layout.data.dims[dimension]);
      if (same_memory(earlier->whole.layout, expected)) {
        const std::size_t count = earlier->operands.size();
        lowering.place(earlier->whole.buffer, whole.buffer, parts[i].offset);
        i += count;
        continue;
      }
    }
    if (same_memory(values[i].layout, parts[i].layout) && lowering.can_place(values[i])) {
      lowering.place(values[i].buffer, whole.buffer, parts[i].offset);
      ++i;
      continue;
    }
    const Value part = lowering.temporary(whole.type, parts[i].layout);
    lowering.place(part.buffer, whole.buffer, parts[i].offset);
    lowering.copy_into(values[i], part, KernelKind::kMove);
    ++i;
  }
  lowering.note_concat(values, whole);
  return whole;
}

/// Joins the channels of values that have them last, by a copy that keeps them there; nothing if
/// one has not.
std::optional<Value> add_channels_last_concat(Lowering& lowering, const std::vector<Value>& values,
                                              std::size_t dimension, const Shape& result) {
  if (dimension != 1 || result.size() < 3 || result.size() > 5) return std::nullopt;
  const DType type = values.front().type;
  PlainConcat call;
  for (const Value& value : values) {
    const Shape shape = dimensions(value.layout);
    if (value.type != type || value.layout != channels_last_layout(shape, type)) {
      return std::nullopt;
    }
    call.run_bytes.push_back(shape[1] * static_cast<std::int64_t>(dtype_size(type)));
  }
  call.outer = result[0];
  for (std::size_t i = 2; i < result.size(); ++i) call.outer *= result[i];
  const Value target = lowering.temporary(type, channels_last_layout(result, type));
  lowering.add_kernel(std::span<const Value>(values), target, std::move(call), KernelKind::kMove);
  return target;
}

/// Joins values along a dimension in which `result` has the whole extent.
void define_joined(Lowering& lowering, std::vector<Value> values, std::size_t dimension,
                   const Shape& result, DType dtype) {
  if (const auto value = add_placed_concat(lowering, values, dimension, result[dimension])) {
    return lowering.define_moved(lowering.result(), result, dtype, *value);
  }
  if (share_blocks(values)) {
    if (const auto value = add_blocked_concat(lowering, values, dimension)) {
      return lowering.define_moved(lowering.result(), result, dtype, *value);
    }
  }
  if (const auto value = add_channels_last_concat(lowering, values, dimension, result)) {
    return lowering.define_moved(lowering.result(), result, dtype, *value);
  }
  const DType type = values.front().type;
  std::int64_t inner = static_cast<std::int64_t>(dtype_size(type));
  for (std::size_t i = dimension + 1; i < result.size(); ++i) inner *= result[i];
  PlainConcat call;
  for (std::size_t i = 0; i < dimension; ++i) call.outer *= result[i];
  for (Value& value : values) {
    value = lowering.plain(value);
    call.run_bytes.push_back(value.layout.data.dims[dimension] * inner);
  }
  const Value target = lowering.temporary(type, plain_layout(result, type));
  lowering.add_kernel(std::span<const Value>(values), target, std::move(call), KernelKind::kMove);
  lowering.define_moved(lowering.result(), result, dtype, target);
}

}  // namespace

void lower_stack(Lowering& lowering, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  if (tensors.empty()) lowering.invalid("argument 'tensors': is empty");
  const DType dtype = lowering.dtype(tensors.front());
  const Shape shape = lowering.shape(tensors.front());
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size() + 1);
  Shape part = shape;
  part.insert(part.begin() + static_cast<std::ptrdiff_t>(dimension), 1);
  std::vector<Value> values;
  for (const TensorId tensor : tensors) {
    if (lowering.dtype(tensor) != dtype) {
      lowering.refuse("tensors", "operands of different dtypes are not supported");
    }
    if (lowering.shape(tensor) != shape) lowering.invalid("argument 'tensors': shapes differ");
    values.push_back(lowering.reshaped(lowering.stored(tensor), part));
  }
  Shape result = part;
  result[dimension] = static_cast<std::int64_t>(values.size());
  if (values.size() == 1) {
    return lowering.define_moved(lowering.result(), result, dtype, values.front());
  }
  define_joined(lowering, std::move(values), dimension, result, dtype);
}

void lower_cat(Lowering& lowering, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  if (tensors.empty()) lowering.invalid("argument 'tensors': is empty");
  const DType dtype = lowering.dtype(tensors.front());
  Shape result = lowering.shape(tensors.front());
  if (result.empty()) lowering.invalid("scalars cannot be concatenated");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), result.size());
  result[dimension] = 0;
  std::vector<Value> values;
  for (const TensorId tensor : tensors) {
    Shape shape = lowering.shape(tensor);
    if (lowering.dtype(tensor) != dtype) {
      lowering.refuse("tensors", "operands of different dtypes are not supported");
    }
    if (shape.size() != result.size()) lowering.invalid("argument 'tensors': ranks differ");
    const std::int64_t extent = shape[dimension];
    shape[dimension] = result[dimension];
    if (shape != result) {
      lowering.invalid("argument 'tensors': shape " + shape_text(lowering.shape(tensor)) +
                       " differs outside the dimension of concatenation");
    }
    result[dimension] += extent;
    values.push_back(lowering.stored(tensor));
  }
  if (values.size() == 1) return define_alias(lowering);
  define_joined(lowering, std::move(values), dimension, result, dtype);
}

}  // namespace npu::onednn

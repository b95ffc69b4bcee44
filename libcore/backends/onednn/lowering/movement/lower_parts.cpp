// SPDX-License-Identifier: Apache-2.0
// Ops that put a tensor together from parts of others: rolled, flipped, repeated, overwritten in
// part, shuffled, cut to triangles. Each is one kernel that moves every element once, for every
// dtype, in row-major order.
#include <algorithm>

#include "lowering/engine/promotion.hpp"
#include "lowering/movement/movement.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// A part that goes from a strided value to a row-major target of `shape` at `begins`.
CopyParts::Part part_of(const Value& from, std::int64_t source, const Shape& extents,
                        std::vector<std::int64_t> source_strides,
                        std::vector<std::int64_t> target_strides) {
  CopyParts::Part part;
  part.source = source;
  part.copy = {dtype_size(from.type), extents, std::move(source_strides),
               std::move(target_strides)};
  part.copy.simplify();
  return part;
}

/// Defines the result from a kernel that moves elements of `reads` to a row-major tensor.
void define_parts(Lowering& lowering, std::initializer_list<Value> reads, const Shape& shape,
                  DType dtype, CopyParts call) {
  lowering.check_result(lowering.result(), shape, dtype);
  const DType type = reads.begin()->type;
  const Value target = lowering.temporary(type, plain_layout(shape, type));
  call.sources = static_cast<std::int64_t>(reads.size());
  lowering.add_kernel(reads, target, std::move(call), KernelKind::kMove);
  lowering.define_moved(lowering.result(), shape, dtype, target);
}

/// Elements of a row-major tensor or view, moved as strides say.
void define_moved_by(Lowering& lowering, const Value& source, const Shape& extents,
                     const std::vector<std::int64_t>& source_strides, const Shape& shape) {
  const DType dtype = lowering.dtype(first_operand(lowering));
  CopyParts call;
  call.parts.push_back(part_of(source, 0, extents, source_strides, row_major_strides(extents)));
  define_parts(lowering, {source}, shape, dtype, std::move(call));
}

}  // namespace

void lower_roll(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const Shape& stated = lowering.shape(self);
  std::vector<std::int64_t> shifts = node.integers("shifts");
  std::vector<std::int64_t> dims = node.integers("dims");
  Shape shape = stated;
  if (dims.empty()) {  // as if it had one dimension
    if (shifts.size() != 1) lowering.invalid("argument 'shifts': expected one without 'dims'");
    shape = {element_count(stated)};
    dims = {0};
  }
  if (shape.empty()) shape = {1};
  if (dims.size() != shifts.size()) {
    lowering.invalid("arguments 'shifts' and 'dims': expected as many numbers");
  }
  std::vector<std::int64_t> shift(shape.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = normalize_dimension(lowering, "dims", dims[i], shape.size());
    // Both are below the extent, so their sum does not overflow.
    shift[d] = (shift[d] + (shifts[i] % shape[d] + shape[d])) % shape[d];
  }
  const Value source = lowering.strided(lowering.reshaped(lowering.stored(self), shape));
  const std::vector<std::int64_t> from = strides_of(source.layout);
  const std::vector<std::int64_t> to = row_major_strides(shape);
  // Every rolled dimension is two runs: what comes around the end, and the rest.
  CopyParts call;
  const std::size_t corners = std::size_t{1} << shape.size();
  for (std::size_t corner = 0; corner < corners; ++corner) {
    Shape extents = shape;
    std::int64_t source_at = 0;
    std::int64_t target_at = 0;
    bool exists = true;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool comes_around = (corner >> d & 1U) != 0;
      extents[d] = comes_around ? shift[d] : shape[d] - shift[d];
      exists = exists && extents[d] > 0;
      source_at += comes_around ? (shape[d] - shift[d]) * from[d] : 0;
      target_at += comes_around ? 0 : shift[d] * to[d];
    }
    if (!exists) continue;
    CopyParts::Part part = part_of(source, 0, extents, from, to);
    part.from = source_at;
    part.to = target_at;
    call.parts.push_back(std::move(part));
  }
  define_parts(lowering, {source}, stated, lowering.dtype(self), std::move(call));
}

void lower_flip(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const Shape& shape = lowering.shape(self);
  const Value source = lowering.strided(lowering.stored(self));
  const Shape extents = dimensions(source.layout);
  std::vector<std::int64_t> strides = strides_of(source.layout);
  std::vector<bool> flipped(extents.size(), false);
  std::int64_t first = 0;
  for (const std::int64_t dimension : node.integers("dims")) {
    const std::size_t d = normalize_dimension(lowering, "dims", dimension, shape.size());
    if (flipped[d]) lowering.invalid("argument 'dims': a dimension stands there twice");
    flipped[d] = true;
    first += (extents[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  CopyParts call;
  call.parts.push_back(part_of(source, 0, extents, strides, row_major_strides(extents)));
  call.parts.front().from = first;
  define_parts(lowering, {source}, shape, lowering.dtype(self), std::move(call));
}

/// repeat and tile: the tensor over and over along each dimension.
void lower_repeat(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const bool is_tile = node.find("repeats") == nullptr;
  std::vector<std::int64_t> repeats = node.integers(is_tile ? "dims" : "repeats");
  Shape shape = lowering.shape(self);
  if (is_tile && repeats.size() < shape.size()) {
    repeats.insert(repeats.begin(), shape.size() - repeats.size(), 1);
  }
  if (repeats.size() < shape.size()) {
    lowering.invalid("argument 'repeats': has fewer numbers than the operand dimensions");
  }
  shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
  if (shape.empty())
    return define_moved_by(lowering, lowering.plain(lowering.stored(self)), {1}, {1}, {});
  Shape result = lowering.shape(lowering.result());
  if (result.size() != shape.size()) lowering.invalid("its result has another rank");
  const Value source = lowering.strided(lowering.reshaped(lowering.stored(self), shape));
  const std::vector<std::int64_t> from = strides_of(source.layout);
  Shape extents;
  std::vector<std::int64_t> strides;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    // Divided, so that a repeat that is too large is no overflow.
    if (repeats[d] < 1 || result[d] % shape[d] != 0 || result[d] / shape[d] != repeats[d]) {
      lowering.invalid("argument 'repeats': " + shape_text(repeats) + " of " + shape_text(shape) +
                       " do not give " + shape_text(result));
    }
    extents.insert(extents.end(), {repeats[d], shape[d]});
    strides.insert(strides.end(), {0, from[d]});
  }
  define_moved_by(lowering, source, extents, strides, result);
}

/// Every element of a dimension so many times.
void lower_repeat_interleave(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  const std::int64_t repeats = node.integer("repeats");
  const bool is_flat = node.is_none("dim");
  if (is_flat || shape.empty()) shape = {element_count(shape)};
  const std::size_t d =
      is_flat ? 0 : normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  Shape result = lowering.shape(lowering.result());
  if (result.size() != shape.size() || repeats < 1 || result[d] % shape[d] != 0 ||
      result[d] / shape[d] != repeats) {
    lowering.refuse("repeats", "the result has another shape");
  }
  Repeated view = view_of(lowering.reshaped(lowering.stored(self), shape));
  if (repeats > 1) view.dimensions[d].push_back({repeats, 0});
  lowering.define_repeated(lowering.result(), lowering.dtype(self), std::move(view));
}

namespace {

/// A copy of the first operand with `src` over `count` elements of a dimension from `start` on,
/// `step` apart. `src` has the shape of these elements, but for dimensions of 1.
void define_overwritten(Lowering& lowering, const BoundNode& node, std::size_t dimension,
                        std::int64_t start, std::int64_t step, std::int64_t count) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const TensorId src = tensor_argument(lowering, node, "src");
  const DType dtype = lowering.dtype(self);
  const Shape& shape = lowering.shape(self);
  Shape part = shape;
  part[dimension] = count;
  const bool is_select = node.find("index") != nullptr;
  Shape expected = part;
  if (is_select) expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(dimension));
  if (lowering.shape(src) != expected) {
    lowering.refuse("src",
                    "shape " + shape_text(lowering.shape(src)) + " is not " + shape_text(expected));
  }
  const Value whole = lowering.strided(lowering.stored(self));
  const Value over =
      lowering.strided(lowering.reshaped(converted(lowering, {src, {}}, dtype, whole.type), part));
  CopyParts call;
  const std::vector<std::int64_t> to = row_major_strides(shape);
  if (count < shape[dimension]) {
    call.parts.push_back(part_of(whole, 0, shape, strides_of(whole.layout), to));
  }
  std::vector<std::int64_t> to_part = to;
  to_part[dimension] *= step;
  call.parts.push_back(part_of(over, 1, part, strides_of(over.layout), to_part));
  call.parts.back().to = start * to[dimension];
  define_parts(lowering, {whole, over}, shape, dtype, std::move(call));
}

}  // namespace

void lower_slice_scatter(Lowering& lowering, const BoundNode& node) {
  const Shape& shape = lowering.shape(tensor_argument(lowering, node, "self"));
  if (shape.empty()) lowering.invalid("a scalar has no dimension to slice");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const SliceRange range = slice_range(lowering, node, shape[dimension]);
  define_overwritten(lowering, node, dimension, range.start, range.step, range.count);
}

void lower_select_scatter(Lowering& lowering, const BoundNode& node) {
  const Shape& shape = lowering.shape(tensor_argument(lowering, node, "self"));
  if (shape.empty()) lowering.invalid("a scalar has no dimension to select from");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  const std::int64_t index = node.integer("index");
  if (index < -extent || index >= extent) {
    lowering.invalid("argument 'index': " + number_text(index) + " is not in a dimension of " +
                     number_text(extent));
  }
  define_overwritten(lowering, node, dimension, index < 0 ? index + extent : index, 1, 1);
}

/// copy and fill with a tensor: the second operand in the shape and dtype of the first.
void lower_copy(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const TensorId src =
      tensor_argument(lowering, node, node.find("src") != nullptr ? "src" : "value");
  const DType dtype = lowering.dtype(self);
  const Shape& shape = lowering.shape(self);
  if (broadcast_shape(lowering, shape, lowering.shape(src)) != shape) {
    lowering.invalid("shape " + shape_text(lowering.shape(src)) + " does not expand to " +
                     shape_text(shape));
  }
  Shape own = lowering.shape(src);
  own.insert(own.begin(), std::max<std::size_t>(shape.size(), 1) - own.size(), 1);
  const DType type = lowering.storage_type(dtype);
  const Value source =
      lowering.strided(lowering.reshaped(converted(lowering, {src, {}}, dtype, type), own));
  const Iteration space = iterate(plain_layout(shape, type));
  CopyParts call;
  call.parts.push_back(
      part_of(source, 0, space.extents, strides_in(space, source.layout), space.strides));
  define_parts(lowering, {source}, shape, dtype, std::move(call));
}

/// Pixels to channels and back, and channels among groups: a permutation between two reshapes.
void lower_shuffle(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const std::string_view name = functional_name(node.node().op_type);
  const Shape& shape = lowering.shape(self);
  const std::size_t rank = shape.size();
  if (rank < 3) lowering.invalid("a tensor of rank 3 or more is needed");
  Shape split(shape.begin(), shape.end());
  Shape result = shape;
  std::vector<std::size_t> order;  // of the split dimensions in the result
  const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  const auto divided = [&](std::int64_t extent, std::int64_t by) {
    if (by < 1 || by > INT16_MAX || extent % by != 0) {
      lowering.invalid("a dimension of " + number_text(extent) + " is not divided by " +
                       number_text(by));
    }
    return extent / by;
  };
  if (name == "pixel_shuffle" || name == "pixel_unshuffle") {
    const bool up = name == "pixel_shuffle";
    const std::int64_t factor = node.integer(up ? "upscale_factor" : "downscale_factor");
    const std::size_t c = rank - 3;
    split.resize(c);
    for (std::size_t i = 0; i < c; ++i) order.push_back(i);
    if (up) {  // [C r r, H, W] to [C, H r, W r]
      const std::int64_t channels = divided(divided(shape[c], factor), factor);
      split.insert(split.end(), {channels, factor, factor, shape[c + 1], shape[c + 2]});
      order.insert(order.end(), {c, c + 3, c + 1, c + 4, c + 2});
      result[c] = channels;
      result[c + 1] *= factor;
      result[c + 2] *= factor;
    } else {
      const std::int64_t rows = divided(shape[c + 1], factor);
      const std::int64_t columns = divided(shape[c + 2], factor);
      split.insert(split.end(), {shape[c], rows, factor, columns, factor});
      order.insert(order.end(), {c, c + 2, c + 4, c + 1, c + 3});
      result[c] *= factor * factor;
      result[c + 1] = rows;
      result[c + 2] = columns;
    }
  } else {  // [groups, C / groups] to [C / groups, groups]
    const std::int64_t groups = node.integer("groups");
    const std::int64_t each = divided(shape[1], groups);
    split.erase(split.begin() + at(1));
    split.insert(split.begin() + at(1), {groups, each});
    for (std::size_t i = 0; i <= rank; ++i) order.push_back(i);
    std::swap(order[1], order[2]);
  }
  const Value source = lowering.strided(lowering.reshaped(lowering.stored(self), split));
  const std::vector<std::int64_t> from = strides_of(source.layout);
  Shape extents;
  std::vector<std::int64_t> strides;
  for (const std::size_t i : order) {
    extents.push_back(split[i]);
    strides.push_back(from[i]);
  }
  define_moved_by(lowering, source, extents, strides, result);
}

void lower_triangle(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const Shape& shape = lowering.shape(self);
  if (shape.size() < 2) lowering.invalid("a tensor of rank 2 or more is needed");
  const Value source = lowering.plain(lowering.stored(self));
  Triangle call;
  call.element_size = static_cast<std::int64_t>(dtype_size(source.type));
  if (call.element_size > 8) lowering.refuse("self", "complex numbers are not supported");
  call.rows = shape[shape.size() - 2];
  call.columns = shape.back();
  call.planes = element_count(shape) / (call.rows * call.columns);
  call.diagonal = std::clamp(node.integer("diagonal"), -call.rows, call.columns);
  call.upper = functional_name(node.node().op_type) == "triu";
  const Value target = lowering.temporary(source.type, plain_layout(shape, source.type));
  lowering.add_kernel({source}, target, call, KernelKind::kMove);
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self), target);
}

void lower_tail(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const TensorId valid = tensor_argument(lowering, node, "valid");
  const Shape& shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar has no rows");
  if (lowering.dtype(valid) != DType::kInt64 || !lowering.shape(valid).empty()) {
    lowering.invalid("argument 'valid': expected an int64 without dimensions");
  }
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const Value source = lowering.plain(lowering.stored(self));
  const Value count = lowering.plain(lowering.stored(valid));
  const std::string fill = node.string("fill");
  TailRows call;
  call.type = source.type;
  call.fill = fill == "edge"     ? TailRows::Fill::kEdge
              : fill == "lowest" ? TailRows::Fill::kLowest
                                 : TailRows::Fill::kZero;
  call.rows = shape[dimension];
  for (std::size_t d = 0; d < dimension; ++d) call.planes *= shape[d];
  for (std::size_t d = dimension + 1; d < shape.size(); ++d) call.width *= shape[d];
  if (dtype_size(source.type) > 8) lowering.refuse("self", "complex numbers are not supported");
  if (call.fill == TailRows::Fill::kLowest && !is_floating_point(source.type)) {
    lowering.refuse("fill", "integers have no minus infinity");
  }
  call.node = node_text(lowering.node());
  const Value target = lowering.temporary(source.type, plain_layout(shape, source.type));
  lowering.add_kernel({source, count}, target, call, KernelKind::kMove);
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self), target);
}

}  // namespace npu::onednn

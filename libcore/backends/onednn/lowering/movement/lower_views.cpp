// SPDX-License-Identifier: Apache-2.0
// Ops that only name elements anew, or move them, for every dtype: aliases, reshapes, transposes,
// slices, expansion, padding.
//
// Values are functional, so an alias is the same value and costs nothing. Permutes and slices are
// strides and an offset over the same memory; whoever needs row-major order makes the copy.
// Reshapes need row-major order, but for a dimension in blocks that stays whole. What repeats
// elements, as windows over each other do, stays a view (repeated.hpp) through such ops, until
// something reads it that needs a copy.
#include <algorithm>

#include "lowering/movement/movement.hpp"
#include "npu/support/error.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

void define_alias(Lowering& lowering) {
  const TensorId self = first_operand(lowering);
  if (const Repeated* view = lowering.repeated(self)) {
    return lowering.define_repeated(lowering.result(), lowering.dtype(self), *view);
  }
  lowering.define_moved(lowering.result(), lowering.shape(self), lowering.dtype(self),
                        lowering.stored(self));
}

std::optional<Layout> stacked_layout(const Layout& like, std::size_t dimension,
                                     std::int64_t extent) {
  const auto& data = like.data;
  const auto& blocks = data.format_desc.blocking;
  if (data.format_kind != dnnl_blocked || data.extra.flags != 0 || has_padding(like) ||
      !is_dense(like) || blocks.inner_nblks > 1) {
    return std::nullopt;
  }
  std::int64_t block = 1;
  if (blocks.inner_nblks == 1) {
    if (static_cast<std::size_t>(blocks.inner_idxs[0]) != dimension) return std::nullopt;
    block = blocks.inner_blks[0];
  }
  if (extent % block != 0) return std::nullopt;
  std::int64_t row = 1;  // elements for one block of the dimension
  for (int i = 0; i < data.ndims; ++i) {
    if (static_cast<std::size_t>(i) < dimension && data.dims[i] != 1) return std::nullopt;
    if (static_cast<std::size_t>(i) != dimension) row *= data.dims[i];
  }
  row *= block;
  if (data.dims[dimension] != block && blocks.strides[dimension] != row) return std::nullopt;
  Layout result = like;
  result.data.dims[dimension] = extent;
  result.data.padded_dims[dimension] = extent;
  result.data.format_desc.blocking.strides[dimension] = row;
  for (std::size_t i = 0; i < dimension; ++i) {
    result.data.format_desc.blocking.strides[i] = extent / block * row;
  }
  return result;
}

namespace {

/// Defines the result as the same elements in row-major order with another shape.
void define_reshaped(Lowering& lowering, const Shape& shape) {
  const TensorId self = first_operand(lowering);
  if (element_count(shape) != element_count(lowering.shape(self))) {
    lowering.invalid("shape " + shape_text(lowering.shape(self)) + " has other elements than " +
                     shape_text(shape));
  }
  if (const Repeated* view = lowering.repeated(self)) {
    if (auto result = reshaped(*view, shape)) {
      return lowering.define_repeated(lowering.result(), lowering.dtype(self), *std::move(result));
    }
  }
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self),
                        lowering.viewed(lowering.stored(self), shape));
}

void define_permuted(Lowering& lowering, const std::vector<std::size_t>& order) {
  const TensorId self = first_operand(lowering);
  if (const Repeated* view = lowering.repeated(self)) {
    return lowering.define_repeated(lowering.result(), lowering.dtype(self),
                                    permuted(*view, order));
  }
  const Shape& shape = lowering.shape(self);
  Shape result;
  std::vector<int> permutation(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.push_back(shape[order[i]]);
    permutation[order[i]] = static_cast<int>(i);
  }
  Value value = lowering.stored(self);
  if (!order.empty()) value.layout = value.layout.permute_axes(permutation);
  lowering.define_moved(lowering.result(), result, lowering.dtype(self), value);
}

/// Whole blocks of the outermost dimension in memory, as a view with the same blocks; nothing if
/// that is not what the slice is.
std::optional<Value> sliced_blocks(const Value& value, std::size_t dimension, std::int64_t start,
                                   std::int64_t count) {
  const auto& blocks = value.layout.data.format_desc.blocking;
  if (value.layout.data.format_kind != dnnl_blocked || blocks.inner_nblks != 1 ||
      blocks.inner_idxs[0] != static_cast<std::int64_t>(dimension) || !is_dense(value.layout)) {
    return std::nullopt;
  }
  const std::int64_t block = blocks.inner_blks[0];
  if (start % block != 0 || count % block != 0) return std::nullopt;
  const auto layout = stacked_layout(value.layout, dimension, count);
  if (!layout) return std::nullopt;
  Value result = value;
  result.layout = *layout;
  result.offset += start / block * blocks.strides[dimension];
  return result;
}

}  // namespace

Value sliced(Lowering& lowering, const Value& value, std::size_t dimension, std::int64_t start,
             std::int64_t count) {
  if (auto blocks = sliced_blocks(value, dimension, start, count)) return *blocks;
  Value result = lowering.strided(value);
  Shape shape = dimensions(result.layout);
  const std::vector<std::int64_t> strides = strides_of(result.layout);
  result.offset += start * strides[dimension];
  shape[dimension] = count;
  result.layout = strided_layout(shape, strides, result.type);
  return result;
}

namespace {

/// Every `step`-th element of one dimension, copied: oneDNN describes no tensor whose elements lie
/// apart along a dimension unless its size is a multiple of the step.
Value every_nth(Lowering& lowering, const Value& value, std::size_t dimension, std::int64_t step) {
  Shape shape = dimensions(value.layout);
  std::vector<std::int64_t> strides = strides_of(value.layout);
  shape[dimension] = (shape[dimension] - 1) / step + 1;
  strides[dimension] *= step;
  const Value result = lowering.temporary(value.type, plain_layout(shape, value.type));
  StridedCopy copy{dtype_size(value.type), shape, std::move(strides), strides_of(result.layout)};
  copy.simplify();
  lowering.add_kernel({value}, result, std::move(copy), KernelKind::kReorder);
  return result;
}

/// A list of sizes in which one -1 stands for what is left.
Shape resolve_shape(const Lowering& lowering, std::string_view argument, Shape shape,
                    std::int64_t elements) {
  const auto open = std::find(shape.begin(), shape.end(), -1);
  Shape known = shape;
  if (open != shape.end()) known[static_cast<std::size_t>(open - shape.begin())] = 1;
  const auto count = checked_element_count(known);
  if (!count || *count < 1 || elements % *count != 0) {
    lowering.invalid("argument '" + std::string(argument) + "': " + shape_text(shape) +
                     " is no shape of " + number_text(elements) + " elements");
  }
  if (open != shape.end()) *open = elements / *count;
  return shape;
}

}  // namespace

void lower_alias(Lowering& lowering, const BoundNode& /*node*/) { define_alias(lowering); }

// The reorder that npu-align asks for. Blocks have as many channels as the machine's vectors
// have elements, whatever their name says; without AVX2 no kernel wants them.
void lower_channel_norm(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const Shape& shape = lowering.shape(self);
  const DType dtype = lowering.dtype(self);
  const bool is_float = dtype == DType::kFloat32 || dtype == DType::kBFloat16;
  Value value = lowering.stored(self);
  if (node.boolean("direction")) {
    value = lowering.plain(value);
  } else if (is_float && shape.size() >= 3 && shape.size() <= 5 && lowering.machine().has_avx2() &&
             node.string("layout") == "blocked16") {
    value = lowering.in_layout(value, lowering.blocked(shape, value.type));
  }
  lowering.define_moved(lowering.result(), shape, dtype, value);
}

void lower_dropout(Lowering& lowering, const BoundNode& node) {
  if (node.boolean("train") && node.number("p") != 0.0) {
    lowering.refuse("train", "only inference is supported");
  }
  define_alias(lowering);
}

void lower_reshape(Lowering& lowering, const BoundNode& node) {
  const std::string_view argument = node.find("shape") != nullptr ? "shape" : "size";
  const std::int64_t elements = element_count(lowering.shape(first_operand(lowering)));
  define_reshaped(lowering, resolve_shape(lowering, argument, node.integers(argument), elements));
}

void lower_reshape_as(Lowering& lowering, const BoundNode& node) {
  define_reshaped(lowering, lowering.shape(tensor_argument(lowering, node, "other")));
}

void lower_unflatten(Lowering& lowering, const BoundNode& node) {
  Shape shape = lowering.shape(first_operand(lowering));
  if (shape.empty()) lowering.invalid("a scalar has no dimension to unflatten");
  const std::size_t i = normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const Shape sizes = resolve_shape(lowering, "sizes", node.integers("sizes"), shape[i]);
  const auto at = shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i));
  shape.insert(at, sizes.begin(), sizes.end());
  define_reshaped(lowering, shape);
}

void lower_flatten(Lowering& lowering, const BoundNode& node) {
  const Shape& shape = lowering.shape(first_operand(lowering));
  const std::size_t first =
      normalize_dimension(lowering, "start_dim", node.integer("start_dim"), shape.size());
  const std::size_t last =
      normalize_dimension(lowering, "end_dim", node.integer("end_dim"), shape.size());
  if (first > last) lowering.invalid("argument 'start_dim': is behind end_dim");
  if (shape.empty()) return define_reshaped(lowering, {1});
  Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t joined = 1;
  for (std::size_t i = first; i <= last; ++i) joined *= shape[i];
  result.push_back(joined);
  result.insert(result.end(), shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, shape.end());
  define_reshaped(lowering, result);
}

void lower_squeeze(Lowering& lowering, const BoundNode& node) {
  const Shape& shape = lowering.shape(first_operand(lowering));
  std::vector<bool> squeezes(shape.size(), node.find("dim") == nullptr);
  if (node.find("dim") != nullptr) {
    for (const std::int64_t dimension : node.integers("dim")) {
      const std::size_t i = normalize_dimension(lowering, "dim", dimension, shape.size());
      if (i < squeezes.size()) squeezes[i] = true;
    }
  }
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!squeezes[i] || shape[i] != 1) result.push_back(shape[i]);
  }
  define_reshaped(lowering, result);
}

void lower_unsqueeze(Lowering& lowering, const BoundNode& node) {
  Shape result = lowering.shape(first_operand(lowering));
  const std::size_t i =
      normalize_dimension(lowering, "dim", node.integer("dim"), result.size() + 1);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(i), 1);
  define_reshaped(lowering, result);
}

void lower_permute(Lowering& lowering, const BoundNode& node) {
  const std::size_t rank = lowering.shape(first_operand(lowering)).size();
  std::vector<std::size_t> order;
  for (const std::int64_t dimension : node.integers("dims")) {
    order.push_back(normalize_dimension(lowering, "dims", dimension, rank));
  }
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) lowering.invalid("argument 'dims': a dimension stands there twice");
  }
  if (order.size() != rank) lowering.invalid("argument 'dims': expected one entry per dimension");
  define_permuted(lowering, order);
}

void lower_transpose(Lowering& lowering, const BoundNode& node) {
  const std::size_t rank = lowering.shape(first_operand(lowering)).size();
  std::vector<std::size_t> order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = i;
  if (node.find("axis0") != nullptr) {  // swapaxes
    const std::size_t a = normalize_dimension(lowering, "axis0", node.integer("axis0"), rank);
    const std::size_t b = normalize_dimension(lowering, "axis1", node.integer("axis1"), rank);
    if (rank > 0) std::swap(order[a], order[b]);
  } else if (node.node().op_type == "aten.numpy_T.default") {
    std::reverse(order.begin(), order.end());
  } else if (node.find("dim0") == nullptr) {  // t
    if (rank > 2) lowering.invalid("t takes a tensor of rank 2 or less");
    std::reverse(order.begin(), order.end());
  } else {
    const std::size_t a = normalize_dimension(lowering, "dim0", node.integer("dim0"), rank);
    const std::size_t b = normalize_dimension(lowering, "dim1", node.integer("dim1"), rank);
    if (rank > 0) std::swap(order[a], order[b]);
  }
  define_permuted(lowering, order);
}

void lower_move_dimension(Lowering& lowering, const BoundNode& node) {
  const std::size_t rank = lowering.shape(first_operand(lowering)).size();
  std::vector<std::size_t> sources;
  std::vector<std::size_t> destinations;
  for (const std::int64_t value : node.integers("source")) {
    sources.push_back(normalize_dimension(lowering, "source", value, rank));
  }
  for (const std::int64_t value : node.integers("destination")) {
    destinations.push_back(normalize_dimension(lowering, "destination", value, rank));
  }
  const auto repeats = [](std::vector<std::size_t> values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) != values.end();
  };
  if (sources.size() != destinations.size() || repeats(sources) || repeats(destinations)) {
    lowering.invalid("arguments 'source' and 'destination': expected as many different dimensions");
  }
  if (rank == 0) return define_alias(lowering);
  std::vector<std::size_t> order(rank, rank);
  for (std::size_t i = 0; i < sources.size(); ++i) order[destinations[i]] = sources[i];
  std::size_t next = 0;
  for (std::size_t& from : order) {
    if (from != rank) continue;
    while (std::find(sources.begin(), sources.end(), next) != sources.end()) ++next;
    from = next++;
  }
  define_permuted(lowering, order);
}

void lower_narrow(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar has no dimension to narrow");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  std::int64_t start = node.integer("start");
  const std::int64_t length = node.integer("length");
  if (start < 0) start += extent;
  if (start < 0 || length < 0 || start > extent - length) {
    lowering.invalid("argument 'start': the part does not lie in a dimension of " +
                     number_text(extent));
  }
  shape[dimension] = length;
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self),
                        sliced(lowering, lowering.stored(self), dimension, start, length));
}

SliceRange slice_range(const Lowering& lowering, const BoundNode& node, std::int64_t extent) {
  const auto clamped = [&](std::string_view argument, std::int64_t otherwise) {
    if (node.is_none(argument)) return otherwise;
    std::int64_t value = node.integer(argument);
    if (value < 0) value = value < -extent ? 0 : value + extent;
    return std::min(value, extent);
  };
  const std::int64_t start = clamped("start", 0);
  const std::int64_t end = clamped("end", extent);
  const std::int64_t step = node.integer("step");
  if (step < 1) lowering.invalid("argument 'step': " + number_text(step) + " is not positive");
  if (end <= start) lowering.refuse("", "an empty slice is not supported");
  return {start, step, (end - start - 1) / step + 1};
}

void lower_slice(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar has no dimension to slice");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  const auto [start, step, count] = slice_range(lowering, node, extent);
  const Value run =
      sliced(lowering, lowering.stored(self), dimension, start, (count - 1) * step + 1);
  shape[dimension] = count;
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self),
                        step == 1 ? run : every_nth(lowering, run, dimension, step));
}

void lower_select(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar has no dimension to select from");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  std::int64_t index = node.integer("index");
  if (index < -extent || index >= extent) {
    lowering.invalid("argument 'index': " + number_text(index) + " is not in a dimension of " +
                     number_text(extent));
  }
  if (index < 0) index += extent;
  Value value = sliced(lowering, lowering.stored(self), dimension, index, 1);
  std::vector<std::int64_t> strides = strides_of(value.layout);
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dimension));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dimension));
  value.layout =
      shape.empty() ? plain_layout({}, value.type) : strided_layout(shape, strides, value.type);
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self), value);
}

void lower_expand(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  const Shape& shape = lowering.shape(self);
  Shape result = node.find("size") != nullptr
                     ? node.integers("size")
                     : lowering.shape(tensor_argument(lowering, node, "other"));
  if (result.size() < shape.size())
    lowering.invalid("argument 'size': has fewer dimensions than the operand");
  Shape padded = shape;
  padded.insert(padded.begin(), result.size() - shape.size(), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1 && i >= result.size() - shape.size()) result[i] = padded[i];
    if (result[i] < 1 || (padded[i] != 1 && padded[i] != result[i])) {
      lowering.invalid("argument 'size': " + shape_text(shape) + " does not expand to " +
                       shape_text(result));
    }
  }
  lowering.check_result(lowering.result(), result, lowering.dtype(self));
  if (result == shape) return define_alias(lowering);
  if (padded == result) return define_reshaped(lowering, result);
  const Repeated* view = lowering.repeated(self);
  const auto whole = view != nullptr ? reshaped(*view, padded) : std::nullopt;
  const Repeated source =
      whole ? *whole : view_of(lowering.strided(lowering.reshaped(lowering.stored(self), padded)));
  lowering.define_repeated(lowering.result(), lowering.dtype(self), expanded(source, result));
}

void lower_unfold(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  const std::size_t dimension =
      normalize_dimension(lowering, "dimension", node.integer("dimension"), shape.size());
  if (shape.empty()) shape = {1};
  const std::int64_t size = node.integer("size");
  const std::int64_t step = node.integer("step");
  if (size < 1 || size > shape[dimension] || step < 1) {
    lowering.invalid("windows of " + number_text(size) + " with step " + number_text(step) +
                     " do not lie in a dimension of " + number_text(shape[dimension]));
  }
  const Repeated* known = lowering.repeated(self);
  Repeated view = known != nullptr && known->dimensions.size() == shape.size() &&
                          known->dimensions[dimension].size() <= 1
                      ? *known
                      : view_of(lowering.strided(lowering.reshaped(lowering.stored(self), shape)));
  const std::int64_t count = (shape[dimension] - size) / step + 1;
  Repeated::Runs& runs = view.dimensions[dimension];
  const std::int64_t stride = runs.empty() ? 1 : runs.front().stride;
  runs.clear();
  if (count > 1) runs.push_back({count, step * stride});
  view.dimensions.emplace_back();
  if (size > 1) view.dimensions.back().push_back({size, stride});
  lowering.check_result(lowering.result(), view.shape(), lowering.dtype(self));
  lowering.define_repeated(lowering.result(), lowering.dtype(self), std::move(view));
}

namespace {

/// The parts between the places where tensor_split cuts.
std::vector<std::int64_t> cut_sizes(Lowering& lowering, const BoundNode& node,
                                    std::int64_t extent) {
  std::vector<std::int64_t> ends;
  if (node.find("indices") != nullptr) {
    for (const std::int64_t index : node.integers("indices")) {
      ends.push_back(std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent));
    }
    ends.push_back(extent);
  } else {
    const std::int64_t sections = node.integer("sections");
    if (sections < 1)
      lowering.invalid("argument 'sections': " + number_text(sections) + " is not positive");
    const auto count = std::min(sections, extent);
    for (std::int64_t i = 1; i <= count; ++i) {
      ends.push_back(extent / count * i + std::min(i, extent % count));
    }
    if (count < sections) ends.push_back(extent);
  }
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end <= begin) lowering.refuse("self", "parts that are empty or overlap are not supported");
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

std::vector<std::int64_t> part_sizes(Lowering& lowering, const BoundNode& node,
                                     std::int64_t extent) {
  std::vector<std::int64_t> sizes;
  const auto fill = [&](std::int64_t size) {
    for (std::int64_t begin = 0; begin < extent; begin += size) {
      sizes.push_back(std::min(size, extent - begin));
    }
  };
  if (node.find("chunks") != nullptr) {
    const std::int64_t chunks = node.integer("chunks");
    if (chunks < 1)
      lowering.invalid("argument 'chunks': " + number_text(chunks) + " is not positive");
    fill(extent / chunks + (extent % chunks != 0 ? 1 : 0));
  } else if (node.node().op_type == "aten.split.Tensor") {
    const std::int64_t size = node.integer("split_size");
    if (size < 1)
      lowering.invalid("argument 'split_size': " + number_text(size) + " is not positive");
    fill(std::min(size, extent));
  } else if (functional_name(node.node().op_type) == "tensor_split") {
    sizes = cut_sizes(lowering, node, extent);
  } else {
    sizes = node.integers(node.find("split_sizes") != nullptr ? "split_sizes" : "split_size");
  }
  return sizes;
}

}  // namespace

void lower_split(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar cannot be split");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  const std::vector<std::int64_t> sizes = part_sizes(lowering, node, extent);
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > extent - total) {
      lowering.invalid("parts of " + shape_text(sizes) + " do not make up a dimension of " +
                       number_text(extent));
    }
    total += size;
  }
  const auto& outputs = lowering.node().outputs;
  if (total != extent || sizes.size() != outputs.size()) {
    lowering.invalid("the op gives " + std::to_string(sizes.size()) + " parts of a dimension of " +
                     number_text(extent) + ", the node has " + std::to_string(outputs.size()) +
                     " results");
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shape[dimension] = sizes[i];
    lowering.define_moved(outputs[i], shape, lowering.dtype(self),
                          sliced(lowering, lowering.stored(self), dimension, begin, sizes[i]));
    begin += sizes[i];
  }
}

void lower_unbind(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  Shape shape = lowering.shape(self);
  if (shape.empty()) lowering.invalid("a scalar cannot be unbound");
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  const std::int64_t extent = shape[dimension];
  const auto& outputs = lowering.node().outputs;
  if (outputs.size() != static_cast<std::size_t>(extent)) {
    lowering.invalid("the op gives " + number_text(extent) + " results, the node has " +
                     std::to_string(outputs.size()));
  }
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dimension));
  for (std::int64_t i = 0; i < extent; ++i) {
    Value value = sliced(lowering, lowering.stored(self), dimension, i, 1);
    std::vector<std::int64_t> strides = strides_of(value.layout);
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dimension));
    value.layout =
        shape.empty() ? plain_layout({}, value.type) : strided_layout(shape, strides, value.type);
    lowering.define_moved(outputs[static_cast<std::size_t>(i)], shape, lowering.dtype(self), value);
  }
}

void lower_getitem(Lowering& lowering, const Node& node) {
  const Json* index = find_member(node.attrs(), "index");
  if (index == nullptr || !index->is_number_integer()) {
    lowering.invalid("argument 'index': expected an integer");
  }
  const auto count = static_cast<std::int64_t>(node.inputs.size());
  std::int64_t position = index->get<std::int64_t>();
  if (position < -count || position >= count) {
    lowering.invalid("argument 'index': " + number_text(position) + " is not in a list of " +
                     number_text(count));
  }
  if (position < 0) position += count;
  const TensorId chosen = node.inputs[static_cast<std::size_t>(position)];
  lowering.define_moved(lowering.result(), lowering.shape(chosen), lowering.dtype(chosen),
                        lowering.stored(chosen));
}

}  // namespace npu::onednn

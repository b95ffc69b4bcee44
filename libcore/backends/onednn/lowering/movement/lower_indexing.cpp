// SPDX-License-Identifier: Apache-2.0
// Elements by index tensors: read, or written over those of a copy. An index is looked up for every
// element, or once for a run of elements that follow each other in both tensors. Indices that are
// out of range are found when the program runs.
#include <algorithm>

#include "lowering/engine/promotion.hpp"
#include "lowering/movement/movement.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// Indices as int64, row-major.
Value index_value(Lowering& lowering, std::string_view argument, TensorId tensor) {
  const DType dtype = lowering.dtype(tensor);
  if (dtype != DType::kInt64 && dtype != DType::kInt32) {
    lowering.refuse(argument, "dtype " + std::string(dtype_name(dtype)) +
                                  " is not supported; use int64 or int32");
  }
  return lowering.plain(cast_value(lowering, lowering.stored(tensor), DType::kInt64));
}

/// Strides that broadcast a row-major tensor of `shape` to the last dimensions before `behind` of
/// an iteration space.
std::vector<std::int64_t> strides_at(const Shape& shape, std::size_t rank, std::size_t behind) {
  std::vector<std::int64_t> result(rank, 0);
  const std::vector<std::int64_t> own = row_major_strides(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) result[behind - shape.size() + i] = own[i];
  }
  return result;
}

/// A call and the operands of its indices.
struct IndexCall {
  IndexedCopy copy;
  std::vector<Value> indices;
};

/// What index and index_put share: the space of what x[indices] has, which is `shape`.
IndexCall advanced_index(Lowering& lowering, const BoundNode& node, const Shape& indexed,
                         Shape& shape) {
  const BoundArgument* argument = node.find("indices");
  if (argument == nullptr || argument->inputs.empty() ||
      argument->inputs.size() > std::max<std::size_t>(indexed.size(), 1)) {
    lowering.invalid("argument 'indices': expected one entry for each of the first dimensions");
  }
  IndexCall call;
  Shape joined;  // of all indices together
  std::vector<std::size_t> dims;
  std::vector<TensorId> tensors;
  for (std::size_t d = 0; d < argument->inputs.size(); ++d) {
    if (argument->inputs[d] < 0) continue;
    const TensorId tensor = node.node().inputs[static_cast<std::size_t>(argument->inputs[d])];
    if (d >= indexed.size()) lowering.invalid("a scalar has no dimension to index");
    joined = broadcast_shape(lowering, joined, lowering.shape(tensor));
    dims.push_back(d);
    tensors.push_back(tensor);
  }
  if (dims.empty()) lowering.refuse("indices", "an index is needed");
  // Where indexed dimensions are neighbours, the indices' own come in their place, else in front.
  const bool together = dims.back() - dims.front() + 1 == dims.size();
  const std::size_t place = together ? dims.front() : 0;
  const std::vector<std::int64_t> strides = row_major_strides(indexed);
  std::vector<std::int64_t>& rest = call.copy.indexed_strides;
  shape.clear();
  for (std::size_t d = 0; d < indexed.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    shape.push_back(indexed[d]);
    rest.push_back(strides[d]);
  }
  const auto at = static_cast<std::ptrdiff_t>(place);
  shape.insert(shape.begin() + at, joined.begin(), joined.end());
  rest.insert(rest.begin() + at, joined.size(), 0);
  const std::size_t behind = place + joined.size();
  for (std::size_t k = 0; k < dims.size(); ++k) {
    call.indices.push_back(index_value(lowering, "indices", tensors[k]));
    call.copy.indices.push_back({indexed[dims[k]], strides[dims[k]],
                                 strides_at(lowering.shape(tensors[k]), shape.size(), behind)});
  }
  call.copy.wraps = true;
  return call;
}

/// A space of rank 0 has one element.
void give_rank(IndexedCopy& copy) {
  if (!copy.extents.empty()) return;
  copy.extents = {1};
  copy.indexed_strides = {0};
  copy.other_strides = {0};
  for (IndexedCopy::Index& index : copy.indices) index.strides = {0};
}

void check_indices(const Lowering& lowering, const IndexCall& call) {
  if (call.indices.size() > IndexedCopy::kMostIndices) {
    lowering.refuse("indices", "more than 8 are not supported");
  }
  if (call.copy.indexed_strides.size() > kMostDimensions) {
    lowering.refuse("indices", "values of more than 16 dimensions are not supported");
  }
}

/// Reads elements of `self`, in the space of the result.
void define_read(Lowering& lowering, TensorId self, const Shape& shape, IndexCall call) {
  check_indices(lowering, call);
  lowering.check_result(lowering.result(), shape, lowering.dtype(self));
  const Value source = lowering.plain(lowering.stored(self));
  const Value target = lowering.temporary(source.type, plain_layout(shape, source.type));
  IndexedCopy& copy = call.copy;
  copy.type = source.type;
  copy.count = element_count(lowering.shape(self));
  copy.extents = shape;
  copy.other_strides = row_major_strides(shape);
  copy.node = node_text(lowering.node());
  give_rank(copy);
  copy.simplify();
  std::vector<Value> reads{source};
  reads.insert(reads.end(), call.indices.begin(), call.indices.end());
  lowering.add_kernel(reads, target, std::move(copy), KernelKind::kMove);
  lowering.define_moved(lowering.result(), shape, lowering.dtype(self), target);
}

/// Writes `values` over elements of `self`, in a space of `shape`.
void define_written(Lowering& lowering, const GroupContext& context, TensorId self,
                    const MixedOperand& values, const Shape& shape, IndexCall call) {
  check_indices(lowering, call);
  const DType dtype = lowering.dtype(self);
  lowering.check_result(lowering.result(), lowering.shape(self), dtype);
  const Value whole = lowering.plain(lowering.stored(self));
  Shape own = shape_of(lowering, values);
  if (broadcast_shape(lowering, own, shape) != shape) {
    lowering.invalid("values of " + shape_text(own) + " do not expand to " + shape_text(shape));
  }
  own.insert(own.begin(), shape.size() - own.size(), 1);
  Value over = lowering.reshaped(converted(lowering, values, dtype, whole.type), own);
  IndexedCopy& copy = call.copy;
  copy.type = whole.type;
  copy.scatters = true;
  copy.count = element_count(lowering.shape(self));
  copy.extents = shape;
  if (own == shape) {
    over = lowering.plain(over);
  } else {  // written out, so that the order of what is written is that of the space
    const Value full = lowering.temporary(over.type, plain_layout(shape, over.type));
    const Iteration space = iterate(full.layout);
    StridedCopy expand{dtype_size(over.type), space.extents,
                       strides_in(space, lowering.strided(over).layout), space.strides};
    expand.simplify();
    lowering.add_kernel({lowering.strided(over)}, full, std::move(expand), KernelKind::kReorder);
    over = full;
  }
  copy.other_strides = row_major_strides(shape);
  copy.node = node_text(lowering.node());
  give_rank(copy);
  copy.simplify();
  const Value target =
      lowering.temporary(whole.type, plain_layout(lowering.shape(self), whole.type));
  std::vector<Value> operands{whole, over};
  operands.insert(operands.end(), call.indices.begin(), call.indices.end());
  lowering.add_kernel(operands, target, std::move(copy), KernelKind::kMove);
  lowering.define_computed(context, lowering.result(), lowering.shape(self), dtype, target);
}

/// gather and scatter: an index for every element of the space, along one dimension.
IndexCall along_dimension(Lowering& lowering, const BoundNode& node, TensorId self,
                          const Shape& other) {
  const TensorId index = tensor_argument(lowering, node, "index");
  const Shape& space = lowering.shape(index);
  const Shape& shape = lowering.shape(self);
  if (space.size() != shape.size() || other.size() != shape.size()) {
    lowering.refuse("index", "its rank is not the operand's");
  }
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if ((d != dimension && space[d] > shape[d]) || space[d] > other[d]) {
      lowering.invalid("an index of " + shape_text(space) + " leads out of " + shape_text(shape));
    }
  }
  IndexCall call;
  call.indices.push_back(index_value(lowering, "index", index));
  call.copy.indexed_strides = row_major_strides(shape);
  std::int64_t extent = 1;
  std::int64_t step = 1;
  if (!shape.empty()) {
    extent = shape[dimension];
    step = std::exchange(call.copy.indexed_strides[dimension], 0);
  }
  call.copy.indices.push_back({extent, step, row_major_strides(space)});
  return call;
}

/// What scatter, scatter_add and scatter_reduce do to an element.
IndexedCopy::Combine combine_of(const Lowering& lowering, const BoundNode& node) {
  using Combine = IndexedCopy::Combine;
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "scatter_add") return Combine::kAdd;
  if (name != "scatter_reduce") return Combine::kReplace;
  if (!node.boolean("include_self")) lowering.refuse("include_self", "only true is supported");
  const std::string reduce = node.string("reduce");
  if (reduce == "sum") return Combine::kAdd;
  if (reduce == "amax") return Combine::kMaximum;
  if (reduce != "amin") lowering.refuse("reduce", "only sum, amax and amin are supported");
  return Combine::kMinimum;
}

/// A vector of indices along one dimension, in the space of what they choose, which is `shape`.
IndexCall listed_along(Lowering& lowering, const BoundNode& node, const Shape& indexed,
                       Shape& shape) {
  const TensorId index = tensor_argument(lowering, node, "index");
  if (indexed.empty() || lowering.shape(index).size() > 1) {
    lowering.refuse("index", "only a vector for a tensor with dimensions is supported");
  }
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), indexed.size());
  shape = indexed;
  shape[dimension] = element_count(lowering.shape(index));
  IndexCall call;
  call.indices.push_back(index_value(lowering, "index", index));
  call.copy.indexed_strides = row_major_strides(indexed);
  const std::int64_t step = std::exchange(call.copy.indexed_strides[dimension], 0);
  std::vector<std::int64_t> strides(shape.size(), 0);
  strides[dimension] = 1;
  call.copy.indices.push_back({indexed[dimension], step, std::move(strides)});
  return call;
}

}  // namespace

void lower_index(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  Shape shape;
  IndexCall call = advanced_index(lowering, node, lowering.shape(self), shape);
  define_read(lowering, self, shape, std::move(call));
}

void lower_index_put(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  Shape shape;
  IndexCall call = advanced_index(lowering, node, lowering.shape(self), shape);
  if (node.boolean("accumulate")) call.copy.combine = IndexedCopy::Combine::kAdd;
  define_written(lowering, context, self, mixed_argument(lowering, node, "values"), shape,
                 std::move(call));
}

void lower_index_select(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  Shape shape;
  IndexCall call = listed_along(lowering, node, lowering.shape(self), shape);
  define_read(lowering, self, shape, std::move(call));
}

void lower_index_copy(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const MixedOperand source = mixed_argument(lowering, node, "source");
  Shape shape;
  IndexCall call = listed_along(lowering, node, lowering.shape(self), shape);
  if (shape_of(lowering, source) != shape) {
    lowering.invalid("argument 'source': shape " + shape_text(shape_of(lowering, source)) +
                     " is not " + shape_text(shape));
  }
  define_written(lowering, context, self, source, shape, std::move(call));
}

void lower_gather(Lowering& lowering, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const Shape& shape = lowering.shape(tensor_argument(lowering, node, "index"));
  define_read(lowering, self, shape, along_dimension(lowering, node, self, shape));
}

void lower_scatter(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const Shape& shape = lowering.shape(tensor_argument(lowering, node, "index"));
  const bool has_number = node.find("value") != nullptr;
  const MixedOperand values = mixed_argument(lowering, node, has_number ? "value" : "src");
  IndexCall call =
      along_dimension(lowering, node, self, has_number ? shape : shape_of(lowering, values));
  call.copy.combine = combine_of(lowering, node);
  if (!has_number && shape_of(lowering, values) != shape) {
    lowering.refuse("src", "a shape that is not that of 'index' is not supported");
  }
  define_written(lowering, context, self, values, shape, std::move(call));
}

}  // namespace npu::onednn

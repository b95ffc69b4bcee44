// SPDX-License-Identifier: Apache-2.0
// Exact matrix products and convolutions of integers, whose results are int32: MatMulInteger and
// ConvInteger of ONNX. In a group with the conversions of its operands and the subtractions of
// their zero points a product reads the bytes themselves, whatever the zero points are, which may
// be computed and differ by row or column. By itself it reads int32, at a quarter of the speed.
//
// Factors become rows and panels (kernels/integer_product.hpp); a constant right one does when a
// model is compiled. O(nodes of the group).
#include <algorithm>

#include "lowering/convolution.hpp"
#include "lowering/lowering.hpp"
#include "lowering/promotion.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// Integers, and what stands for zero among them.
struct IntegerFactor {
  Value value{};  ///< uint8, int8 or int32
  std::optional<TensorId> zero;
  Shape shape;

  DType type() const { return value.type; }
};

/// A constant of int32 as bytes, if they hold it.
Lowered<IntegerFactor> narrowed(Lowering& lowering, TensorId tensor) {
  const auto numbers = lowering.known_numbers(tensor);
  const Shape& shape = lowering.shape(tensor);
  const auto is_held = [](double number) { return number >= -128 && number <= 127; };
  if (!numbers || !std::all_of(numbers->begin(), numbers->end(), is_held)) {
    return NotFused{"a factor is neither converted from 8 bits nor a constant that they hold"};
  }
  std::vector<std::int8_t> bytes;
  for (const double number : *numbers) bytes.push_back(static_cast<std::int8_t>(number));
  return IntegerFactor{known_values(lowering, shape, DType::kInt8, bytes), std::nullopt, shape};
}

/// What a factor of a group's product is made of.
Lowered<IntegerFactor> factor_of(Lowering& lowering, const FusionGroup& group, TensorId tensor) {
  const Graph& graph = lowering.graph();
  IntegerFactor factor;
  factor.shape = lowering.shape(tensor);
  const auto maker = [&](TensorId id) -> const Node* {
    const NodeId producer = graph.tensor(id).producer;
    const bool is_member =
        std::find(group.nodes.begin(), group.nodes.end(), producer) != group.nodes.end();
    return producer.valid() && is_member ? &graph.node(producer) : nullptr;
  };
  const Node* node = maker(tensor);
  if (node == nullptr) return narrowed(lowering, tensor);
  if (fusion_role(node->op_type) == FusionRole::kSub) {
    factor.zero = node->inputs[1];
    node = maker(node->inputs[0]);
  }
  if (node == nullptr || !is_byte(lowering.dtype(node->inputs[0]))) {
    return NotFused{"a factor is not converted from 8 bits"};
  }
  factor.value = lowering.stored(node->inputs[0]);
  return factor;
}

IntegerFactor wide_factor(Lowering& lowering, TensorId tensor) {
  return {lowering.stored(tensor), std::nullopt, lowering.shape(tensor)};
}

/// Zero points as a vector of int32.
Value zeros_of(Lowering& lowering, const IntegerFactor& factor) {
  if (!factor.zero) return known_values(lowering, {1}, DType::kInt32, std::vector<std::int32_t>{0});
  const Value value =
      cast_value(lowering, lowering.plain(lowering.stored(*factor.zero)), DType::kInt32);
  return lowering.reshaped(value, {span_elements(value.layout)});
}

/// Whether there is a zero point for each of `count` elements of a dimension, or for all at once;
/// nothing for anything else.
std::optional<bool> has_many_zeros(const Lowering& lowering, const IntegerFactor& factor,
                                   std::size_t dimension) {
  if (!factor.zero) return false;
  Shape shape = lowering.shape(*factor.zero);
  const auto is_one = [](std::int64_t extent) { return extent == 1; };
  if (std::all_of(shape.begin(), shape.end(), is_one)) return false;
  if (shape.size() > factor.shape.size()) return std::nullopt;
  shape.insert(shape.begin(), factor.shape.size() - shape.size(), 1);
  if (shape[dimension] != factor.shape[dimension]) return std::nullopt;
  shape[dimension] = 1;
  if (!std::all_of(shape.begin(), shape.end(), is_one)) return std::nullopt;
  return true;
}

/// Whether the zero point is surely one of the factor's numbers, which lie around an image then.
bool is_number_of(const Lowering& lowering, const IntegerFactor& factor) {
  if (!factor.zero || !is_byte(factor.type())) return true;
  const auto [least, most] = range_of(factor.type());
  if (const auto numbers = lowering.known_numbers(*factor.zero)) {
    return std::all_of(numbers->begin(), numbers->end(), [low = least, high = most](double number) {
      return number >= static_cast<double>(low) && number <= static_cast<double>(high);
    });
  }
  const Graph& graph = lowering.graph();
  const NodeId producer = graph.tensor(*factor.zero).producer;
  if (!producer.valid()) return false;
  const Node& node = graph.node(producer);
  const bool converts = node.op_type == "aten.to.dtype" || node.op_type == "aten._to_copy.default";
  return converts && lowering.dtype(node.inputs.front()) == factor.type();
}

/// Words of int32.
Value words(Lowering& lowering, std::int64_t count) {
  return lowering.temporary(DType::kInt32, plain_layout({count}, DType::kInt32));
}

/// Words of four bytes of a row with its sum, or of int32.
std::int64_t row_words(DType type, std::int64_t inner) {
  return is_byte(type) ? padded_inner(type, inner) / 4 + 1 : inner;
}

Value add_rows(Lowering& lowering, const IntegerFactor& left, const Value& source,
               const IntegerRows& call) {
  const Value target = words(lowering, call.rows() * row_words(call.type, call.inner()));
  const Value zero = is_byte(call.type) && left.zero ? zeros_of(lowering, left)
                                                     : zeros_of(lowering, IntegerFactor{});
  lowering.add_kernel({source, zero}, target, call, KernelKind::kReorder);
  return target;
}

/// The right factor [batch, inner, columns], row-major, as the product reads it.
Value add_panels(Lowering& lowering, const Value& right, const IntegerProduct& product) {
  if (!is_byte(right.type)) return right;
  IntegerPanels call{right.type, product.batch, product.inner, product.columns};
  const std::int64_t columns = call.panels() * IntegerPanels::kColumns;
  const Value target =
      words(lowering, product.batch * columns * row_words(call.type, product.inner));
  lowering.add_kernel({right}, target, call, KernelKind::kReorder);
  return target;
}

/// Both factors as bytes, or both as int32.
bool are_alike(const IntegerFactor& left, const IntegerFactor& right) {
  return is_byte(left.type()) == is_byte(right.type());
}

/// The product of rows and a right factor [batch, inner, columns], which lies as `layout` says.
void add_product(Lowering& lowering, const IntegerFactor& left, const IntegerFactor& right,
                 IntegerProduct call, const Value& rows, const Value& target) {
  const Value panels = add_panels(lowering, right.value, call);
  std::vector<Value> reads{rows, panels};
  if (is_byte(right.type())) {
    call.type = DType::kUInt8;
    call.left_shift = left.type() == DType::kInt8 ? 128 : 0;
    call.right_shift = right.type() == DType::kUInt8 ? -128 : 0;
    call.uses_vnni = lowering.machine().exact_int8 && lowering.machine().has_avx512();
    reads.push_back(zeros_of(lowering, left));
    reads.push_back(zeros_of(lowering, right));
  } else {
    call.type = DType::kInt32;
  }
  lowering.add_kernel(reads, target, call);
}

constexpr std::int64_t kMostInner = 1 << 22;
const NotFused kUnusualZeros{"zero points differ in other dimensions than rows and columns"};

Lowered<Done> define_product(Lowering& lowering, const Node& node, IntegerFactor left,
                             IntegerFactor right) {
  if (!are_alike(left, right)) return NotFused{"one factor alone has 8 bits"};
  Shape result;
  if (left.shape.size() < 2 || right.shape.size() < 2) {
    if (is_byte(left.type()) || left.shape.empty() || right.shape.empty()) {
      return NotFused{"a factor is a vector"};
    }
  }
  const bool is_row = left.shape.size() == 1;
  const bool is_column = right.shape.size() == 1;
  if (is_row) left.shape.insert(left.shape.begin(), 1);
  if (is_column) right.shape.push_back(1);
  const Shape left_batch(left.shape.begin(), left.shape.end() - 2);
  const Shape right_batch(right.shape.begin(), right.shape.end() - 2);
  const Shape batch = broadcast_shape(lowering, left_batch, right_batch);
  const std::int64_t rows = left.shape[left.shape.size() - 2];
  const auto by_row = has_many_zeros(lowering, left, left.shape.size() - 2);
  const auto by_column = has_many_zeros(lowering, right, right.shape.size() - 1);
  if (!by_row || !by_column) return kUnusualZeros;
  left.value = lowering.reshaped(lowering.plain(left.value), left.shape);
  right.value = lowering.reshaped(lowering.plain(right.value), right.shape);
  share_batches(lowering, left.value, right.value, batch);
  left.value = lowering.plain(left.value);
  right.value = lowering.plain(right.value);
  const Shape a = dimensions(left.value.layout);
  const Shape b = dimensions(right.value.layout);
  IntegerProduct call;
  call.rows = a[a.size() - 2];
  call.inner = a.back();
  call.columns = b.back();
  for (std::size_t i = 0; i + 2 < b.size(); ++i) call.batch *= b[i];
  if (b[b.size() - 2] != call.inner) lowering.invalid("the factors do not fit each other");
  if (call.inner > kMostInner) return NotFused{"the inner dimension is too long"};
  if (*by_row && call.rows != rows) return kUnusualZeros;
  call.left_zeros = *by_row;
  call.right_zeros = *by_column;
  call.target_batch = call.rows * call.columns;
  call.target_row = call.columns;
  IntegerRows to_rows;
  to_rows.type = left.type();
  to_rows.batch = call.batch;
  to_rows.channels = call.inner;
  to_rows.extents[2] = call.rows;
  to_rows.windows[2] = call.rows;
  const Value left_rows =
      is_byte(left.type()) ? add_rows(lowering, left, left.value, to_rows) : left.value;
  result = batch;
  if (!is_row) result.push_back(rows);
  if (!is_column) result.push_back(call.columns);
  const Value target = lowering.temporary(DType::kInt32, plain_layout(result, DType::kInt32));
  add_product(lowering, left, right, call, left_rows, target);
  lowering.define_computed(node.outputs.front(), result, DType::kInt32, target);
  return Done{};
}

/// The same elements with dimensions in another order, row-major.
Value turned(Lowering& lowering, const Value& value, const std::vector<std::size_t>& order) {
  Value view = lowering.strided(value);
  const Shape shape = dimensions(view.layout);
  const auto strides = strides_of(view.layout);
  Shape new_shape;
  std::vector<std::int64_t> new_strides;
  for (const std::size_t from : order) {
    new_shape.push_back(shape[from]);
    new_strides.push_back(strides[from]);
  }
  view.layout = strided_layout(new_shape, new_strides, view.type);
  return lowering.plain(view);
}

/// [O, I / groups, taps..] as [groups, taps.., I / groups, O / groups].
Value turned_filter(Lowering& lowering, const Value& weight, std::int64_t groups) {
  Shape shape = dimensions(weight.layout);
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  std::vector<std::size_t> order{0};
  for (std::size_t i = 3; i < shape.size(); ++i) order.push_back(i);
  order.insert(order.end(), {2, 1});
  return turned(lowering, lowering.reshaped(lowering.plain(weight), shape), order);
}

/// The result, channels last.
Layout result_layout(const Shape& shape) {
  Shape last{shape[0]};
  last.insert(last.end(), shape.begin() + 2, shape.end());
  last.push_back(shape[1]);
  const auto from = row_major_strides(last);
  std::vector<std::int64_t> strides{from.front(), 1};
  strides.insert(strides.end(), from.begin() + 1, from.end() - 1);
  return strided_layout(shape, strides, DType::kInt32);
}

Lowered<Done> define_convolution(Lowering& lowering, const BoundNode& node,
                                 const IntegerFactor& left, IntegerFactor right) {
  if (!are_alike(left, right)) return NotFused{"one factor alone has 8 bits"};
  if (node.tensor("bias")) return NotFused{"a bias of integers"};
  const ConvolutionCall geometry = read_convolution_geometry(lowering, node);
  const Spatial& spatial = geometry.spatial;
  const auto by_image = has_many_zeros(lowering, left, 0);
  const auto by_channel = has_many_zeros(lowering, right, 0);
  if (!by_image || *by_image || !by_channel) return kUnusualZeros;
  if (*by_channel && geometry.groups > 1) return kUnusualZeros;
  const auto pads = [](std::int64_t pad) { return pad > 0; };
  if (std::any_of(spatial.pad_begin.begin(), spatial.pad_begin.end(), pads) &&
      !is_number_of(lowering, left)) {
    return NotFused{"the zero point may be no number of 8 bits, and lies around the image"};
  }
  IntegerRows to_rows;
  to_rows.type = left.type();
  to_rows.batch = left.shape[0];
  to_rows.groups = geometry.groups;
  to_rows.channels = left.shape[1];
  std::vector<std::size_t> order{0};
  const std::size_t missing = 5 - left.shape.size();
  for (std::size_t i = 2; i < left.shape.size(); ++i) {
    const std::size_t at = i - 2 + missing;
    to_rows.extents[at] = left.shape[i];
    to_rows.taps[at] = right.shape[i];
    to_rows.stride[at] = spatial.stride[i - 2];
    to_rows.dilation[at] = spatial.dilation[i - 2];
    to_rows.pad[at] = spatial.pad_begin[i - 2];
    to_rows.windows[at] = geometry.output[i];
    order.push_back(i);
  }
  order.push_back(1);
  IntegerProduct call;
  call.batch = geometry.groups;
  call.rows = to_rows.rows() / geometry.groups;
  call.inner = to_rows.inner();
  call.columns = geometry.output[1] / geometry.groups;
  call.target_batch = call.columns;
  call.target_row = geometry.output[1];
  call.right_zeros = *by_channel;
  if (call.inner > kMostInner) return NotFused{"a filter has too many taps"};
  const Value rows = add_rows(lowering, left, turned(lowering, left.value, order), to_rows);
  right.value = turned_filter(lowering, right.value, geometry.groups);
  const Value target = lowering.temporary(DType::kInt32, result_layout(geometry.output));
  add_product(lowering, left, right, call, rows, target);
  lowering.define_computed(node.node().outputs.front(), geometry.output, DType::kInt32, target);
  return Done{};
}

}  // namespace

Lowered<Done> lower_integer_group(Lowering& lowering, const FusionGroup& group) {
  const Node& product = lowering.graph().node(group.nodes.back());
  const auto left = factor_of(lowering, group, product.inputs[0]);
  if (!left) return left.refusal();
  const auto right = factor_of(lowering, group, product.inputs[1]);
  if (!right) return right.refusal();
  if (fusion_role(product.op_type) == FusionRole::kConv) {
    return define_convolution(lowering, bound(lowering.graph(), product), *left, *right);
  }
  return define_product(lowering, product, *left, *right);
}

Lowered<Done> lower_wide_product(Lowering& lowering, const BoundNode& node) {
  const Node& product = node.node();
  const IntegerFactor left = wide_factor(lowering, product.inputs[0]);
  const IntegerFactor right = wide_factor(lowering, product.inputs[1]);
  if (fusion_role(product.op_type) == FusionRole::kConv) {
    return define_convolution(lowering, node, left, right);
  }
  return define_product(lowering, product, left, right);
}

}  // namespace npu::onednn

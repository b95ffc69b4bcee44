// SPDX-License-Identifier: Apache-2.0
// Exact convolutions of integers, as products of their windows (lower_integer_product.cpp). O(1).
#include <algorithm>
#include <utility>
#include <vector>

#include "lowering/convolution/convolution.hpp"
#include "lowering/product/integer_product.hpp"

namespace npu::onednn {

namespace {

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

}  // namespace

Lowered<Done> define_integer_convolution(Lowering& lowering, const GroupContext& context,
                                         const BoundNode& node, const IntegerFactor& left,
                                         IntegerFactor right) {
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
  if (call.inner > kMostIntegerInner) return NotFused{"a filter has too many taps"};
  const Value rows = add_integer_rows(lowering, left, turned(lowering, left.value, order), to_rows);
  right.value = turned_filter(lowering, right.value, geometry.groups);
  const Value target = lowering.temporary(DType::kInt32, result_layout(geometry.output));
  add_integer_product(lowering, left, right, call, rows, target);
  lowering.define_computed(context, node.node().outputs.front(), geometry.output, DType::kInt32,
                           target);
  return Done{};
}

Lowered<Done> lower_integer_convolution(Lowering& lowering, const GroupContext& context,
                                        const BoundNode& node) {
  const Node& product = node.node();
  return define_integer_convolution(lowering, context, node,
                                    wide_factor(lowering, product.inputs[0]),
                                    wide_factor(lowering, product.inputs[1]));
}

}  // namespace npu::onednn

// SPDX-License-Identifier: Apache-2.0
// Functions of one operand, and arithmetic on two with broadcasting.
//
// One operand: an eltwise primitive in the operand's own layout.
// Two operands: oneDNN's binary primitive where both have the same dimensions, so that blocked
// layouts stay; else a kernel of this backend that broadcasts in any layout. Maximum and minimum
// always go to that kernel, since oneDNN's lose NaN.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/channel_layout.hpp"
#include "lowering/engine/node_functions.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

using dnnl::algorithm;

algorithm binary_algorithm(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return algorithm::binary_add;
    case BinaryOp::kSubtract:
      return algorithm::binary_sub;
    case BinaryOp::kMultiply:
      return algorithm::binary_mul;
    case BinaryOp::kDivide:
      return algorithm::binary_div;
    case BinaryOp::kMaximum:
      return algorithm::binary_max;
    case BinaryOp::kMinimum:
      return algorithm::binary_min;
    case BinaryOp::kPower:
      return algorithm::undef;
  }
  return algorithm::undef;
}

/// Leading dimensions of 1 up to `rank`, without a copy where the value is plain.
Value with_rank(Lowering& lowering, const Value& value, std::size_t rank) {
  Shape shape = dimensions(value.layout);
  if (shape.size() >= rank) return value;
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return lowering.reshaped(value, shape);
}

/// Both have the same dimensions: the primitive, in the layout of the one that is blocked.
Value add_same_shape(Lowering& lowering, BinaryOp op, Value a, Value b, float alpha) {
  if (!is_plain(b.layout) && is_plain(a.layout)) {
    b = lowering.dense(b);
    a = lowering.in_layout(a, b.layout);
  } else {
    a = lowering.dense(a);
    b = lowering.in_layout(b, with_type(a.layout, b.type));
  }
  dnnl::primitive_attr attributes = Lowering::attributes();
  if (op == BinaryOp::kSubtract && alpha != 1.0F) {
    op = BinaryOp::kAdd;
    alpha = -alpha;
  }
  if (op == BinaryOp::kAdd && alpha != 1.0F) attributes.set_scales(DNNL_ARG_SRC_1, 0, {alpha});
  const dnnl::binary::desc descriptor(binary_algorithm(op), a.layout, b.layout, a.layout);
  const dnnl::binary::primitive_desc primitive(descriptor, attributes, lowering.engine());
  const bool in_place = a.buffer != b.buffer && lowering.can_overwrite(a);
  if (in_place) lowering.note_overwritten(a);
  const Value target = in_place ? a : lowering.temporary(a.type, a.layout);
  lowering.add_primitive(primitive, {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}}, target);
  return target;
}

/// Elements that follow each other along the last dimension, with gaps between the rows.
bool has_gaps_between_rows(const Layout& layout) {
  return is_strided(layout) && !is_dense(layout) && strides_of(layout).back() == 1;
}

Value add_broadcast(Lowering& lowering, BinaryOp op, Value a, Value b, const Shape& shape,
                    float alpha) {
  // The one that has the result's shape leads: the result keeps its layout, blocks and all, unless
  // zeros that pad its blocks would be computed with, too.
  const auto can_lead = [&](const Value& value) {
    return dimensions(value.layout) == shape && is_dense(value.layout) &&
           !has_padding(value.layout);
  };
  Layout leader = plain_layout(shape, a.type);
  if (can_lead(a) && !is_plain(a.layout)) {
    leader = a.layout;
  } else if (can_lead(b) && !is_plain(b.layout)) {
    leader = with_type(b.layout, a.type);
  }
  const Iteration space = iterate(leader);
  const auto strides_of_operand = [&](Value& value) {
    if (with_type(value.layout, a.type) == leader) return space.strides;
    value = lowering.strided(value);
    return strides_in(space, value.layout);
  };
  const Value target = lowering.temporary(a.type, leader);
  BroadcastBinary call;
  call.op = op;
  call.alpha = alpha;
  call.type = a.type;
  call.b_type = b.type;
  call.a_strides = strides_of_operand(a);
  call.b_strides = strides_of_operand(b);
  call.extents = space.extents;
  call.target_strides = space.strides;
  call.simplify();
  lowering.add_kernel({a, b}, target, std::move(call));
  return target;
}

/// A product with one number for every channel (dimension 1), in the layout of the larger operand;
/// nothing if the operands are not such.
std::optional<Value> add_channel_product(Lowering& lowering, const Value& a, const Value& b) {
  const Shape shape = dimensions(a.layout);
  const Shape factors = dimensions(b.layout);
  if (shape.size() < 3 || factors.size() != shape.size() || factors[1] != shape[1] ||
      (factors[0] != 1 && factors[0] != shape[0]) ||
      (a.type != b.type && b.type != DType::kFloat32)) {
    return std::nullopt;
  }
  for (std::size_t i = 2; i < shape.size(); ++i) {
    if (factors[i] != 1) return std::nullopt;
  }
  const Value source = lowering.dense(a);
  auto space = channel_layout(source.layout);
  if (!space) return std::nullopt;
  Value scale = b;
  if (space->channels() != shape[1]) {
    // Padded channels of the factors are zero, too, if they are padded in the same way.
    const auto other = channel_layout(scale.layout);
    if (!other || other->channels() != space->channels() || other->lanes != space->lanes) {
      return std::nullopt;
    }
  } else {
    scale = lowering.plain(scale);
  }
  space->type = source.type;
  space->scale_type = scale.type;
  space->scale_by_outer = factors[0] != 1;
  const bool in_place = source.buffer != scale.buffer && lowering.can_overwrite(source);
  if (in_place) lowering.note_overwritten(source);
  const Value target = in_place ? source : lowering.temporary(source.type, source.layout);
  lowering.add_kernel({source, scale}, target, *space);
  return target;
}

}  // namespace

Value add_function(Lowering& lowering, const Eltwise& eltwise, const Value& from) {
  const bool spoils_padding = eltwise.own && !Elementwise::keeps_zero(*eltwise.own);
  const Value source =
      spoils_padding && has_padding(from.layout) ? lowering.plain(from) : lowering.dense(from);
  const bool in_place = lowering.can_overwrite(source);
  if (in_place) lowering.note_overwritten(source);
  if (eltwise.own) {
    const Value target = in_place ? source : lowering.temporary(source.type, source.layout);
    lowering.add_kernel({source}, target,
                        Elementwise{.function = *eltwise.own,
                                    .type = source.type,
                                    .count = span_elements(source.layout),
                                    .alpha = eltwise.alpha});
    return target;
  }
  const dnnl::eltwise_forward::desc descriptor(dnnl::prop_kind::forward_inference, eltwise.function,
                                               source.layout, eltwise.alpha, eltwise.beta);
  const dnnl::eltwise_forward::primitive_desc primitive(descriptor, lowering.attributes(),
                                                        lowering.engine());
  const Value target = in_place ? source : lowering.temporary(source.type, primitive.dst_desc());
  lowering.add_primitive(primitive, {{DNNL_ARG_SRC, source}}, target);
  return target;
}

Value add_binary(Lowering& lowering, BinaryOp op, const Value& left, const Value& right,
                 float alpha) {
  const std::size_t rank =
      std::max(dimensions(left.layout).size(), dimensions(right.layout).size());
  const Value a = with_rank(lowering, left, rank);
  const Value b = with_rank(lowering, right, rank);
  const Shape a_shape = dimensions(a.layout);
  const bool has_no_primitive =
      op == BinaryOp::kMaximum || op == BinaryOp::kMinimum || op == BinaryOp::kPower;
  // Slices are read where they lie.
  const bool has_slices = (has_gaps_between_rows(a.layout) &&
                           (is_plain(b.layout) || has_gaps_between_rows(b.layout))) ||
                          (is_plain(a.layout) && has_gaps_between_rows(b.layout));
  if (a_shape == dimensions(b.layout) && a.type == b.type && !has_no_primitive && !has_slices) {
    return add_same_shape(lowering, op, a, b, alpha);
  }
  if (op == BinaryOp::kMultiply) {
    if (const auto value = add_channel_product(lowering, a, b)) return *value;
    if (a.type == b.type) {
      if (const auto value = add_channel_product(lowering, b, a)) return *value;
    }
  }
  return add_broadcast(lowering, op, a, b, broadcast_shape(lowering, a_shape, dimensions(b.layout)),
                       alpha);
}

void lower_unary(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  if (!is_floating_point(lowering.dtype(input))) {
    const bool is_clamp = functional_name(node.node().op_type).starts_with("clamp");
    return is_clamp ? lower_typed_clamp(lowering, context, node)
                    : lower_typed_unary(lowering, context, node);
  }
  lowering.require_float("self", input);
  Value value = lowering.operand(input, context.compute_type);
  for (const Eltwise& eltwise : unary_functions(lowering, node))
    value = add_function(lowering, eltwise, value);
  lowering.define_computed(context, lowering.result(), lowering.shape(input), lowering.dtype(input),
                           value);
}

void lower_binary(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  if (!has_one_float_dtype(lowering, node)) return lower_typed_binary(lowering, context, node);
  const std::string_view name = functional_name(node.node().op_type);
  const TensorId self = tensor_argument(lowering, node, "self");
  lowering.require_float("self", self);
  const BinaryOp op = binary_op(name);
  const float alpha =
      node.find("alpha") != nullptr ? number_argument(lowering, node, "alpha") : 1.0F;
  const auto other = node.tensor("other");
  Shape shape = lowering.shape(self);
  if (other) {
    lowering.require_float("other", *other);
    if (lowering.dtype(*other) != lowering.dtype(self)) {
      lowering.refuse("other", "its dtype differs from the first operand's");
    }
    shape = broadcast_shape(lowering, shape, lowering.shape(*other));
    lowering.check_result(lowering.result(), shape, lowering.dtype(self));
    Value a = lowering.operand(self, context.compute_type);
    Value b = lowering.operand(*other, context.compute_type);
    if (name == "rsub") std::swap(a, b);
    const Value value = add_binary(lowering, op, a, b, alpha);
    lowering.define_computed(context, lowering.result(), shape, lowering.dtype(self), value);
    return;
  }

  // A number: linear functions keep the operand's layout, whatever its padding.
  const auto number = static_cast<float>(node.number("other"));
  const Value source = lowering.dense(lowering.operand(self, context.compute_type));
  if (op == BinaryOp::kDivide) {
    const Value divisor = lowering.constant(number);
    lowering.define_computed(context, lowering.result(), shape, lowering.dtype(self),
                             add_binary(lowering, op, source, divisor, 1.0F));
    return;
  }
  lowering.define_computed(context, lowering.result(), shape, lowering.dtype(self),
                           add_function(lowering, number_function(lowering, node), source));
}

void lower_power(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const auto base = node.tensor("self");
  const auto exponent = node.tensor("exponent");
  if (!base && !exponent) lowering.refuse("self", "a tensor is needed");
  const TensorId leader = base ? *base : *exponent;
  lowering.require_float("self", leader);
  const DType dtype = lowering.dtype(leader);
  Shape shape = lowering.shape(leader);
  if (base && exponent) {
    lowering.require_float("exponent", *exponent);
    if (lowering.dtype(*exponent) != dtype) {
      lowering.refuse("exponent", "its dtype differs from the first operand's");
    }
    shape = broadcast_shape(lowering, shape, lowering.shape(*exponent));
  }
  lowering.check_result(lowering.result(), shape, dtype);
  if (!exponent && (node.number("exponent") == 2.0 || node.number("exponent") == 0.5)) {
    // PyTorch computes these two in the same way.
    const auto function =
        node.number("exponent") == 2.0 ? algorithm::eltwise_square : algorithm::eltwise_sqrt;
    return lowering.define_computed(
        context, lowering.result(), shape, dtype,
        add_function(lowering, {function},
                     lowering.dense(lowering.operand(leader, context.compute_type))));
  }
  const auto operand_of = [&](std::optional<TensorId> tensor, std::string_view name) {
    if (tensor) return lowering.operand(*tensor, DType::kFloat32);
    return lowering.constant(static_cast<float>(node.number(name)));
  };
  const Value a = operand_of(base, "self");
  const Value b = operand_of(exponent, "exponent");
  const Value value = add_binary(lowering, BinaryOp::kPower, a, b, 1.0F);
  lowering.define_computed(context, lowering.result(), shape, dtype,
                           lowering.reshaped(value, shape));
}

}  // namespace npu::onednn

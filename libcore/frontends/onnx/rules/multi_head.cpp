// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's attentions of as many heads of keys as of queries: MultiHeadAttention, and
// Attention, which has the products in front of it, too. Their masks add a low number where a key
// is padding, and nothing hides in front of the new rows but those behind a query, if that is asked
// for. New rows go behind those of the past; buffers of fixed size are refused.
#include <cmath>

#include "rules/attention.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

constexpr double kLowScore = -10000;  // where no mask_filter_value is stated

/// What both ops have in the same words.
struct Layout {
  std::size_t mask = 0;  ///< operands
  std::size_t bias = 0;  ///< of scores
  std::int64_t heads = 0;
};

/// [batch, length, width], with a part of a vector added.
Value* biased(Op& op, Value* x, Value* bias, std::int64_t begin) {
  if (bias == nullptr) return x;
  const std::int64_t width = x->shape.back();
  if (bias->rank() != 1 || bias->shape[0] < begin + width) {
    Op::refuse("a bias of shape " + shape_text(bias->shape) + " does not fit its operand");
  }
  return op.binary("add", x, op.slice(bias, 0, begin, begin + width));
}

/// Part `index` of [batch, length, heads, parts, size], as [batch, length, heads * size].
Value* part_of(Op& op, Value* packed, std::int64_t index, std::int64_t parts) {
  const Shape& shape = packed->shape;
  if (shape.size() != 5 || shape[3] != parts) {
    Op::refuse("an operand of shape " + shape_text(shape) + " does not hold " +
               std::to_string(parts) + " parts");
  }
  return op.view(op.slice(packed, 3, index, index + 1), {shape[0], shape[1], shape[2] * shape[4]});
}

/// Scores that keys get which are padding, [batch, 1, queries or 1, keys]; or, of a length for each
/// row of the batch, how many keys count.
void mask_keys(Op& op, const Layout& layout, Heads& form) {
  Value* mask = op.maybe_in(layout.mask);
  if (mask == nullptr) return;
  const std::int64_t batch = form.q->shape[0];
  const std::int64_t queries = form.q->shape[2];
  const std::int64_t keys = form.k->shape[2];
  if (mask->shape == Shape{batch}) {
    form.valid = op.cast(mask, DType::kInt64);
    return;
  }
  const bool is_row = mask->shape == Shape{batch, keys};
  if (!is_row && mask->shape != Shape{batch, queries, keys}) {
    Op::refuse("a mask of shape " + shape_text(mask->shape) + " is none of " +
               shape_text({batch, keys}) + ", " + shape_text({batch, queries, keys}) + " and " +
               shape_text({batch}));
  }
  const DType dtype = form.q->dtype;
  const double low = op.real("mask_filter_value", kLowScore);
  Value* shown = op.cast(op.view(mask, {batch, 1, is_row ? 1 : queries, keys}), DType::kBool);
  form.mask = op.emit("aten.where.self",
                      {shown, op.filled({}, dtype, json_number_of(0, dtype)),
                       op.filled({}, dtype, json_number_of(low, dtype))},
                      Json::object(), dtype, shown->shape);
}

/// The rest of both: what is added to scores, the order of rows, and the result.
void attend_to(Op& op, const Layout& layout, Heads form, std::int64_t past) {
  mask_keys(op, layout, form);
  if (Value* bias = op.maybe_in(layout.bias)) {
    const Shape scores{form.q->shape[0], layout.heads, form.q->shape[2], form.k->shape[2]};
    if (bias->rank() != 4 || broadcast(bias->shape, scores) != scores) {
      Op::refuse("attention_bias of shape " + shape_text(bias->shape) + " does not fit scores of " +
                 shape_text(scores));
    }
    form.mask = form.mask == nullptr ? bias : op.binary("add", bias, form.mask);
  }
  form.is_causal = op.integer("unidirectional", 0) != 0;
  form.offset = past;
  form.scale = op.real("scale", 0);
  if (form.scale == 0) form.scale = 1 / std::sqrt(static_cast<double>(form.q->shape[3]));
  op.set(0, merge_heads(op, attend(op, form, -1).y));
}

std::int64_t head_count(Op& op) {
  const std::int64_t heads = op.integer("num_heads", 0);
  if (heads < 1) Op::refuse("'num_heads' is " + std::to_string(heads));
  return heads;
}

/// Part `index` of a stack of keys and values.
Value* taken(Op& op, Value* stack, std::int64_t index) {
  const Shape shape(stack->shape.begin() + 1, stack->shape.end());
  return op.emit("aten.select.int", {stack}, Json{{"dim", 0}, {"index", index}}, stack->dtype,
                 shape);
}

}  // namespace

void import_multi_head_attention(Op& op) {
  const Layout layout{.mask = 4, .bias = 5, .heads = head_count(op)};
  Value* q = op.in(0);
  Value* k = op.maybe_in(1);
  Value* v = op.maybe_in(2);
  Value* bias = op.maybe_in(3);
  if (k == nullptr) {
    k = part_of(op, q, 1, 3);
    v = part_of(op, q, 2, 3);
    q = part_of(op, q, 0, 3);
  } else if (v == nullptr) {
    v = part_of(op, k, 1, 2);
    k = part_of(op, k, 0, 2);
  }
  if (q->rank() != 3) Op::refuse("queries of rank " + std::to_string(q->rank()));
  const std::int64_t width = q->shape[2];
  Heads form{.q = split_heads(op, biased(op, q, bias, 0), layout.heads), .k = k, .v = v};
  // Keys and values of heads are those of a cross attention, which have their bias.
  const bool are_heads = k->rank() == 4 && v->rank() == 4;
  if (!are_heads) {
    form.k = split_heads(op, biased(op, k, bias, width), layout.heads);
    form.v = split_heads(op, biased(op, v, bias, 2 * width), layout.heads);
  }
  std::int64_t past = 0;
  if (Value* past_k = op.maybe_in(6)) {
    Value* past_v = op.in(7);
    if (are_heads || past_k->rank() != 4 || past_v->rank() != 4) {
      Op::refuse("past keys and values do not fit together");
    }
    past = past_k->shape[2];
    form.k = concatenated(op, {past_k, form.k}, 2);
    form.v = concatenated(op, {past_v, form.v}, 2);
  }
  attend_to(op, layout, form, past);
  op.set(1, form.k);
  op.set(2, form.v);
}

void import_projected_attention(Op& op) {
  const Layout layout{.mask = 3, .bias = 5, .heads = head_count(op)};
  Value* x = op.in(0);
  Value* weight = op.in(1);
  Value* bias = op.maybe_in(2);
  if (x->rank() != 3 || weight->rank() != 2 || x->shape[2] != weight->shape[0]) {
    Op::refuse("an operand of shape " + shape_text(x->shape) + " and weights of shape " +
               shape_text(weight->shape) + " do not fit together");
  }
  const std::int64_t third = weight->shape[1] / 3;
  const Ints widths = op.list("qkv_hidden_sizes").value_or(Ints{third, third, third});
  if (widths.size() != 3 || widths[0] != widths[1] || widths[0] < 1 || widths[2] < 1 ||
      widths[0] > weight->shape[1] || 2 * widths[0] + widths[2] != weight->shape[1]) {
    Op::refuse("'qkv_hidden_sizes' do not fit weights of shape " + shape_text(weight->shape));
  }
  Value* whole = matrix_product(op, x, weight);
  if (bias != nullptr && bias->shape != Shape{weight->shape[1]}) {
    Op::refuse("a bias of shape " + shape_text(bias->shape) + " does not fit the weights");
  }
  if (bias != nullptr) whole = op.binary("add", whole, bias);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return split_heads(op, op.slice(whole, 2, begin, end), layout.heads);
  };
  Heads form{.q = part(0, widths[0]),
             .k = part(widths[0], 2 * widths[0]),
             .v = part(2 * widths[0], weight->shape[1])};
  std::int64_t past = 0;
  if (Value* stack = op.maybe_in(4)) {
    if (stack->rank() != 5 || stack->shape[0] != 2) {
      Op::refuse("a past of shape " + shape_text(stack->shape) + " is no stack of keys and values");
    }
    past = stack->shape[3];
    form.k = concatenated(op, {taken(op, stack, 0), form.k}, 2);
    form.v = concatenated(op, {taken(op, stack, 1), form.v}, 2);
  }
  attend_to(op, layout, form, past);
  if (!op.wants(1)) return;
  if (form.k->shape != form.v->shape) Op::refuse("present keys and values of two shapes");
  Shape shape = form.k->shape;
  shape.insert(shape.begin(), 2);
  op.set(1, op.emit("aten.stack.default", {form.k, form.v},
                    Json{{"dim", 0}, {"_tensor_list_sizes", Ints{2}}}, form.k->dtype, shape));
}

}  // namespace npu::onnx

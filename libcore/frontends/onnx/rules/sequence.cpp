// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals. A document has tensors only: which ones a sequence holds is known at
// import, as are the positions at which it is changed, so it is a list here and no node of the
// document. O(length of the sequence) an op; a sequence has kMostItems at most.
#include "rules/rules.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

constexpr std::size_t kMostItems = 10'000;

using Items = std::vector<Value*>;

const Items& items_of(Op& op, std::size_t index) {
  const Value* value = op.in(index);
  if (!value->is_sequence()) Op::refuse("operand " + std::to_string(index) + " is no sequence");
  return value->items;
}

// Where an operand says that an item is, counted from the end if it is negative; `last` is the
// largest number that it may be.
std::size_t position(Op& op, std::size_t index, const Items& items, std::int64_t last) {
  const std::int64_t at = integer_operand(op, index, "the position");
  const auto count = static_cast<std::int64_t>(items.size());
  if (at < -count || at > last) {
    Op::refuse("position " + std::to_string(at) + " of a sequence of " + std::to_string(count));
  }
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

void set_sequence(Op& op, Items items) {
  if (items.size() > kMostItems) {
    Op::refuse("a sequence of more than " + std::to_string(kMostItems) + " tensors");
  }
  op.importer().spend(static_cast<std::int64_t>(items.size()) + 1);
  for (const Value* item : items) {
    if (item->is_sequence()) Op::refuse("a sequence of sequences");
    if (item->dtype != items[0]->dtype) {
      Op::refuse("a sequence of types " + std::string(dtype_name(items[0]->dtype)) + " and " +
                 std::string(dtype_name(item->dtype)));
    }
  }
  op.set(0, op.draft().add_sequence(std::move(items)));
}

// The sizes of the parts that SplitToSequence makes of an axis.
Ints part_sizes(Op& op, std::int64_t extent) {
  std::int64_t size = 1;
  if (op.has_input(1)) {
    Ints sizes = op.integers(1, "split");
    if (op.in(1)->rank() > 0) return sizes;
    size = sizes.at(0);
  }
  if (size < 1) Op::refuse("parts of " + std::to_string(size));
  if (extent / size > static_cast<std::int64_t>(kMostItems)) {
    Op::refuse("a sequence of more than " + std::to_string(kMostItems) + " tensors");
  }
  Ints sizes(static_cast<std::size_t>(extent / size), size);
  if (extent % size != 0) sizes.push_back(extent % size);
  return sizes;
}

Value* without_axis(Op& op, Value* value, std::int64_t axis) {
  Shape shape = value->shape;
  shape.erase(shape.begin() + axis);
  return op.view(value, std::move(shape));
}

}  // namespace

void import_sequence_construct(Op& op) {
  Items items;
  for (std::size_t i = 0; i < op.input_count(); ++i) items.push_back(op.in(i));
  set_sequence(op, std::move(items));
}

void import_sequence_change(Op& op) {
  Items items = items_of(op, 0);
  const auto count = static_cast<std::int64_t>(items.size());
  std::size_t at = items.size();
  if (op.node().op_type == "SequenceInsert") {
    if (op.has_input(2)) at = position(op, 2, items, count);
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), op.in(1));
    return set_sequence(op, std::move(items));
  }
  if (items.empty()) Op::refuse("an empty sequence");
  at = op.has_input(1) ? position(op, 1, items, count - 1) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  set_sequence(op, std::move(items));
}

void import_sequence_at(Op& op) {
  const Items& items = items_of(op, 0);
  op.set(0, items[position(op, 1, items, static_cast<std::int64_t>(items.size()) - 1)]);
}

void import_sequence_length(Op& op) {
  op.set(0, op.integer_constant({static_cast<std::int64_t>(items_of(op, 0).size())}, {}));
}

void import_split_to_sequence(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), x->rank());
  const std::int64_t extent = x->shape[static_cast<std::size_t>(axis)];
  const Ints sizes = part_sizes(op, extent);
  std::int64_t sum = 0;
  std::vector<ResultType> results;
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) Op::refuse("a part of negative size");
    Shape shape = x->shape;
    shape[static_cast<std::size_t>(axis)] = size;
    results.push_back({x->dtype, std::move(shape)});
  }
  if (sum != extent) Op::refuse("the parts do not add up to the dimension");
  if (sizes.size() > kMostItems) {
    Op::refuse("a sequence of more than " + std::to_string(kMostItems) + " tensors");
  }
  Items items{x};
  if (sizes.size() != 1) {
    items = op.draft().emit_several("aten.split_with_sizes.default", {x},
                                    Json{{"split_sizes", sizes}, {"dim", axis}}, results);
  }
  if (!op.has_input(1) && op.integer("keepdims", 1) == 0) {
    for (Value*& item : items) item = without_axis(op, item, axis);
  }
  set_sequence(op, std::move(items));
}

void import_concat_from_sequence(Op& op) {
  Items items = items_of(op, 0);
  op.importer().spend(static_cast<std::int64_t>(items.size()));
  if (items.empty()) Op::refuse("an empty sequence");
  const bool is_new = op.integer("new_axis", 0) != 0;
  const std::int64_t rank = items[0]->rank();
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), rank + (is_new ? 1 : 0));
  for (Value*& item : items) {
    if (item->rank() != rank) Op::refuse("operands of two ranks");
    if (!is_new) continue;
    Shape shape = item->shape;
    shape.insert(shape.begin() + axis, 1);
    item = op.view(item, std::move(shape));
  }
  op.set(0, concatenated(op, items, axis));
}

void import_optional(Op& op) {
  const bool has_element = op.has_input(0);
  if (op.node().op_type == "OptionalHasElement") {
    Tensor truth(DType::kBool, {});
    truth.as_mutable<std::uint8_t>()[0] = has_element ? 1 : 0;
    return op.set(0, op.constant_value(std::move(truth)));
  }
  if (!has_element) Op::refuse("an optional without an element");
  op.set(0, op.in(0));
}

}  // namespace npu::onnx

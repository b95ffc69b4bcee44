// SPDX-License-Identifier: Apache-2.0
// Finds assignments to parts of tensors. PyTorch's exporter writes x[:, 2:n] = y as ScatterND with
// an index for each element: a sequence for each axis, seen along this axis, repeated along the
// others, and all of them joined. Each is traced back to its sequence. O(axes).
#include "written_box.hpp"

#include <iterator>
#include <optional>
#include <utility>

#include "support/json_fields.hpp"

namespace npu::onnx {
namespace {

/// What is written along one axis.
struct Span {
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool is_whole(std::int64_t extent) const { return begin == 0 && count == extent; }
};

std::optional<std::int64_t> integer_of(const DraftNode& node, const char* key) {
  const Json* value = find_member(node.attrs, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

/// The axis that has more than one element, 0 if none has; nothing if several have.
std::optional<std::size_t> only_axis(const Shape& shape) {
  std::size_t axis = 0;
  std::int64_t several = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    axis = d;
    ++several;
  }
  return several <= 1 ? std::optional(axis) : std::nullopt;
}

/// Numbers that count by one: a sequence, a part of one, or constants.
std::optional<Span> sequence_of(Op& op, Value* value) {
  constexpr std::int64_t kMost = 4096;
  if (value->is_constant()) {
    const Tensor* known = op.importer().known(value, kMost);
    if (known == nullptr || known->element_count() == 0) return std::nullopt;
    const double first = known->value_as_double(0);
    for (std::int64_t i = 1; i < known->element_count(); ++i) {
      if (known->value_as_double(i) != first + static_cast<double>(i)) return std::nullopt;
    }
    return Span{static_cast<std::int64_t>(first), known->element_count()};
  }
  const DraftNode* node = op.draft().producer(value);
  if (node == nullptr || value->rank() != 1) return std::nullopt;
  if (node->op == "aten.slice.Tensor") {
    auto span = sequence_of(op, node->inputs[0]);
    const auto start = integer_of(*node, "start");
    if (!span || !start || find_member(node->attrs, "step") != nullptr) return std::nullopt;
    return Span{span->begin + *start, value->count()};
  }
  if (node->op != "aten.arange.start_step" || integer_of(*node, "step") != 1) return std::nullopt;
  const auto start = integer_of(*node, "start");
  return start ? std::optional(Span{*start, value->count()}) : std::nullopt;
}

/// The axis of `to` that has the elements of one of `from`; nothing if there is none.
std::optional<std::size_t> moved_axis(const Shape& from, std::size_t axis, const Shape& to) {
  const std::int64_t in_front = product(from, 0, axis);
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (to[d] == from[axis] && product(to, 0, d) == in_front) return d;
  }
  return std::nullopt;
}

/// The numbers of a column, all of which are those of `axis` of `places`.
std::optional<Span> span_of(Op& op, Value* column, std::size_t axis, const Shape& places) {
  // Which axis of a value is that of the column; there is none where it has one element.
  std::vector<Value*> chain{column};
  for (const DraftNode* node = op.draft().producer(column); node != nullptr;
       node = op.draft().producer(chain.back())) {
    if (node->op != "aten.reshape.default" && node->op != "aten.expand.default" &&
        node->op != "aten.to.dtype") {
      break;
    }
    if (!is_integer(node->inputs[0]->dtype)) return std::nullopt;
    chain.push_back(node->inputs[0]);
  }
  const auto span = sequence_of(op, chain.back());
  if (!span || span->begin < 0 || span->count != places[axis]) return std::nullopt;
  if (span->count == 1) return span;
  const auto along = only_axis(chain.back()->shape);
  if (!along) return std::nullopt;
  std::size_t at = *along;
  for (std::size_t i = chain.size() - 1; i-- > 0;) {
    const Shape& from = chain[i + 1]->shape;
    const Shape& to = chain[i]->shape;
    if (op.draft().producer(chain[i])->op == "aten.expand.default") {
      at += to.size() - from.size();
    } else if (const auto moved = moved_axis(from, at, to)) {
      at = *moved;
    } else {
      return std::nullopt;
    }
  }
  return at == axis ? span : std::nullopt;
}

/// `x` with `updates` in a box, of which the axes before `axis` are whole.
Value* written(Op& op, Value* x, Value* updates, const std::vector<Span>& box, std::size_t axis) {
  while (axis < box.size() && box[axis].is_whole(x->shape[axis])) ++axis;
  if (axis == box.size()) return updates;
  const auto dim = static_cast<std::int64_t>(axis);
  const std::int64_t begin = box[axis].begin;
  const std::int64_t end = begin + box[axis].count;
  Value* part = updates;
  for (std::size_t d = axis + 1; d < box.size(); ++d) {
    if (box[d].is_whole(x->shape[d])) continue;
    part = written(op, op.slice(x, dim, begin, end), updates, box, axis + 1);
    break;
  }
  return op.emit_like("aten.slice_scatter.default", {x, part},
                      Json{{"dim", dim}, {"start", begin}, {"end", end}});
}

}  // namespace

Value* write_box(Op& op, Value* x, Value* index, Value* updates) {
  const DraftNode* joined = op.draft().producer(index);
  std::vector<Value*> columns{index};
  const std::int64_t last = index->rank() - 1;
  if (joined != nullptr && joined->op == "aten.cat.default") {
    if (integer_of(*joined, "dim") != last) return nullptr;
    columns = joined->inputs;
  }
  const Shape places(index->shape.begin(), index->shape.end() - 1);
  if (places.size() != columns.size() || std::ssize(columns) > x->rank()) return nullptr;
  Shape taken = places;
  taken.insert(taken.end(), x->shape.begin() + std::ssize(columns), x->shape.end());
  if (updates->shape != taken) return nullptr;
  std::vector<Span> box;
  for (std::size_t d = 0; d < columns.size(); ++d) {
    const auto span =
        columns[d]->shape.back() == 1 ? span_of(op, columns[d], d, places) : std::nullopt;
    if (!span || span->count == 0 || span->begin + span->count > x->shape[d]) return nullptr;
    box.push_back(*span);
  }
  return written(op, x, updates, box, 0);
}

}  // namespace npu::onnx

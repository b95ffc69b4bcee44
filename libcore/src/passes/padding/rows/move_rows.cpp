// SPDX-License-Identifier: Apache-2.0
// Rows that padding would come to stand among: each is read where it stands in the operand.
// O(elements) of index tensors, O(rank) nodes.
#include <string>
#include <utility>
#include <vector>

#include "passes/padding/rows/rewritings.hpp"

namespace npu::padding {
namespace {

// For each dimension of `from` an index of the shape `to`: where the elements of a view from the
// one to the other stand. Known ones stand in front of earlier nodes.
Json places_of(RowWriter& writer, NodeId before, const SizeShape& from, const SizeShape& to) {
  std::string text;
  for (const SizeExpression& size : from) text += size.text() + ",";
  for (const SizeExpression& size : to) text += ":" + size.text();
  Json& known = writer.known(text);
  if (!known.is_null()) return known;
  const std::string name = writer.result(before).name + ":place";
  SizeShape shape;
  Shape numbers;
  Json place;
  // In the order of the dimensions: the numbers of those behind times how many there are, plus.
  for (const SizeExpression& size : to) {
    const std::int64_t count = size.evaluate(writer.sizes().capacities());
    const Json line = writer.line(before, name, size);
    if (place.is_null()) {
      place = line;
    } else {
      place = writer.arithmetic(before, name, "mul", place, size, shape, numbers);
      shape.emplace_back(1);
      numbers.push_back(1);
      place = writer.insert(before, name, "aten.view.default", Json::array({place}),
                            {{"size", numbers}}, shape, numbers, DType::kInt64);
      shape.pop_back();
      numbers.pop_back();
    }
    shape.push_back(size);
    numbers.push_back(count);
    if (shape.size() > 1) {
      place = writer.insert(before, name, "aten.add.Tensor", Json::array({place, line}),
                            {{"alpha", 1}}, shape, numbers, DType::kInt64);
    }
  }
  Json places = Json::array();
  for (std::size_t d = from.size(); d-- > 0;) {
    if (d == 0) {
      places.insert(places.begin(), place);
      continue;
    }
    places.insert(places.begin(),
                  writer.arithmetic(before, name, "remainder", place, from[d], shape, numbers));
    place = writer.arithmetic(before, name, "floor_divide", place, from[d], shape, numbers);
  }
  known = places;
  return places;
}

}  // namespace

void rewrite_view(RowWriter& writer, NodeId id, const NodeRule& rule) {
  const TensorId operand = writer.graph().node(id).inputs.front();
  const TensorInfo& result = writer.result(id);
  SizeShape shape = writer.shapes().of(operand);
  Shape numbers = writer.graph().tensor(operand).shape;
  Json rows = writer.mention(operand);
  // The last first: those in front of it stay where they are.
  for (auto group = rule.moved.rbegin(); group != rule.moved.rend(); ++group) {
    const auto from = [&](auto& list) {
      return std::pair(list.begin() + static_cast<std::ptrdiff_t>(group->from_begin),
                       list.begin() + static_cast<std::ptrdiff_t>(group->from_end));
    };
    const auto to = [&](auto& list) {
      return std::pair(list.begin() + static_cast<std::ptrdiff_t>(group->to_begin),
                       list.begin() + static_cast<std::ptrdiff_t>(group->to_end));
    };
    const auto [first, last] = from(shape);
    const auto [to_first, to_last] = to(writer.shapes().of(writer.result_of(id)));
    const Json places = places_of(writer, id, SizeShape(first, last), SizeShape(to_first, to_last));
    Json inputs = Json::array({rows});
    for (const Json& place : places) inputs.push_back(place);
    std::vector<bool> is_none(group->from_begin, true);
    is_none.resize(group->from_end, false);
    shape.insert(shape.erase(first, last), to_first, to_last);
    const auto [number, number_end] = from(numbers);
    const auto [to_number, to_number_end] = to(result.shape);
    numbers.insert(numbers.erase(number, number_end), to_number, to_number_end);
    rows = writer.insert(id, result.name + ":rows", "aten.index.Tensor", std::move(inputs),
                         {{"_tensor_list_sizes", Json::array({places.size()})},
                          {"_tensor_list_none_masks", Json::array({is_none})}},
                         shape, numbers, result.dtype);
  }
  writer.replace(id, "aten.view.default", Json::array({rows}), {{"size", result.shape}});
}

// Of n rows the last is reflected about n - 1, and the first about 0:
// n - 1 - |n - 1 - |i - before||.
void rewrite_reflected(RowWriter& writer, NodeId id, const BoundNode& bound) {
  const TensorId operand = writer.graph().node(id).inputs.front();
  const TensorInfo& result = writer.result(id);
  const auto pads = bound.integers(bound.find("pad") != nullptr ? "pad" : "padding");
  SizeShape shape = writer.shapes().of(operand);
  Shape numbers = writer.graph().tensor(operand).shape;
  Json rows = writer.mention(operand);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::size_t pair = 2 * (shape.size() - 1 - d);
    if (pair + 1 >= pads.size() || (pads[pair] == 0 && pads[pair + 1] == 0)) continue;
    const SizeExpression last = shape[d] - 1;
    shape[d] = shape[d] + (pads[pair] + pads[pair + 1]);
    numbers[d] = result.shape[d];
    const SizeShape line{shape[d]};
    const Shape count{numbers[d]};
    const std::string name = result.name + ":place";
    const auto with = [&](const char* op, const Json& left, const SizeExpression& size) {
      return writer.arithmetic(id, name, op, left, size, line, count);
    };
    const auto apart = [&](const Json& left) {
      return writer.insert(id, name, "aten.abs.default", Json::array({left}), Json::object(), line,
                           count, DType::kInt64);
    };
    const auto below_last = [&](const Json& left) {
      return with("add", with("mul", left, SizeExpression(-1)), last);
    };
    const Json first = writer.line(id, name, shape[d]);
    const Json from_front = apart(with("add", first, SizeExpression(-pads[pair])));
    const Json place = below_last(apart(below_last(from_front)));
    rows = writer.insert(id, result.name + ":rows", "aten.index_select.default",
                         Json::array({rows, place}), {{"dim", d}}, shape, numbers, result.dtype);
  }
  writer.replace(id, "aten.view.default", Json::array({rows}), {{"size", result.shape}});
}

// Row i of the result is row i - n of the operand that begins at row n: it is taken modulo the
// operand's rows, so that it is in range where another operand has the row.
void rewrite_concatenated(RowWriter& writer, NodeId id, const BoundNode& bound) {
  const Node& node = writer.graph().node(id);
  const TensorInfo& result = writer.result(id);
  const SizeShape& shape = writer.shapes().of(writer.result_of(id));
  const std::int64_t given = bound.integer("dim");
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::size_t dim = index_of(given < 0 ? given + rank : given);
  const SizeShape line{shape[dim]};
  const Shape count{result.shape[dim]};
  SizeShape column_shape(shape.size() - dim, SizeExpression(1));
  Shape column(column_shape.size(), 1);
  column_shape.front() = line.front();
  column.front() = count.front();
  const std::string name = result.name + ":place";
  const Json row = writer.line(id, name, shape[dim]);
  Json rows;  // of the operands so far
  SizeExpression begin(0);
  for (const TensorId operand : node.inputs) {
    const SizeExpression& size = writer.shapes().of(operand)[dim];
    if (size.constant() == 0) continue;
    const bool is_first = rows.is_null();
    const Json from =
        is_first ? row : writer.arithmetic(id, name, "add", row, begin * -1, line, count);
    const Json place = writer.arithmetic(id, name, "remainder", from, size, line, count);
    const Json taken = writer.insert(id, result.name + ":rows", "aten.index_select.default",
                                     Json::array({writer.mention(operand), place}), {{"dim", dim}},
                                     shape, result.shape, result.dtype);
    if (is_first) {
      rows = taken;
    } else {
      const Json is_before = writer.insert(id, name, "aten.lt.Scalar", Json::array({from}),
                                           {{"other", 0}}, line, count, DType::kBool);
      const Json seen = writer.insert(id, name, "aten.view.default", Json::array({is_before}),
                                      {{"size", column}}, column_shape, column, DType::kBool);
      rows = writer.insert(id, result.name + ":rows", "aten.where.self",
                           Json::array({seen, rows, taken}), Json::object(), shape, result.shape,
                           result.dtype);
    }
    begin = begin + size;
  }
  writer.replace(id, "aten.view.default", Json::array({rows}), {{"size", result.shape}});
}

}  // namespace npu::padding

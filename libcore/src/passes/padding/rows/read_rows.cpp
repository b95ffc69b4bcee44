// SPDX-License-Identifier: Apache-2.0
// Rows that are counted from the end of the valid ones: at indices that are computed of their
// number. O(readers of a state).
#include <string>
#include <utility>

#include "passes/padding/rows/rewritings.hpp"
#include "passes/padding/state_readers.hpp"

namespace npu::padding {
namespace {

// The rows of an index in place of those of a slice, or the one of a select.
void read_rows(RowWriter& writer, NodeId id, std::int32_t dim, const Json& index) {
  const Node& node = writer.graph().node(id);
  const TensorId operand = node.inputs.front();
  const TensorInfo& result = writer.graph().tensor(node.outputs.front());
  Json inputs = Json::array({writer.mention(operand), index});
  Json attrs{{"dim", dim}};
  SizeShape shape = writer.shapes().of(operand);
  Shape numbers = writer.graph().tensor(operand).shape;
  if (result.shape.size() == numbers.size()) {
    return writer.replace(id, "aten.index_select.default", std::move(inputs), std::move(attrs));
  }
  shape[index_of(dim)] = SizeExpression(1);
  numbers[index_of(dim)] = 1;
  const Json row = writer.insert(id, result.name + ":row", "aten.index_select.default",
                                 std::move(inputs), std::move(attrs), shape, numbers, result.dtype);
  writer.replace(id, "aten.squeeze.dim", Json::array({row}), {{"dim", dim}});
}

}  // namespace

void rewrite_last_row(RowWriter& writer, NodeId id, const NodeRule& rule) {
  const std::int32_t dim = rule.needs.back().places.front().dim;
  const TensorId operand = writer.graph().node(id).inputs.front();
  read_rows(writer, id, dim, writer.nodes().last_row(writer.shapes().of(operand)[index_of(dim)]));
}

void rewrite_from_end(RowWriter& writer, NodeId id, const NodeRule::RowsFromEnd& rows) {
  const TensorId operand = writer.graph().node(id).inputs.front();
  const SizeExpression first = writer.shapes().of(operand)[index_of(rows.dim)] - rows.before;
  read_rows(writer, id, rows.dim, writer.nodes().rows_from(first, rows.count));
}

void rewrite_last_state(RowWriter& writer, NodeId id, std::int32_t time) {
  const Node& node = writer.graph().node(id);
  const TensorId rows = node.outputs.front();
  const StateReaders readers = state_readers(writer.graph(), node);
  const Json inputs = Json::array(
      {writer.mention(rows), writer.nodes().last_row(writer.shapes().of(rows)[index_of(time)])});
  const Json dim{{"dim", time}};
  SizeShape shape = writer.shapes().of(rows);
  Shape numbers = writer.graph().tensor(rows).shape;
  shape[index_of(time)] = SizeExpression(1);
  numbers[index_of(time)] = 1;
  const auto row_before = [&](NodeId reader) {
    const TensorInfo& result = writer.graph().tensor(writer.graph().node(reader).outputs.front());
    return writer.insert(reader, result.name + ":row", "aten.index_select.default", inputs, dim,
                         shape, numbers, result.dtype);
  };
  for (const NodeId reader : readers.whole) {
    if (time == 0) {
      writer.replace(reader, "aten.index_select.default", inputs, dim);
    } else {
      const Json row = row_before(reader);
      writer.replace(reader, "aten.transpose.int", Json::array({row}), {{"dim0", 0}, {"dim1", 1}});
    }
  }
  for (const NodeId reader : readers.last_layer) {
    const Json row = row_before(reader);
    writer.replace(reader, "aten.squeeze.dim", Json::array({row}), dim);
  }
}

}  // namespace npu::padding

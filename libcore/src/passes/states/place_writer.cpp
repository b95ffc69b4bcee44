// SPDX-License-Identifier: Apache-2.0
// Writes biases of attention scores by position anew, from the scores backwards: keys that are not
// used get what the last used one has, so that every number is one that the model itself computes
// in the same step, and what it chooses rows of tables by stays in their range. Where a model
// computes all rows and cuts off all but the new ones, only these are computed. O(nodes).
#include "passes/states/place_writer.hpp"

#include "ops/op_catalogue.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {

std::optional<Json> PlaceWriter::tensor(TensorId id, std::string& reason) {
  return tensor(id, NewRows(model_.shape(id).size(), false), reason);
}

std::optional<Json> PlaceWriter::tensor(TensorId id, const NewRows& rows, std::string& reason) {
  const auto found = made_.find({id.value, rows});
  if (found != made_.end()) return found->second;
  auto result = made(id, rows, reason);
  if (result) made_.emplace(std::pair{id.value, rows}, *result);
  return result;
}

std::optional<PlaceStep> PlaceWriter::step_of(const Node& node) const {
  const OpInfo* op = find_op(node.op_type);
  BindError error;
  const auto bound =
      op == nullptr ? std::nullopt : BoundNode::try_bind(model_.graph(), node, op->schema, error);
  return bound ? place_step(model_, *bound, tensors_) : std::nullopt;
}

std::optional<Json> PlaceWriter::made(TensorId id, const NewRows& rows, std::string& reason) {
  const TensorInfo& info = model_.graph().tensor(id);
  SizeShape shape = model_.shape(id);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (rows[d]) shape[d] = model_.caches().fresh;
  }
  if (tensors_.stays(id)) return writer_.mention(info.name, shape, info.dtype);
  const Formula* formula = tensors_.formula(id);
  if (formula != nullptr && (formula->integer || formula->number())) {
    return writer_.tensor(info, *formula, shape, rows, reason);
  }
  const Node& node = model_.graph().node(info.producer);
  const auto step = step_of(node);
  if (!step) {
    reason = "has '" + short_text(info.name) + "' in it, which does not follow from positions";
    return std::nullopt;
  }
  Json inputs = Json::array();
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorId input = node.inputs[i];
    if (step->mask == i) {
      auto mask = writer_.tensor(input, *tensors_.formula(input), reason);
      if (!mask) return std::nullopt;
      inputs.push_back(*std::move(mask));
      continue;
    }
    const SizeShape& from = model_.shape(input);
    NewRows taken(from.size(), false);
    for (std::size_t d = 0; d < from.size(); ++d) {
      const std::int32_t to = step->from[i][d];
      taken[d] = model_.has_past(from[d]) &&
                 ((step->takes_new && d == step->dim) || (to >= 0 && rows[index_of(to)]));
    }
    auto operand = tensor(input, taken, reason);
    if (!operand) return std::nullopt;
    inputs.push_back(*std::move(operand));
  }
  if (step->kind == PlaceStep::Kind::kRows) return inputs[0];
  if (step->kind == PlaceStep::Kind::kTable)
    return table_rows(node, *step, rows, inputs[0], reason);
  const Json sizes = writer_.shape(shape);
  writer_.release(node);
  if (step->kind == PlaceStep::Kind::kReshape) {
    return writer_.add(info.name, "aten.reshape.default", inputs, {{"shape", sizes}}, sizes,
                       info.dtype);
  }
  if (step->kind == PlaceStep::Kind::kExpand) {
    return writer_.add(info.name, "aten.expand.default", inputs, {{"size", sizes}}, sizes,
                       info.dtype);
  }
  return writer_.add(info.name, node.op_type, inputs, model_.attrs(node), sizes, info.dtype);
}

std::optional<Json> PlaceWriter::table_rows(const Node& node, const PlaceStep& step,
                                            const NewRows& new_rows, const Json& table,
                                            std::string& reason) {
  const TensorInfo& info = model_.graph().tensor(node.outputs[0]);
  SizeShape shape = model_.shape(node.outputs[0]);
  const SizeExpression& count = model_.shape(node.inputs[0])[step.dim];
  const auto first = writer_.when_full(step.start).constant();
  const auto end = writer_.when_full(step.start + shape[step.dim]).constant();
  const auto all = count.constant();
  if ((first && *first < 0) || (end && all && *end > *all)) {
    reason = "is cut from a table of " + count.text() + " rows, fewer than the capacity needs";
    return std::nullopt;
  }
  Formula place = integer_formula(1, step.start);
  if (shape[step.dim] != SizeExpression(1)) place.integer->factors[0] = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (new_rows[d]) shape[d] = model_.caches().fresh;
  }
  TensorInfo index;
  index.name = info.name + ".rows";
  index.dtype = DType::kInt64;
  const auto rows = writer_.tensor(index, place, {shape[step.dim]}, {new_rows[step.dim]}, reason);
  if (!rows) return std::nullopt;
  writer_.release(node);
  return writer_.add(info.name, "aten.index_select.default", Json::array({table, *rows}),
                     {{"dim", step.dim}}, writer_.shape(shape), info.dtype);
}

}  // namespace npu::states

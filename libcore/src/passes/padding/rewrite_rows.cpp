// SPDX-License-Identifier: Apache-2.0
// Ops that depend on the number of rows, in a form that has it as an operand.
//
// Each node is replaced where it stands, and keeps its name and that of its result, so that
// nothing else changes. O(nodes) for a round.
#include "passes/padding/rewrite_rows.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/mention_form.hpp"
#include "ops/moved_ops.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/rule_parts.hpp"
#include "passes/padding/size_nodes.hpp"
#include "passes/padding/state_readers.hpp"

namespace npu::padding {
namespace {

class RowRewriter {
 public:
  RowRewriter(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes, AddedSizes& added)
      : graph_(graph),
        sizes_(sizes),
        shapes_(shapes),
        added_(added),
        editor_(graph),
        nodes_(graph, sizes, editor_) {}

  void rewrite(NodeId id, const NodeRule& rule) {
    const Node& node = graph_.node(id);
    const BoundNode bound(graph_, node, find_op(node.op_type)->schema);
    switch (rule.rewriting) {
      case Rewriting::kMean:
        return rewrite_mean(id);
      case Rewriting::kVariance:
        return rewrite_variance(id, variance_correction(bound));
      case Rewriting::kLastRow:
        return rewrite_last_row(id, rule);
      case Rewriting::kRowsFromEnd:
        return rewrite_from_end(id, rule.from_end);
      case Rewriting::kLastState:
        return rewrite_last_state(id, bound.boolean("batch_first") ? 1 : 0);
      case Rewriting::kIndices:
        return guard_indices(id, rule);
      case Rewriting::kAttentionMask:
        return add_attention_mask(id, bound);
      case Rewriting::kMovedRows:
        return rewrite_view(id, rule);
      case Rewriting::kReflected:
        return rewrite_reflected(id, bound);
      case Rewriting::kResampled:
        return rewrite_resampled(id, bound.boolean("align_corners"));
      case Rewriting::kNone:
        return;
    }
  }

  void commit() { nodes_.commit(); }

 private:
  Json mention(TensorId id) const { return mention_json(graph_, id, MentionForm::kAllButWeights); }

  // The node as the document has it, with another op; the last one of those that replace it.
  void replace(NodeId id, const std::string& op_type, Json inputs, Json attrs) {
    Json node = editor_.json(id);
    node["op_type"] = op_type;
    node["inputs"] = std::move(inputs);
    node["attrs"] = std::move(attrs);
    nodes_.insert_before(id, std::move(node));
    editor_.remove(id);
  }

  // A node in front of another one; the mention of its result.
  Json insert(NodeId before, const std::string& wanted, const std::string& op_type, Json inputs,
              Json attrs, const SizeShape& shape, const Shape& numbers, DType dtype) {
    const std::string name = editor_.unique_name(wanted);
    nodes_.insert_before(before, {{"name", name},
                                  {"op_type", op_type},
                                  {"inputs", std::move(inputs)},
                                  {"outputs", Json::array({tensor_mention(name, numbers, dtype)})},
                                  {"attrs", std::move(attrs)}});
    added_[name] = shape;
    return tensor_mention(name, numbers, dtype, {name, 0});
  }

  static std::string type_text(DType dtype) { return std::string(dtype_name(dtype)); }

  void rewrite_mean(NodeId id) {
    const Reduced reduced = reduced_by(id);
    replace(id, "aten.div.Tensor",
            Json::array({sum_of(id, mention(graph_.node(id).inputs.front()), reduced),
                         number(reduced.count, result(id).dtype)}),
            Json::object());
  }

  // By its definition. The mean in it is one for the next round.
  void rewrite_variance(NodeId id, double correction) {
    const Reduced reduced = reduced_by(id);
    const TensorId operand = graph_.node(id).inputs.front();
    const TensorInfo& source = graph_.tensor(operand);
    SizeShape kept = shapes_.of(operand);
    Shape numbers = source.shape;
    for (const Json& dim : reduced.dims) {
      kept[dim.get<std::size_t>()] = SizeExpression(1);
      numbers[dim.get<std::size_t>()] = 1;
    }
    const std::string& name = result(id).name;
    const auto each = [&](const char* what, const char* op_type, Json a, Json b) {
      return insert(id, name + what, op_type, Json::array({std::move(a), std::move(b)}),
                    Json::object(), shapes_.of(operand), source.shape, source.dtype);
    };
    const Json mean =
        insert(id, name + ":mean", "aten.mean.dim", Json::array({mention(operand)}),
               {{"dim", reduced.dims}, {"keepdim", true}}, kept, numbers, source.dtype);
    const Json above = each(":above", "aten.sub.Tensor", mention(operand), mean);
    const Json sum = sum_of(id, each(":square", "aten.mul.Tensor", above, above), reduced);
    const Json count =
        number(reduced.count - static_cast<std::int64_t>(correction), result(id).dtype);
    if (functional_name(graph_.node(id).op_type) == "var") {
      return replace(id, "aten.div.Tensor", Json::array({sum, count}), Json::object());
    }
    const Json variance =
        insert(id, name + ":variance", "aten.div.Tensor", Json::array({sum, count}), Json::object(),
               shapes_.of(result_of(id)), result(id).shape, result(id).dtype);
    replace(id, "aten.sqrt.default", Json::array({variance}), Json::object());
  }

  TensorId result_of(NodeId id) const { return graph_.node(id).outputs.front(); }
  const TensorInfo& result(NodeId id) const { return graph_.tensor(result_of(id)); }

  // Dimensions that a node reduces, whether they stay as 1, and how many rows that are.
  struct Reduced {
    Json dims = Json::array();
    bool keeps = false;
    SizeExpression count{1};
  };

  Reduced reduced_by(NodeId id) const {
    const Node& node = graph_.node(id);
    const SizeShape& shape = shapes_.of(node.inputs.front());
    Reduced reduced;
    // All that are not in the result are reduced, where it has as many dimensions they are 1.
    reduced.keeps = result(id).shape.size() == shape.size();
    std::vector<char> is_reduced(shape.size(), 0);
    for (const std::int64_t dim : dims_of(node)) is_reduced[index_of(dim)] = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (is_reduced[d] == 0) continue;
      reduced.dims.push_back(d);
      reduced.count = reduced.count * shape[d];
    }
    return reduced;
  }

  Json sum_of(NodeId id, Json operand, const Reduced& reduced) {
    return insert(id, result(id).name + ":sum", "aten.sum.dim_IntList",
                  Json::array({std::move(operand)}),
                  {{"dim", reduced.dims}, {"keepdim", reduced.keeps}}, shapes_.of(result_of(id)),
                  result(id).shape, result(id).dtype);
  }

  // A size as a float.
  Json number(const SizeExpression& size, DType dtype) {
    const Json rows = nodes_.value(size);
    return nodes_.add("size." + size.text() + "." + type_text(dtype), "aten._to_copy.default",
                      Json::array({rows}), {{"dtype", type_text(dtype)}}, {}, dtype);
  }

  std::vector<std::int64_t> dims_of(const Node& node) const {
    const auto rank = static_cast<std::int64_t>(graph_.tensor(node.inputs.front()).shape.size());
    std::vector<std::int64_t> dims;
    const bool is_pool = spatial_rank(node.op_type) > 0;
    const BoundNode bound(graph_, node, find_op(node.op_type)->schema);
    if (const BoundArgument* found = is_pool ? nullptr : bound.find("dim");
        found != nullptr && found->kind == BoundArgument::Kind::kValue && !found->value.is_null()) {
      dims = bound.integers("dim");
    }
    for (std::int64_t& dim : dims) dim += dim < 0 ? rank : 0;
    if (!dims.empty()) return dims;
    for (std::int64_t d = is_pool ? rank - spatial_rank(node.op_type) : 0; d < rank; ++d) {
      dims.push_back(d);
    }
    return dims;
  }

  void rewrite_last_row(NodeId id, const NodeRule& rule) {
    const std::int32_t dim = rule.needs.back().places.front().dim;
    const TensorId operand = graph_.node(id).inputs.front();
    read_rows(id, dim, nodes_.last_row(shapes_.of(operand)[index_of(dim)]));
  }

  void rewrite_from_end(NodeId id, const NodeRule::RowsFromEnd& rows) {
    const TensorId operand = graph_.node(id).inputs.front();
    const SizeExpression first = shapes_.of(operand)[index_of(rows.dim)] - rows.before;
    read_rows(id, rows.dim, nodes_.rows_from(first, rows.count));
  }

  // The rows of an index in place of those of a slice, or the one of a select.
  void read_rows(NodeId id, std::int32_t dim, const Json& index) {
    const Node& node = graph_.node(id);
    const TensorId operand = node.inputs.front();
    const TensorInfo& result = graph_.tensor(node.outputs.front());
    Json inputs = Json::array({mention(operand), index});
    Json attrs{{"dim", dim}};
    SizeShape shape = shapes_.of(operand);
    Shape numbers = graph_.tensor(operand).shape;
    if (result.shape.size() == numbers.size()) {
      return replace(id, "aten.index_select.default", std::move(inputs), std::move(attrs));
    }
    shape[index_of(dim)] = SizeExpression(1);
    numbers[index_of(dim)] = 1;
    const Json row = insert(id, result.name + ":row", "aten.index_select.default",
                            std::move(inputs), std::move(attrs), shape, numbers, result.dtype);
    replace(id, "aten.squeeze.dim", Json::array({row}), {{"dim", dim}});
  }

  // A recurrence gives its state after each step: the last one is the last row.
  void rewrite_last_state(NodeId id, std::int32_t time) {
    const Node& node = graph_.node(id);
    const TensorId rows = node.outputs.front();
    const StateReaders readers = state_readers(graph_, node);
    const Json inputs =
        Json::array({mention(rows), nodes_.last_row(shapes_.of(rows)[index_of(time)])});
    const Json dim{{"dim", time}};
    SizeShape shape = shapes_.of(rows);
    Shape numbers = graph_.tensor(rows).shape;
    shape[index_of(time)] = SizeExpression(1);
    numbers[index_of(time)] = 1;
    const auto row_before = [&](NodeId reader) {
      const TensorInfo& result = graph_.tensor(graph_.node(reader).outputs.front());
      return insert(reader, result.name + ":row", "aten.index_select.default", inputs, dim, shape,
                    numbers, result.dtype);
    };
    for (const NodeId reader : readers.whole) {
      if (time == 0) {
        replace(reader, "aten.index_select.default", inputs, dim);
      } else {
        const Json row = row_before(reader);
        replace(reader, "aten.transpose.int", Json::array({row}), {{"dim0", 0}, {"dim1", 1}});
      }
    }
    for (const NodeId reader : readers.last_layer) {
      const Json row = row_before(reader);
      replace(reader, "aten.squeeze.dim", Json::array({row}), dim);
    }
  }

  // What is_valid_row knows again. Nodes come in list order, so the guard of the first reader of an
  // index stands in front of the others.
  void guard_indices(NodeId id, const NodeRule& rule) {
    const Node& node = graph_.node(id);
    for (const auto& [operand, size] : rule.unguarded) {
      const TensorId index = node.inputs[index_of(operand)];
      const TensorInfo& tensor = graph_.tensor(index);
      std::string& known = guards_[{index, size.text()}];
      if (!known.empty()) {
        editor_.set_operand(id, index_of(operand), known, {known, 0});
        continue;
      }
      const auto add = [&](const char* suffix, const char* op_type, Json inputs, Json attrs,
                           bool is_bool) {
        return insert(id, tensor.name + suffix, op_type, std::move(inputs), std::move(attrs),
                      shapes_.of(index), tensor.shape, is_bool ? DType::kBool : tensor.dtype);
      };
      const Json count = nodes_.value(size);
      const Json given = mention(index);
      const Json is_negative =
          add(":negative", "aten.lt.Scalar", Json::array({given}), {{"other", 0}}, true);
      const Json from_end =
          add(":from_end", "aten.add.Tensor", Json::array({given, count}), Json::object(), false);
      const Json row = add(":row", "aten.where.self", Json::array({is_negative, from_end, given}),
                           Json::object(), false);
      const Json is_below =
          add(":below", "aten.lt.Scalar", Json::array({row}), {{"other", 0}}, true);
      const Json is_behind =
          add(":behind", "aten.ge.Tensor", Json::array({row, count}), Json::object(), true);
      const Json is_outside = add(":outside", "aten.logical_or.default",
                                  Json::array({is_below, is_behind}), Json::object(), true);
      const std::int64_t capacity = size.evaluate(sizes_.capacities());
      const Json guarded = add(":guarded", "aten.masked_fill.Scalar",
                               Json::array({row, is_outside}), {{"value", capacity}}, false);
      known = guarded["name"].get<std::string>();
      editor_.set_operand(id, index_of(operand), known, {known, 0});
    }
  }

  void add_attention_mask(NodeId id, const BoundNode& bound) {
    const Node& node = graph_.node(id);
    const TensorId key = *bound.tensor("key");
    const SizeShape& shape = shapes_.of(key);
    const SizeExpression& keys = shape[shape.size() - 2];
    const std::int64_t capacity = graph_.tensor(key).shape[shape.size() - 2];
    Shape numbers(shape.size(), 1);
    numbers.back() = capacity;
    const std::string name = "keys." + keys.text() + "." + std::to_string(numbers.size());
    SizeShape mask(shape.size(), SizeExpression(1));
    mask.back() = keys;
    added_[name] = mask;
    const Json ones =
        nodes_.add(name, "aten.ones.default", Json::array(),
                   {{"size", numbers}, {"dtype", type_text(DType::kBool)}}, numbers, DType::kBool);
    Json inputs = Json::array();
    for (const TensorId input : node.inputs) inputs.push_back(mention(input));
    inputs.push_back(ones);
    Json attrs = node.attrs();
    attrs.erase("attn_mask");
    if (Json* none = find_member(attrs, "_none_args"); none != nullptr && none->is_array()) {
      Json rest = Json::array();
      for (const Json& argument : *none) {
        if (argument != "attn_mask") rest.push_back(argument);
      }
      if (rest.empty()) {
        attrs.erase("_none_args");
      } else {
        *none = std::move(rest);
      }
    }
    replace(id, node.op_type, std::move(inputs), std::move(attrs));
  }

  // Each element of the result where it stands in a run without padding: its number among the
  // valid ones of the result, and what that is as a place of the operand.
  void rewrite_view(NodeId id, const NodeRule& rule) {
    const TensorId operand = graph_.node(id).inputs.front();
    const TensorId output = graph_.node(id).outputs.front();
    const TensorInfo& result = graph_.tensor(output);
    SizeShape shape = shapes_.of(operand);
    Shape numbers = graph_.tensor(operand).shape;
    Json rows = mention(operand);
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
      const auto [to_first, to_last] = to(shapes_.of(output));
      const Json places = places_of(id, SizeShape(first, last), SizeShape(to_first, to_last));
      Json inputs = Json::array({rows});
      for (const Json& place : places) inputs.push_back(place);
      std::vector<bool> is_none(group->from_begin, true);
      is_none.resize(group->from_end, false);
      shape.insert(shape.erase(first, last), to_first, to_last);
      const auto [number, number_end] = from(numbers);
      const auto [to_number, to_number_end] = to(result.shape);
      numbers.insert(numbers.erase(number, number_end), to_number, to_number_end);
      rows = insert(id, result.name + ":rows", "aten.index.Tensor", std::move(inputs),
                    {{"_tensor_list_sizes", Json::array({places.size()})},
                     {"_tensor_list_none_masks", Json::array({is_none})}},
                    shape, numbers, result.dtype);
    }
    replace(id, "aten.view.default", Json::array({rows}), {{"size", result.shape}});
  }

  // For each dimension of `from` an index of the shape `to`: where the elements of a view from the
  // one to the other stand. Known ones stand in front of earlier nodes.
  Json places_of(NodeId before, const SizeShape& from, const SizeShape& to) {
    std::string text;
    for (const SizeExpression& size : from) text += size.text() + ",";
    for (const SizeExpression& size : to) text += ":" + size.text();
    Json& known = places_[text];
    if (!known.is_null()) return known;
    const std::string name = graph_.tensor(graph_.node(before).outputs.front()).name + ":place";
    SizeShape shape;
    Shape numbers;
    Json place;
    // In the order of the dimensions: the numbers of those behind times how many there are, plus.
    for (const SizeExpression& size : to) {
      const std::int64_t count = size.evaluate(sizes_.capacities());
      const Json line = insert(before, name, "aten.arange.default", Json::array(),
                               {{"end", count}, {"dtype", type_text(DType::kInt64)}}, {size},
                               {count}, DType::kInt64);
      if (place.is_null()) {
        place = line;
      } else {
        place = arithmetic(before, name, "mul", place, size, shape, numbers);
        shape.emplace_back(1);
        numbers.push_back(1);
        place = insert(before, name, "aten.view.default", Json::array({place}), {{"size", numbers}},
                       shape, numbers, DType::kInt64);
        shape.pop_back();
        numbers.pop_back();
      }
      shape.push_back(size);
      numbers.push_back(count);
      if (shape.size() > 1) {
        place = insert(before, name, "aten.add.Tensor", Json::array({place, line}), {{"alpha", 1}},
                       shape, numbers, DType::kInt64);
      }
    }
    Json places = Json::array();
    for (std::size_t d = from.size(); d-- > 0;) {
      if (d == 0) {
        places.insert(places.begin(), place);
        continue;
      }
      places.insert(places.begin(),
                    arithmetic(before, name, "remainder", place, from[d], shape, numbers));
      place = arithmetic(before, name, "floor_divide", place, from[d], shape, numbers);
    }
    known = places;
    return places;
  }

  // An op of a tensor and a size.
  Json arithmetic(NodeId before, const std::string& name, const std::string& op, const Json& left,
                  const SizeExpression& size, const SizeShape& shape, const Shape& numbers) {
    Json inputs = Json::array({left});
    Json attrs = Json::object();
    const auto number = size.constant();
    if (number) {
      attrs["other"] = *number;
    } else {
      inputs.push_back(nodes_.value(size));
    }
    const std::string overload = op == "floor_divide" ? ".default" : ".Tensor";
    return insert(before, name, "aten." + op + (number ? ".Scalar" : overload), std::move(inputs),
                  std::move(attrs), shape, numbers, DType::kInt64);
  }

  // Of n rows the last is reflected about n - 1, and the first about 0: n - 1 - |n - 1 - |i -
  // before||.
  void rewrite_reflected(NodeId id, const BoundNode& bound) {
    const TensorId operand = graph_.node(id).inputs.front();
    const TensorInfo& result = graph_.tensor(graph_.node(id).outputs.front());
    const auto pads = bound.integers(bound.find("pad") != nullptr ? "pad" : "padding");
    SizeShape shape = shapes_.of(operand);
    Shape numbers = graph_.tensor(operand).shape;
    Json rows = mention(operand);
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
        return arithmetic(id, name, op, left, size, line, count);
      };
      const auto apart = [&](const Json& left) {
        return insert(id, name, "aten.abs.default", Json::array({left}), Json::object(), line,
                      count, DType::kInt64);
      };
      const auto below_last = [&](const Json& left) {
        return with("add", with("mul", left, SizeExpression(-1)), last);
      };
      const Json first = insert(id, name, "aten.arange.default", Json::array(),
                                {{"end", numbers[d]}, {"dtype", type_text(DType::kInt64)}}, line,
                                count, DType::kInt64);
      const Json from_front = apart(with("add", first, SizeExpression(-pads[pair])));
      const Json place = below_last(apart(below_last(from_front)));
      rows = insert(id, result.name + ":rows", "aten.index_select.default",
                    Json::array({rows, place}), {{"dim", d}}, shape, numbers, result.dtype);
    }
    replace(id, "aten.view.default", Json::array({rows}), {{"size", result.shape}});
  }

  // One dimension after the other: the sum of the rows around each place times their weights.
  // Places are fractions of integers, so that rows and weights are right to the last bits.
  void rewrite_resampled(NodeId id, bool aligns) {
    const TensorId operand = graph_.node(id).inputs.front();
    const TensorId output = graph_.node(id).outputs.front();
    const TensorInfo& result = graph_.tensor(output);
    SizeShape shape = shapes_.of(operand);
    Shape numbers = graph_.tensor(operand).shape;
    const auto add = [&](const char* op, Json inputs, Json attrs) {
      return insert(id, result.name + ":part", op, std::move(inputs), std::move(attrs), shape,
                    numbers, result.dtype);
    };
    Json value = mention(operand);
    Json last;  // is to be added
    for (std::size_t d = 2; d < shape.size(); ++d) {
      const SizeExpression from = shape[d];
      const SizeExpression& to = shapes_.of(output)[d];
      if (sizes_.same(from, to)) continue;
      if (!last.is_null()) {
        value = add("aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
      }
      shape[d] = to;
      numbers[d] = result.shape[d];
      SizeShape column_shape(shape.size() - d, SizeExpression(1));
      Shape column(shape.size() - d, 1);
      column_shape.front() = to;
      column.front() = numbers[d];
      const Json source = std::exchange(value, Json());
      last = Json();
      for (const Tap& tap : taps_between(id, from, to, aligns)) {
        if (!last.is_null()) {
          value = value.is_null()
                      ? last
                      : add("aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
        }
        const Json rows =
            add("aten.index_select.default", Json::array({source, tap.row}), {{"dim", d}});
        const Json weight =
            insert(id, result.name + ":weight", "aten.view.default", Json::array({tap.weight}),
                   {{"size", column}}, column_shape, column, result.dtype);
        last = add("aten.mul.Tensor", Json::array({rows, weight}), Json::object());
      }
    }
    replace(id, "aten.add.Tensor", Json::array({value, last}), {{"alpha", 1}});
  }

  struct Tap {
    Json row;     ///< of the operand, for each result
    Json weight;  ///< likewise
  };

  // Result i lies at (2i + 1) * from / (2 * to) - 1/2, or at i * (from - 1) / (to - 1) where
  // corners are aligned: between two rows, or four of a cubic.
  std::vector<Tap> taps_between(NodeId before, const SizeExpression& from, const SizeExpression& to,
                                bool aligns) {
    const Node& node = graph_.node(before);
    const TensorInfo& result = graph_.tensor(node.outputs.front());
    const std::string name = result.name + ":place";
    const SizeShape shape{to};
    const Shape numbers{to.evaluate(sizes_.capacities())};
    const bool four = is_cubic(node.op_type);
    const auto add = [&](const char* op, Json inputs, Json attrs, DType dtype) {
      return insert(before, name, op, std::move(inputs), std::move(attrs), shape, numbers, dtype);
    };
    const auto with = [&](const char* op, const Json& left, const SizeExpression& size) {
      return arithmetic(before, name, op, left, size, shape, numbers);
    };
    const auto not_below = [&](const Json& left) {
      return add("aten.clamp.default", Json::array({left}), {{"min", 0}}, DType::kInt64);
    };
    const auto at_most = [&](const Json& left, const SizeExpression& size) {
      if (const auto number = size.constant()) {
        return add("aten.clamp.default", Json::array({left}), {{"max", *number}}, DType::kInt64);
      }
      return add("aten.minimum.default", Json::array({left, nodes_.value(size)}), Json::object(),
                 DType::kInt64);
    };
    const Json line =
        add("aten.arange.default", Json::array(),
            {{"end", numbers[0]}, {"dtype", type_text(DType::kInt64)}}, DType::kInt64);
    const SizeExpression least[] = {to - 1, SizeExpression(1)};
    const SizeExpression below = aligns ? SizeExpression::max(least) : SizeExpression(2) * to;
    Json above = with("mul", line, aligns ? from - 1 : SizeExpression(2) * from);
    // A cubic may begin in front of the first row: one row more, so that nothing is negative.
    if (!aligns)
      above = four ? with("add", above, from + to) : not_below(with("add", above, from - to));
    const Json base = with("floor_divide", above, below);
    const auto converted = [&](const Json& left, const SizeShape& own, const Shape& counts) {
      return insert(before, name, "aten._to_copy.default", Json::array({left}),
                    {{"dtype", type_text(result.dtype)}}, own, counts, result.dtype);
    };
    Json inputs = Json::array({converted(with("remainder", above, below), shape, numbers)});
    Json attrs = Json::object();
    if (const auto number = below.constant()) {
      attrs["other"] = *number;
    } else {
      inputs.push_back(converted(nodes_.value(below), {}, {}));
    }
    const Json part = add("aten.div.Tensor", std::move(inputs), std::move(attrs), result.dtype);
    const auto scalar = [&](const char* op, const Json& left, double other) {
      return add(op, Json::array({left}), {{"other", other}}, result.dtype);
    };
    const auto plus = [&](const Json& left, double other) {
      return scalar("aten.add.Scalar", left, other);
    };
    const auto times = [&](const Json& left, double other) {
      return scalar("aten.mul.Scalar", left, other);
    };
    const auto product = [&](const Json& left, const Json& right) {
      return add("aten.mul.Tensor", Json::array({left, right}), Json::object(), result.dtype);
    };
    const Json rest = plus(times(part, -1), 1);
    if (!four) {
      const Json first = at_most(base, from - 1);
      return {{first, rest}, {at_most(with("add", first, SizeExpression(1)), from - 1), part}};
    }
    // Keys' polynomials with a = -3/4, as PyTorch has them.
    constexpr double kA = -0.75;
    const auto near = [&](const Json& x) {
      return plus(product(product(plus(times(x, kA + 2), -kA - 3), x), x), 1);
    };
    const auto far = [&](const Json& x) {
      return plus(product(plus(product(plus(times(x, kA), -5 * kA), x), 8 * kA), x), -4 * kA);
    };
    std::vector<Tap> taps{
        {{}, far(plus(part, 1))}, {{}, near(part)}, {{}, near(rest)}, {{}, far(plus(rest, 1))}};
    std::int64_t at = aligns ? -1 : -2;
    for (Tap& tap : taps) {
      tap.row = at_most(not_below(with("add", base, SizeExpression(at++))), from - 1);
    }
    return taps;
  }

  Graph& graph_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  AddedSizes& added_;
  GraphEditor editor_;
  SizeNodes nodes_;
  std::map<std::string, Json>
      places_;  // of the elements of a view, by the sizes that it is between
  std::map<std::pair<TensorId, std::string>, std::string> guards_;  // of an index into a size
};

bool wants_rewriting(const Graph& graph, NodeId id, const PaddingAnalysis& analysis) {
  const NodeRule& rule = analysis.rules[id];
  if (rule.rewriting != Rewriting::kLastRow) return rule.rewriting != Rewriting::kNone;
  return !is_met(rule.needs.back(), graph.node(id), analysis.tails);
}

}  // namespace

bool rewrite_rows(Graph& graph, const PaddingAnalysis& analysis, const PaddedSizes& sizes,
                  const TensorSizes& shapes, AddedSizes& added) {
  std::vector<NodeId> wanted;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (wants_rewriting(graph, id, analysis)) wanted.push_back(id);
  }
  if (wanted.empty()) return false;
  RowRewriter rewriter(graph, sizes, shapes, added);
  for (const NodeId id : wanted) rewriter.rewrite(id, analysis.rules[id]);
  rewriter.commit();
  return true;
}

}  // namespace npu::padding

// SPDX-License-Identifier: Apache-2.0
// Rows that a view joins: `[B, S, W]` as `[B * S, W]`, which is how many models write a product,
// and multi-head attention writes its last one, `[S, B * H, W]` as `[S * B, H * W]`.
//
// Input:  a graph at its capacities, and the sizes of its tensors.
// Output: the same with `[B, S, W]` between the two views, where all nodes there treat rows alike.
// Forwards: which tensors are joined rows, and what they would be apart. Backwards: which of them a
// view that parts them asks for. Then these are written, and what nobody reads any more goes.
// O(nodes + operands).
#include "passes/padding/keep_rows_apart.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_view(std::string_view name) { return is_one_of(name, {"view", "reshape", "_unsafe_view"}); }

/// A tensor whose first dimension is several, joined.
struct JoinedRows {
  SizeShape leading;  ///< the dimensions that the first one is
  Shape numbers;      ///< the same at the capacities
  TensorId source;    ///< the same rows apart; invalid: what a node gives that is to be written
};

class RowSeparator {
 public:
  RowSeparator(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes, AddedSizes& added)
      : graph_(graph), sizes_(sizes), shapes_(shapes), added_(added) {}

  bool run() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) look_at(id);
    if (parted_.empty()) return false;
    find_needed();
    GraphEditor editor(graph_);
    for (const NodeId id : needed_) write_apart(editor, id);
    for (const NodeId id : parted_) {
      Json view = editor.json(id);
      view["inputs"] = Json::array({apart(node(id).inputs.front())});
      editor.insert_before(id, std::move(view));
      editor.remove(id);
    }
    remove_unread(editor);
    editor.commit();
    return true;
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  const SizeShape& sizes_of(TensorId id) const { return shapes_.of(id); }
  bool is_joined(TensorId id) const { return joined_.contains(id); }

  bool same(const SizeShape& a, std::size_t first, const SizeShape& b, std::size_t other,
            std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (!sizes_.same(a[first + i], b[other + i])) return false;
    }
    return true;
  }

  void look_at(NodeId id) {
    const Node& at = node(id);
    if (at.outputs.size() != 1 || at.inputs.empty()) return;
    const std::string_view name = functional_name(at.op_type);
    const TensorId operand = at.inputs.front();
    const TensorId result = at.outputs.front();
    if (!is_joined(operand) && (is_view(name) || name == "flatten")) {
      auto rows = joins(operand, result);
      if (rows && !rows->source.valid()) moved_.push_back(id);
      if (rows) joined_.emplace(result, std::move(*rows));
      return;
    }
    if (is_view(name) && parts(operand, result)) {
      parted_.insert(id);
      return;
    }
    const auto first = std::find_if(at.inputs.begin(), at.inputs.end(),
                                    [&](TensorId input) { return is_joined(input); });
    if (first == at.inputs.end() || !treats_rows_alike(at, name, joined_.at(*first))) return;
    JoinedRows rows = joined_.at(*first);
    rows.source = {};
    joined_.emplace(result, std::move(rows));
    moved_.push_back(id);
  }

  // The leading dimensions of an operand that a view joins, if one that varies is behind others. Of
  // the last of them it may take a part, `[S, B * 4, W]` as `[S * B, 4 * W]`, or join others
  // behind.
  std::optional<JoinedRows> joins(TensorId operand, TensorId result) const {
    const SizeShape& from = sizes_of(operand);
    const SizeShape& to = sizes_of(result);
    if (to.empty()) return std::nullopt;
    JoinedRows rows{};
    SizeExpression count(1);
    bool mixes = false;
    for (std::size_t d = 0; d < from.size() && !sizes_.same(count, to.front()); ++d) {
      const SizeExpression part = part_of(from[d], count, to.front());
      mixes = mixes || (shapes_.varies(operand, d) && count.constant() != 1);
      count = count * part;
      rows.leading.push_back(part);
      rows.numbers.push_back(part.evaluate(sizes_.capacities()));
    }
    if (!mixes || !sizes_.same(count, to.front())) return std::nullopt;
    const std::size_t leading = rows.leading.size();
    const bool is_apart = from.size() + 1 == leading + to.size() &&
                          sizes_.same(rows.leading.back(), from[leading - 1]) &&
                          same(from, leading, to, 1, to.size() - 1);
    if (is_apart) rows.source = operand;
    return rows;
  }

  // What a dimension has of rows of which `before` lie in front of it: all, or all but a factor.
  SizeExpression part_of(const SizeExpression& size, const SizeExpression& before,
                         const SizeExpression& rows) const {
    const std::int64_t all = (before * size).evaluate(sizes_.capacities());
    const std::int64_t wanted = rows.evaluate(sizes_.capacities());
    if (wanted == 0 || all <= wanted || all % wanted != 0) return size;
    const SizeExpression part = size.floor_divide(all / wanted);
    return sizes_.same(part * (all / wanted), size) ? part : size;
  }

  bool parts(TensorId operand, TensorId result) const {
    const auto rows = joined_.find(operand);
    if (rows == joined_.end()) return false;
    const SizeShape& leading = rows->second.leading;
    const SizeShape& to = sizes_of(result);
    return to.size() >= leading.size() && same(leading, 0, to, 0, leading.size());
  }

  // Whether a node gives each of the joined rows from the same row, whatever dimensions rows have.
  bool treats_rows_alike(const Node& at, std::string_view name, const JoinedRows& rows) const {
    const SizeShape& to = sizes_of(at.outputs.front());
    const auto is_row = [&](std::size_t operand) {
      const auto found = joined_.find(at.inputs[operand]);
      return found != joined_.end() && found->second.leading.size() == rows.leading.size() &&
             same(found->second.leading, 0, rows.leading, 0, rows.leading.size());
    };
    const auto are_rest_plain = [&](std::size_t from) {
      return std::none_of(at.inputs.begin() + static_cast<std::ptrdiff_t>(from), at.inputs.end(),
                          [&](TensorId input) { return is_joined(input); });
    };
    SizeExpression count(1);
    for (const SizeExpression& each : rows.leading) count = count * each;
    if (to.empty() || !sizes_.same(to.front(), count)) return false;
    if (is_view(name)) return true;
    if (name == "linear" || name == "mm" || name == "matmul") {
      return is_row(0) && are_rest_plain(1) && sizes_of(at.inputs[1]).size() == 2;
    }
    if (name == "addmm") {
      return at.inputs.size() == 3 && is_row(1) && are_rest_plain(2) && suits_rows(at, 0, is_row) &&
             is_one(at.attrs(), "alpha") && is_one(at.attrs(), "beta");
    }
    if (name == "embedding") return at.inputs.size() == 2 && is_row(1) && !is_joined(at.inputs[0]);
    if (name == "layer_norm" || name == "rms_norm") {
      const Json* normalized = member_list(at.attrs(), "normalized_shape");
      return is_row(0) && are_rest_plain(1) && normalized != nullptr &&
             normalized->size() < to.size();
    }
    if (is_one_of(name, {"softmax", "_softmax", "log_softmax", "_log_softmax", "slice"})) {
      const auto dim = member_integer(at.attrs(), "dim");
      return is_row(0) && dim && *dim != 0 && *dim + static_cast<std::int64_t>(to.size()) != 0;
    }
    const OpInfo* op = find_op(at.op_type);
    if (op == nullptr || name == "prelu") return false;
    if (op->kind != OpKind::kElementwise && op->kind != OpKind::kBroadcast) return false;
    for (std::size_t i = 0; i < at.inputs.size(); ++i) {
      if (!suits_rows(at, i, is_row)) return false;
    }
    return true;
  }

  // Rows, or what is read alike for every row.
  template <typename IsRow>
  bool suits_rows(const Node& at, std::size_t operand, const IsRow& is_row) const {
    if (is_row(operand)) return true;
    if (is_joined(at.inputs[operand])) return false;
    const SizeShape& shape = sizes_of(at.inputs[operand]);
    const std::size_t rank = sizes_of(at.outputs.front()).size();
    return shape.size() < rank || (shape.size() == rank && shape.front().constant() == 1);
  }

  static bool is_one(const Json& attrs, std::string_view key) {
    const Json* value = find_member(attrs, key);
    return value == nullptr || *value == 1;
  }

  void find_needed() {
    for (auto id = moved_.rbegin(); id != moved_.rend(); ++id) {
      const auto& readers = graph_.tensor(node(*id).outputs.front()).consumers;
      if (std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
            return parted_.contains(reader) || needed_.contains(reader);
          })) {
        needed_.insert(*id);
      }
    }
  }

  Json apart(TensorId joined) const {
    const JoinedRows& rows = joined_.at(joined);
    if (rows.source.valid()) {
      return mention_json(graph_, rows.source, MentionForm::kAllButWeights);
    }
    return written_.at(joined);
  }

  void write_apart(GraphEditor& editor, NodeId id) {
    const Node& at = node(id);
    const std::string_view name = functional_name(at.op_type);
    const TensorId result = at.outputs.front();
    Json inputs = Json::array();
    for (const TensorId input : at.inputs) {
      inputs.push_back(is_joined(input) ? apart(input)
                                        : mention_json(graph_, input, MentionForm::kAllButWeights));
    }
    Json attrs = at.attrs();
    std::string op_type = at.op_type;
    const std::size_t more = joined_.at(result).leading.size() - 1;
    if (is_view(name) || name == "flatten") {
      op_type = "aten.view.default";
      attrs = {{"size", shape_apart(result)}};
    } else if (Json* dim = find_member(attrs, "dim"); dim != nullptr && *dim > 0) {
      *dim = dim->get<std::int64_t>() + static_cast<std::int64_t>(more);
    } else if (name == "mm" || name == "addmm") {
      op_type = "aten.matmul.default";
      attrs = Json::object();
    }
    if (name == "addmm") {
      const Json product = insert(editor, id, ":product", op_type,
                                  Json::array({inputs[1], inputs[2]}), std::move(attrs));
      op_type = "aten.add.Tensor";
      inputs = Json::array({product, inputs[0]});
      attrs = Json::object();
    }
    written_[result] = insert(editor, id, ":rows", op_type, std::move(inputs), std::move(attrs));
  }

  Shape shape_apart(TensorId joined) const {
    Shape shape = joined_.at(joined).numbers;
    const Shape& whole = graph_.tensor(joined).shape;
    shape.insert(shape.end(), whole.begin() + 1, whole.end());
    return shape;
  }

  // A node in front of another one whose result is that one's, with rows apart; its mention.
  Json insert(GraphEditor& editor, NodeId before, const char* suffix, const std::string& op_type,
              Json inputs, Json attrs) {
    const TensorId joined = node(before).outputs.front();
    const DType dtype = graph_.tensor(joined).dtype;
    const Shape shape = shape_apart(joined);
    const std::string name = editor.unique_name(graph_.tensor(joined).name + suffix);
    editor.insert_before(before, {{"name", name},
                                  {"op_type", op_type},
                                  {"inputs", std::move(inputs)},
                                  {"outputs", Json::array({tensor_mention(name, shape, dtype)})},
                                  {"attrs", std::move(attrs)}});
    SizeShape sizes = joined_.at(joined).leading;
    const SizeShape& whole = sizes_of(joined);
    sizes.insert(sizes.end(), whole.begin() + 1, whole.end());
    added_[name] = std::move(sizes);
    return tensor_mention(name, shape, dtype, {name, 0});
  }

  void remove_unread(GraphEditor& editor) const {
    std::set<NodeId> removed;
    for (auto id = static_cast<std::int32_t>(graph_.nodes().size()); id-- > 0;) {
      const Node& at = node(NodeId{id});
      if (at.outputs.size() != 1 || !is_joined(at.outputs.front())) continue;
      const auto& outputs = graph_.graph_outputs();
      const TensorId result = at.outputs.front();
      if (std::find(outputs.begin(), outputs.end(), result) != outputs.end()) continue;
      const auto& readers = graph_.tensor(result).consumers;
      if (!std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
            return parted_.contains(reader) || removed.contains(reader);
          })) {
        continue;
      }
      removed.insert(NodeId{id});
      editor.remove(NodeId{id});
    }
  }

  Graph& graph_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  AddedSizes& added_;
  std::map<TensorId, JoinedRows> joined_;
  std::vector<NodeId> moved_;         // nodes that give joined rows, in order
  std::set<NodeId> parted_;           // views that part joined rows
  std::set<NodeId> needed_;           // those of moved_ that such a view comes from
  std::map<TensorId, Json> written_;  // by joined rows: the mention of them apart
};

}  // namespace

bool keep_rows_apart(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                     AddedSizes& added) {
  return RowSeparator(graph, sizes, shapes, added).run();
}

}  // namespace npu::padding

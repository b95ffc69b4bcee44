// SPDX-License-Identifier: Apache-2.0
// The last valid row of an output, chosen as early as possible: a decoder that is asked for the
// next id needs no logits but those, so its largest product and most of its last layer compute one
// row.
//
// Input:  a graph at the capacities, what the rules say of it, an output and its dimension of rows.
// Output: the graph with that output cut to its last valid row.
// From the outputs up, every tensor is known to be needed whole, by a row, or both. A node whose
// results are needed by a row alone, and whose rule says that a row of its result follows from the
// same row of its operands, computes that row; what it reads otherwise it reads whole. A row of a
// tensor that others need whole is cut out of it, unless it is made of fewer bytes than it has: so
// the mask of a cache, whose row is made of one position, stays a mask. Where rows of the padding
// repeat the last valid one, that is the last row of all; else its index is computed.
// O(nodes x operands).
#include "passes/padding/sink_last_row.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/mention_form.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/size_nodes.hpp"

namespace npu::padding {
namespace {

constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

/// What the nodes behind a tensor need of it.
struct Demand {
  bool whole = false;
  std::set<std::int32_t> rows = {};  ///< dimensions along which a row is needed
};

/// A tensor, and a dimension of it.
using RowOf = std::pair<TensorId, std::int32_t>;

class RowSinker {
 public:
  RowSinker(Graph& graph, const PaddingAnalysis& analysis, const PaddedSizes& sizes,
            const TensorSizes& shapes, AddedSizes& added)
      : graph_(graph),
        analysis_(analysis),
        sizes_(sizes),
        shapes_(shapes),
        added_(added),
        editor_(graph),
        nodes_(graph, sizes, editor_),
        demands_(graph.tensors().size()),
        sunk_(graph.nodes().size()) {}

  bool run(TensorId output, std::int32_t dim) {
    const TensorInfo& tensor = graph_.tensor(output);
    if (tensor.kind != TensorKind::kResult || !shapes_.varies(output, index_of(dim))) return false;
    for (const TensorId id : graph_.graph_outputs()) {
      if (id == output && demands_[id].rows.empty()) {
        demands_[id].rows.insert(dim);
      } else {
        demands_[id].whole = true;
      }
    }
    rows_ = shapes_.of(output)[index_of(dim)];
    const IdVector<TensorId, Demand> asked = demands_;
    do {
      demands_ = asked;
      sunk_.assign(graph_.nodes().size(), std::nullopt);
      for (auto n = static_cast<std::int32_t>(graph_.nodes().size()); n-- > 0;) decide(NodeId{n});
    } while (keeps_tuples());
    if (!sunk_[tensor.producer]) return false;
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      if (sunk_[id]) replace(id, *sunk_[id]);
    }
    const auto& outputs = graph_.graph_outputs();
    const auto place = std::find(outputs.begin(), outputs.end(), output) - outputs.begin();
    graph_.document()["graph_outputs"][static_cast<std::size_t>(place)]["shape"] =
        row_shape(output, dim);
    nodes_.commit();
    return true;
  }

 private:
  Json mention(TensorId id) const { return mention_json(graph_, id, MentionForm::kAllButWeights); }

  Shape row_shape(TensorId id, std::int32_t dim) const {
    Shape shape = graph_.tensor(id).shape;
    shape[index_of(dim)] = 1;
    return shape;
  }

  SizeShape row_sizes(TensorId id, std::int32_t dim) const {
    SizeShape shape = shapes_.of(id);
    shape[index_of(dim)] = SizeExpression(1);
    return shape;
  }

  // ---- What is needed ----

  void decide(NodeId id) {
    const Node& node = graph_.node(id);
    const std::optional<std::int32_t> dim = dim_of_rows(node);
    if (dim && !kept_.contains(id) && treats_rows_alike(id, *dim)) {
      sunk_[id] = dim;
      ask_operands(id, *dim, true);
      return;
    }
    for (const TensorId input : node.inputs) demands_[input].whole = true;
    if (node.outputs.size() != 1) return;
    for (const std::int32_t row : demands_[node.outputs.front()].rows) {
      if (is_made_again(id, row)) ask_operands(id, row, false);
    }
  }

  // A getitem reads all results of one node: finds those whose node computes all rows, which they
  // have to do as well. False if there are none.
  bool keeps_tuples() {
    bool has_found = false;
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      if (node.op_type != kGetitem || !sunk_[id]) continue;
      if (sunk_[graph_.tensor(node.inputs.front()).producer]) continue;
      has_found = kept_.insert(id).second || has_found;
    }
    return has_found;
  }

  // The dimension along which a row of each result is needed, if nothing else of any is.
  std::optional<std::int32_t> dim_of_rows(const Node& node) const {
    std::optional<std::int32_t> dim;
    for (const TensorId output : node.outputs) {
      const Demand& demand = demands_[output];
      if (demand.whole || demand.rows.size() > 1) return std::nullopt;
      if (demand.rows.empty()) continue;
      if (dim && *dim != *demand.rows.begin()) return std::nullopt;
      dim = *demand.rows.begin();
    }
    return dim;
  }

  void ask_operands(NodeId id, std::int32_t dim, bool rest_whole) {
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto row = row_of_operand(id, i, dim);
      if (row) demands_[node.inputs[i]].rows.insert(*row);
      if (!row && rest_whole) demands_[node.inputs[i]].whole = true;
    }
  }

  const ResultDim* along(NodeId id, std::size_t result, std::int32_t dim) const {
    const std::vector<ResultDim>& results = analysis_.rules[id].results;
    const auto found = std::find_if(results.begin(), results.end(), [&](const ResultDim& each) {
      return each.result == static_cast<std::int32_t>(result) && each.dim == dim;
    });
    return found == results.end() ? nullptr : &*found;
  }

  // The dimension of an operand that lies along one of the results.
  std::optional<std::int32_t> row_of_operand(NodeId id, std::size_t operand,
                                             std::int32_t dim) const {
    // A getitem lists all results of a node, which have their rows in one dimension.
    const bool is_chosen = graph_.node(id).op_type == kGetitem;
    for (const Place& place : along(id, 0, dim)->from) {
      if (is_chosen || index_of(place.operand) == operand) return place.dim;
    }
    return std::nullopt;
  }

  // Whether each row of the results is made of that row of the operands, in the same way.
  bool treats_rows_alike(NodeId id, std::int32_t dim) const {
    const Node& node = graph_.node(id);
    const OpInfo* op = find_op(node.op_type);
    const RowRule* rule = op == nullptr ? nullptr : find_row_rule(*op);
    if (rule == nullptr || rule->name == "create") return false;
    const ResultDim* first = along(id, 0, dim);
    for (std::size_t r = 0; r < node.outputs.size(); ++r) {
      if (index_of(dim) >= shapes_.of(node.outputs[r]).size()) return false;
      const ResultDim* found = along(id, r, dim);
      if (found == nullptr || found->repeat != Keep::kAll || found->from.empty() ||
          found->is_resized || found->from != first->from) {
        return false;
      }
    }
    if (!has_rows(node.outputs.front(), dim)) return false;
    std::set<std::int32_t> operands;
    return std::all_of(first->from.begin(), first->from.end(), [&](const Place& place) {
      return operands.insert(place.operand).second &&
             has_rows(node.inputs[index_of(place.operand)], place.dim);
    });
  }

  bool has_rows(TensorId id, std::int32_t dim) const {
    return sizes_.same(shapes_.of(id)[index_of(dim)], rows_);
  }

  // Of a tensor that is there as a whole: whether its row is made of less than it has.
  bool is_made_again(NodeId id, std::int32_t dim) const {
    const Node& node = graph_.node(id);
    if (node.op_type == kGetitem || !treats_rows_alike(id, dim)) return false;
    const std::int64_t rows = rows_.evaluate(sizes_.capacities());
    std::int64_t read = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::int64_t bytes = graph_.tensor(node.inputs[i]).bytes();
      read += row_of_operand(id, i, dim) ? bytes / rows : bytes;
    }
    return read < graph_.tensor(node.outputs.front()).bytes() / rows;
  }

  // ---- The nodes ----

  // The node as it was, for a row.
  void replace(NodeId id, std::int32_t dim) {
    const Node& node = graph_.node(id);
    Json made = row_node(id, dim, id);
    for (std::size_t r = 0; r < node.outputs.size(); ++r) {
      const TensorId output = node.outputs[r];
      made["outputs"][r]["shape"] = row_shape(output, dim);
      added_[graph_.tensor(output).name] = row_sizes(output, dim);
    }
    nodes_.insert_before(id, std::move(made));
    editor_.remove(id);
  }

  // A node's object with operands and attributes for one row; its results are those of all rows.
  Json row_node(NodeId id, std::int32_t dim, NodeId before) {
    const Node& node = graph_.node(id);
    Json inputs = Json::array();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto row = row_of_operand(id, i, dim);
      inputs.push_back(row ? row_of({node.inputs[i], *row}, before) : mention(node.inputs[i]));
    }
    Json made = editor_.json(id);
    made["inputs"] = std::move(inputs);
    set_sizes(made, node, dim);
    return made;
  }

  // What states the sizes of its result in numbers.
  void set_sizes(Json& made, const Node& node, std::int32_t dim) const {
    const std::string_view rule = find_row_rule(*find_op(node.op_type))->name;
    const Shape shape = row_shape(node.outputs.front(), dim);
    const std::string_view name = functional_name(node.op_type);
    const bool is_view = rule == "reshape" && !name.starts_with("pixel_");
    const bool is_expansion = rule == "expand" && name != "repeat" && name != "tile";
    if (!is_view && !is_expansion) return;
    made["op_type"] = is_view ? "aten.reshape.default" : "aten.expand.default";
    made["attrs"] = {{is_view ? "shape" : "size", shape}};
    made["inputs"] = Json::array({made["inputs"][0]});  // without one that only has a shape
  }

  // The mention of a row, in front of a node that reads it.
  Json row_of(const RowOf& row, NodeId before) {
    const auto& [id, dim] = row;
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kResult && sunk_[tensor.producer]) {
      Json whole = mention(id);
      whole["shape"] = row_shape(id, dim);
      return whole;
    }
    if (const auto known = made_.find(row); known != made_.end()) return known->second;
    const std::string name = editor_.unique_name(tensor.name + ":last");
    Json made;
    if (tensor.kind == TensorKind::kResult && is_chosen_again(tensor.producer, dim)) {
      made = row_node(tensor.producer, dim, before);
      made["name"] = name;
    } else {
      made = {{"name", name}, {"op_type", "aten.slice.Tensor"}, {"inputs", Json::array()}};
      made["inputs"].push_back(mention(id));
      if (analysis_.tails[id].dims[index_of(dim)].repeat) {
        made["attrs"] = {{"dim", dim}, {"start", -1}, {"end", kToTheEnd}};
      } else {
        made["op_type"] = "aten.index_select.default";
        made["inputs"].push_back(nodes_.last_row(shapes_.of(id)[index_of(dim)]));
        made["attrs"] = {{"dim", dim}};
      }
    }
    made["outputs"] = Json::array({tensor_mention(name, row_shape(id, dim), tensor.dtype)});
    nodes_.insert_before(before, std::move(made));
    added_[name] = row_sizes(id, dim);
    return made_[row] = tensor_mention(name, row_shape(id, dim), tensor.dtype, {name, 0});
  }

  bool is_chosen_again(NodeId id, std::int32_t dim) const {
    return graph_.node(id).outputs.size() == 1 && is_made_again(id, dim);
  }

  Graph& graph_;
  const PaddingAnalysis& analysis_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  AddedSizes& added_;
  GraphEditor editor_;
  SizeNodes nodes_;
  SizeExpression rows_;
  IdVector<TensorId, Demand> demands_;
  IdVector<NodeId, std::optional<std::int32_t>> sunk_;  // along which dimension
  std::set<NodeId> kept_;                               // getitems that compute all rows
  std::map<RowOf, Json> made_;                          // mentions of rows
};

}  // namespace

bool sink_last_row(Graph& graph, TensorId output, std::int32_t dim, const PaddingAnalysis& analysis,
                   const PaddedSizes& sizes, const TensorSizes& shapes, AddedSizes& added) {
  return RowSinker(graph, analysis, sizes, shapes, added).run(output, dim);
}

}  // namespace npu::padding

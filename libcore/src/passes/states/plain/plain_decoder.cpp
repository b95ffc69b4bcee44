// SPDX-License-Identifier: Apache-2.0
// Takes detours out of a decoder, so that what is left is of forms that adoption knows.
//
// A sum with zeros is its other term: what a mask of ones hides is nothing. A row of a table that
// is cut to the number of rows is the table's own, as long as its number does not count from the
// end. The largest of a score and a number that hides scores is that score, or one whose weight
// behind a softmax is 0 either way. Scores less the largest of them have the weights of the scores
// themselves. A cache that is split, such as keys and values in one, is cut.
#include "passes/states/plain/plain_decoder.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/hidden_score.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/states/follow_past.hpp"
#include "passes/states/producers.hpp"
#include "passes/states/row_lookup.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

class DetourRemover {
 public:
  DetourRemover(const PastModel& model, const DecoderInputs& inputs, std::int64_t capacity)
      : model_(model), graph_(model.graph()), follower_(model, inputs), capacity_(capacity) {}

  std::optional<Json> run() {
    Json document = model_.model().document();
    Json* nodes = find_member(document, "nodes");
    Json written = Json::array();
    for (Json& node : *nodes) {
      const std::string* name = member_text(node, "name");
      const NodeId id = name == nullptr ? NodeId{} : graph_.find_node(*name);
      if (id.valid()) read_whole_table(id, node, written);
      if (id.valid() && (is_dropped(id, node) || is_split(id, node) || is_shift(id))) continue;
      if (id.valid()) cut_part(id, node);
      for (Json& input : *find_member(node, "inputs")) {
        const auto instead = instead_.find(*member_text(input, "name"));
        if (instead != instead_.end()) input = instead->second;
      }
      written.push_back(std::move(node));
    }
    if (!changed_) return std::nullopt;
    *nodes = std::move(written);
    return document;
  }

 private:
  std::optional<BoundNode> bound(NodeId id) const {
    const Node& node = graph_.node(id);
    const OpInfo* op = find_op(node.op_type);
    BindError error;
    return op == nullptr ? std::nullopt : BoundNode::try_bind(graph_, node, op->schema, error);
  }
  bool is_output(TensorId id) const {
    const auto& outputs = graph_.graph_outputs();
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  }
  NodeId producer(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kResult ? tensor.producer : NodeId{};
  }

  // ---- Tables ----

  /// The dimension of all rows, which only one may be.
  std::optional<std::size_t> rows_of(const SizeShape& shape) const {
    std::optional<std::size_t> rows;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!model_.has_past(shape[d])) continue;
      if (rows || shape[d] != model_.caches().total) return std::nullopt;
      rows = d;
    }
    return rows;
  }

  /// The table that `node` cuts to all rows, from the front; its rows.
  std::optional<std::int64_t> whole_rows(NodeId cut) const {
    if (functional_name(graph_.node(cut).op_type) != "slice") return std::nullopt;
    const auto slice = bound(cut);
    if (!slice) return std::nullopt;
    const auto is_number = [&](const char* key, std::int64_t wanted) {
      if (slice->find(key) == nullptr || slice->is_none(key)) return true;
      const auto size = model_.size(*slice, key);
      return size && size->constant() == wanted;
    };
    const SizeShape& from = model_.shape(slice->node().inputs[0]);
    const auto rows = rows_of(model_.shape(slice->node().outputs[0]));
    if (!rows || rows_of(from) || !is_number("start", 0) || !is_number("step", 1)) {
      return std::nullopt;
    }
    return from[*rows].constant();
  }

  /// Views behind the cut of a table of enough rows, from the inside out, the cut first.
  std::optional<std::vector<NodeId>> way_from_table(TensorId id, std::int64_t& rows) const {
    std::vector<NodeId> way;
    for (NodeId at = producer(id); at.valid(); at = producer(graph_.node(at).inputs[0])) {
      way.insert(way.begin(), at);
      if (const auto whole = whole_rows(at)) {
        rows = *whole;
        return rows >= capacity_ ? std::optional(way) : std::nullopt;
      }
      const Node& view = graph_.node(at);
      if (!is_view(functional_name(view.op_type)) || view.inputs.size() != 1) return std::nullopt;
      const SizeShape& from = model_.shape(view.inputs[0]);
      const SizeShape& to = model_.shape(view.outputs[0]);
      const auto before = rows_of(from);
      const auto behind = rows_of(to);
      if (!before || !behind || count(from, *before) != count(to, *behind)) return std::nullopt;
    }
    return std::nullopt;
  }
  static SizeExpression count(const SizeShape& shape, std::size_t dims) {
    SizeExpression count(1);
    for (std::size_t d = 0; d < dims; ++d) count = count * shape[d];
    return count;
  }

  /// No index that counts from the end.
  bool is_from_front(TensorId index) {
    const std::optional<Formula>& found = follower_.formula(index);
    if (!found || !found->integer) return false;
    const std::vector<std::int64_t>& factors = found->integer->factors;
    return std::all_of(factors.begin(), factors.end(), [](std::int64_t f) { return f >= 0; }) &&
           found->integer->rest.bounds(model_.ranges()).min >= 0;
  }

  /// Lets a lookup read the table itself, seen as the cut was.
  void read_whole_table(NodeId id, Json& node, Json& written) {
    const auto lookup = bound(id);
    const auto rows = lookup ? row_lookup(*lookup) : std::nullopt;
    if (!rows) return;
    const TensorId table = lookup->node().inputs[0];
    std::int64_t whole = 0;
    const auto way = way_from_table(table, whole);
    if (!way || rows_of(model_.shape(table)) != rows->dim || !is_from_front(rows->index)) return;
    auto found = whole_.find(table.value);
    if (found == whole_.end()) {
      Json mention = cuts_.at(way->front().value);
      for (std::size_t i = 1; i < way->size(); ++i) {
        mention = write_view(graph_.node((*way)[i]), mention, whole, written);
      }
      found = whole_.emplace(table.value, std::move(mention)).first;
    }
    (*find_member(node, "inputs"))[0] = found->second;
    changed_ = true;
  }

  Json write_view(const Node& view, const Json& operand, std::int64_t rows, Json& written) {
    const TensorInfo& result = graph_.tensor(view.outputs[0]);
    std::string name = result.name + ".whole";
    while (graph_.find_tensor(name).valid() || names_.contains(name)) name += "_";
    names_.insert(name);
    Json shape = Json::array();
    for (const SizeExpression& size : model_.shape(view.outputs[0])) {
      shape.push_back(model_.has_past(size) ? Json(rows) : size_json(size));
    }
    Json mention{
        {"name", name}, {"shape", shape}, {"dtype", std::string(dtype_name(result.dtype))}};
    written.push_back({{"name", name},
                       {"op_type", "aten.reshape.default"},
                       {"inputs", Json::array({operand})},
                       {"outputs", Json::array({mention})},
                       {"attrs", {{"shape", shape}}}});
    return mention;
  }

  // ---- Nodes that change nothing ----

  /// Whether a node gives one of its operands, which is read in place of its result then.
  bool is_dropped(NodeId id, const Json& node) {
    const Node& at = graph_.node(id);
    if (whole_rows(id)) cuts_.emplace(id.value, (*find_member(node, "inputs"))[0]);
    if (at.outputs.size() != 1 || at.inputs.empty() || is_output(at.outputs[0])) return false;
    auto same = scores_of_largest(at);
    if (!same) same = term_beside_zeros(at);
    if (!same) same = shifted_scores(at);
    if (!same) return false;
    const TensorInfo& result = graph_.tensor(at.outputs[0]);
    const TensorInfo& operand = graph_.tensor(at.inputs[*same]);
    if (result.dtype != operand.dtype) return false;
    if (model_.shape(at.outputs[0]) != model_.shape(at.inputs[*same])) return false;
    Json mention = (*find_member(node, "inputs"))[*same];
    const auto instead = instead_.find(operand.name);
    instead_.emplace(result.name, instead != instead_.end() ? instead->second : std::move(mention));
    changed_ = true;
    return true;
  }

  /// The scores of which a node gives the larger of them and a number that hides them.
  std::optional<std::size_t> scores_of_largest(const Node& node) const {
    const std::string_view name = functional_name(node.op_type);
    const bool is_largest =
        name == "maximum" || (name == "max" && node.inputs.size() == 2) || name == "clamp_min";
    if (!is_largest || !reaches_softmax_alone(node.outputs[0])) return std::nullopt;
    std::size_t scores = 0;
    std::optional<double> number = member_double(node.attrs(), "min");
    for (std::size_t i = 0; i < node.inputs.size() && node.inputs.size() == 2; ++i) {
      const auto values = model_.constant(node.inputs[i]);
      if (!values || values->size() != 1) continue;
      number = values->front();
      scores = 1 - i;
    }
    const DType dtype = graph_.tensor(node.outputs[0]).dtype;
    return number && hides_score(*number, dtype) ? std::optional(scores) : std::nullopt;
  }

  /// The other term of a sum with zeros, as a mask of ones becomes.
  std::optional<std::size_t> term_beside_zeros(const Node& node) {
    if (functional_name(node.op_type) != "add" || node.inputs.size() != 2) return std::nullopt;
    for (const std::size_t i : {0U, 1U}) {
      const std::optional<Formula>& found = follower_.formula(node.inputs[i]);
      if (found && found->number() == 0) return 1 - i;
    }
    return std::nullopt;
  }

  /// The scores that a node shifts by the largest of them, for a softmax alone.
  std::optional<std::size_t> shifted_scores(const Node& node) const {
    if (functional_name(node.op_type) != "sub" || node.inputs.size() != 2) return std::nullopt;
    const NodeId most = producer(node.inputs[1]);
    if (!most.valid() || functional_name(graph_.node(most).op_type) != "amax") return std::nullopt;
    if (graph_.node(most).inputs[0] != node.inputs[0] || !is_plain_sum(node)) return std::nullopt;
    const auto largest = bound(most);
    if (!largest || !largest->boolean("keepdim")) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(model_.shape(node.inputs[0]).size());
    const auto from_front = [&](std::int64_t dim) { return dim < 0 ? dim + rank : dim; };
    const std::vector<std::int64_t> dims = largest->integers("dim");
    const auto& readers = graph_.tensor(node.outputs[0]).consumers;
    const bool is_along = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const std::string_view name = functional_name(graph_.node(reader).op_type);
      const auto softmax = name == "softmax" || name == "_softmax" ? bound(reader) : std::nullopt;
      return softmax && dims.size() == 1 &&
             from_front(softmax->integer("dim")) == from_front(dims[0]);
    });
    return is_along && !readers.empty() ? std::optional<std::size_t>(0) : std::nullopt;
  }
  static bool is_plain_sum(const Node& node) {
    return member_double(node.attrs(), "alpha").value_or(1) == 1;
  }

  /// Whether a node gives nothing but the shift of scores that need none.
  bool is_shift(NodeId id) const {
    const Node& node = graph_.node(id);
    if (functional_name(node.op_type) != "amax" || is_output(node.outputs[0])) return false;
    const auto& readers = graph_.tensor(node.outputs[0]).consumers;
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Node& shifted = graph_.node(reader);
      return shifted_scores(shifted) && !is_output(shifted.outputs[0]);
    });
  }

  // ---- Parts ----

  /// Whether a node splits rows of the past along another dimension, for nothing but its parts.
  bool is_split(NodeId id, const Json& json) {
    const Node& node = graph_.node(id);
    if (functional_name(node.op_type) != "split_with_sizes") return false;
    const auto split = bound(id);
    const SizeShape& shape = model_.shape(node.inputs[0]);
    if (!split || !model_.mentions_past(node.inputs[0])) return false;
    const std::int64_t dim = split->integer("dim");
    const auto along = static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape) : dim);
    if (along >= shape.size() || model_.has_past(shape[along])) return false;
    for (const TensorId output : node.outputs) {
      const auto& readers = graph_.tensor(output).consumers;
      const bool is_taken = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return graph_.node(reader).op_type.find("getitem") != std::string::npos;
      });
      if (!is_taken || is_output(output)) return false;
    }
    Json operand = (*find_member(json, "inputs"))[0];
    const auto instead = instead_.find(*member_text(operand, "name"));
    if (instead != instead_.end()) operand = instead->second;
    split_.emplace(id.value, Split{std::move(operand), along, split->integers("split_sizes")});
    changed_ = true;
    return true;
  }

  /// Makes a part of such a split a cut.
  void cut_part(NodeId id, Json& node) {
    const NodeId from =
        graph_.node(id).inputs.empty() ? NodeId{} : producer(graph_.node(id).inputs[0]);
    const auto split = from.valid() ? split_.find(from.value) : split_.end();
    if (split == split_.end()) return;
    const auto& [operand, dim, sizes] = split->second;
    const std::int64_t index = member_integer(graph_.node(id).attrs(), "index").value_or(0);
    if (index < 0 || index >= std::ssize(sizes)) return;  // told where the document is read again
    const auto part = sizes.begin() + index;
    const std::int64_t start = std::accumulate(sizes.begin(), part, std::int64_t{0});
    set_member(node, "op_type", "aten.slice.Tensor");
    set_member(node, "inputs", Json::array({operand}));
    set_member(node, "attrs", {{"dim", dim}, {"start", start}, {"end", start + *part}});
  }

  bool reaches_softmax_alone(TensorId id) const {
    std::vector<TensorId> open{id};
    while (!open.empty()) {
      const TensorId at = open.back();
      open.pop_back();
      const auto& readers = graph_.tensor(at).consumers;
      if (is_output(at) || readers.empty()) return false;
      for (const NodeId reader : readers) {
        const Node& node = graph_.node(reader);
        const std::string_view name = functional_name(node.op_type);
        if (name == "softmax" || name == "_softmax") continue;
        if (!is_view(name) || node.inputs.size() != 1) return false;
        open.push_back(node.outputs[0]);
      }
    }
    return true;
  }

  struct Split {
    Json operand;
    std::size_t dim;
    std::vector<std::int64_t> sizes;
  };

  const PastModel& model_;
  const Graph& graph_;
  PastFollower follower_;
  std::int64_t capacity_;
  bool changed_ = false;
  std::map<std::int32_t, Split> split_;  // by node that is left out
  std::map<std::int32_t, Json> cuts_;    // by cut: the mention of its table
  std::map<std::int32_t, Json> whole_;   // by cut table as it is seen: that of the whole one
  std::map<std::string, Json> instead_;  // by tensor: what is read in its place
  std::set<std::string> names_;          // of nodes that are written
};

}  // namespace

std::optional<Json> plain_decoder(const PastModel& model, const DecoderInputs& inputs,
                                  std::int64_t capacity) {
  return DetourRemover(model, inputs, capacity).run();
}

}  // namespace npu::states

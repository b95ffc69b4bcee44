// SPDX-License-Identifier: Apache-2.0
// Writes the document of a decoder whose caches are states: new rows at their positions, and masks
// that follow from positions (npu.length_mask).
//
// What is computed of the number of past rows alone is followed as a formula (follow_past) and
// written anew where a node that stays reads it; nodes that read the caches are shown not to
// depend on rows that are not used (key_rows). Whatever neither explains is refused by name: a
// result is never guessed. The mask of ones that a batch of one row needs disappears, and so does
// whatever nobody reads any more. O(nodes).
#include "passes/states/adopter.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/states/attention_heads.hpp"
#include "passes/states/follow_past.hpp"
#include "passes/states/key_rows.hpp"
#include "passes/states/past_writer.hpp"
#include "passes/states/place_step.hpp"
#include "passes/states/place_writer.hpp"
#include "passes/states/prune_document.hpp"
#include "passes/states/written_attention.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// What becomes of a node.
enum class Fate : std::uint8_t {
  kStays,
  kFollowed,  ///< its result follows from sizes; it is written anew where that is needed
  kPlaced,    ///< it is computed place by place; it is written anew where that is needed
  kUnknown,   ///< it follows from the past in a way that is not known; nothing that stays reads it
  kWrites,    ///< the concatenation of a cache: the new rows are written into the state
};

class Adopter : public PastTensors {
 public:
  Adopter(const PastModel& model, const DecoderInputs& inputs, std::int64_t capacity,
          const std::vector<State>& others, Diagnostics& diagnostics)
      : model_(model),
        graph_(model.graph()),
        inputs_(inputs),
        capacity_(capacity),
        others_(others),
        diagnostics_(diagnostics),
        follower_(model, inputs),
        fates_(graph_.nodes().size(), Fate::kStays),
        follows_(graph_.tensors().size(), false) {
    if (inputs.start.valid()) follows_[inputs.start] = true;
  }

  std::optional<Json> run() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) classify(id);
    check_outputs();
    if (diagnostics_.has_errors()) return std::nullopt;
    return write();
  }

  const KeyAxis* keys(TensorId id) const override {
    const auto found = keys_.find(id.value);
    return found == keys_.end() ? nullptr : &found->second;
  }
  const Formula* formula(TensorId id) const override {
    const std::optional<Formula>& found = follower_.formula(id);
    return found ? &*found : nullptr;
  }
  const Placed* placed(TensorId id) const override {
    const auto found = placed_.find(id.value);
    return found == placed_.end() ? nullptr : &found->second;
  }
  bool stays(TensorId id) const override {
    const NodeId producer = graph_.tensor(id).producer;
    return !follows_[id] && id != inputs_.mask && !model_.mentions_past(id) &&
           keys(id) == nullptr && !unknown_.contains(id.value) &&
           (!producer.valid() || fates_[index_of(producer.value)] == Fate::kStays);
  }

 private:
  std::string title(const Node& node) const {
    return "node '" + short_text(node.name) + "' ('" + std::string(short_name(node.op_type)) + "')";
  }
  /// What reads its results is not looked at.
  void refuse(NodeId id, const std::string& text) {
    diagnostics_.error(graph_.location(id), title(graph_.node(id)) + " " + text);
    for (const TensorId output : graph_.node(id).outputs) refused_.insert(output.value);
  }
  bool is_past_input(TensorId id) const {
    const CachePairs& caches = model_.caches();
    return std::any_of(caches.pairs.begin(), caches.pairs.end(),
                       [&](const CachePair& pair) { return pair.input == graph_.tensor(id).name; });
  }

  void classify(NodeId id) {
    const Node& node = graph_.node(id);
    const bool reads_refused = std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [&](TensorId t) { return refused_.contains(t.value); });
    if (reads_refused) {
      for (const TensorId output : node.outputs) refused_.insert(output.value);
      return;
    }
    if (model_.pair_of(node) != nullptr) {
      fates_[index_of(id.value)] = Fate::kWrites;
      keys_[node.outputs[0].value] = {model_.pair_of(node)->axis, UnusedRows::kFinite};
      return;
    }
    bool reads_keys = false;
    bool has_rows = false;
    std::optional<NodeId> unknown;
    for (const TensorId input : node.inputs) {
      if (is_past_input(input)) {
        return refuse(id, "reads '" + short_text(graph_.tensor(input).name) +
                              "' other than to put new rows behind it");
      }
      reads_keys = reads_keys || keys(input) != nullptr;
      const auto found = unknown_.find(input.value);
      if (found != unknown_.end() && !unknown) unknown = found->second;
    }
    for (const TensorId output : node.outputs) {
      has_rows = has_rows || model_.mentions_past(output);
    }
    // In list order, so that formulas never have to be looked for far behind.
    const bool is_followed = node.outputs.size() == 1 && formula(node.outputs[0]) != nullptr;
    if (reads_keys) {
      if (unknown) return refuse_unknown(*unknown, id);
      return classify_keys(id);
    }
    const bool computes = model_.mentions_past(node) || has_rows;
    const bool reads_past = std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId t) {
      return follows_[t] || t == inputs_.mask;
    });
    if (!is_followed && adds_rows(id)) return check_mask_reader(id);
    const bool is_placed = place(id, computes, reads_past);
    if (is_followed) {
      if (!computes && !reads_past && !unknown) return;
      fates_[index_of(id.value)] = Fate::kFollowed;
      follows_[node.outputs[0]] = true;
      return;
    }
    if (is_placed) {
      fates_[index_of(id.value)] = Fate::kPlaced;
      return;
    }
    const bool reads_rows = std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId t) {
      return (follows_[t] && model_.mentions_past(t)) || has_places(t);
    });
    if (!computes && !unknown && !reads_rows) return check_mask_reader(id);
    fates_[index_of(id.value)] = Fate::kUnknown;
    for (const TensorId output : node.outputs) unknown_.emplace(output.value, unknown.value_or(id));
  }

  /// Whether a node joins the elements of a tensor, in which there is nothing of the past, and the
  /// number of its rows, such as ids that are no padding, counted behind those of the past.
  bool adds_rows(NodeId id) const {
    const Node& node = graph_.node(id);
    const Json* number = rows_operand(node);
    const auto size = number == nullptr ? std::nullopt : model_.size_of(*number);
    return size && model_.has_past(*size) && node.inputs.size() == 1 && stays(node.inputs[0]) &&
           graph_.tensor(node.inputs[0]).dtype == graph_.tensor(node.outputs[0]).dtype &&
           !is_floating_point(graph_.tensor(node.outputs[0]).dtype) &&
           !model_.mentions_past(node.outputs[0]);
  }
  /// The number that a node adds to a tensor, or takes off, as its attributes have it.
  const Json* rows_operand(const Node& node) const {
    const std::string_view name = functional_name(node.op_type);
    if (name != "add" && name != "sub") return nullptr;
    return find_member(model_.attrs(node), "other");
  }

  /// Whether a placed tensor has elements for rows of the past.
  bool has_places(TensorId id) const {
    const Placed* found = placed(id);
    return found != nullptr && (found->hidden || model_.mentions_past(id));
  }

  /// Tells whether a node that has to do with the past computes its result place by place.
  bool place(NodeId id, bool computes, bool reads_past) {
    const Node& node = graph_.node(id);
    const bool reads_placed = std::any_of(node.inputs.begin(), node.inputs.end(),
                                          [&](TensorId t) { return has_places(t); });
    if (!computes && !reads_past && !reads_placed) return false;
    const OpInfo* op = find_op(node.op_type);
    BindError error;
    const auto bound =
        op == nullptr ? std::nullopt : BoundNode::try_bind(graph_, node, op->schema, error);
    const auto step = bound ? place_step(model_, *bound, *this) : std::nullopt;
    // What has none of the places, and reads none of them, is computed as it is.
    if (!step || (!computes && !reads_placed && !step->hidden)) return false;
    placed_[node.outputs[0].value] = {step->hidden};
    return true;
  }

  /// What reads the mask of ones without a formula would miss it.
  void check_mask_reader(NodeId id) {
    const std::vector<TensorId>& inputs = graph_.node(id).inputs;
    if (std::find(inputs.begin(), inputs.end(), inputs_.mask) == inputs.end()) return;
    refuse(id, "reads the mask '" + short_text(graph_.tensor(inputs_.mask).name) +
                   "' in a way that is not known");
  }

  void refuse_unknown(NodeId id, NodeId reader) {
    refuse(id, "computes with the number of past rows in a way that is not known, for " +
                   title(graph_.node(reader)));
    for (const TensorId output : graph_.node(reader).outputs) refused_.insert(output.value);
  }

  void classify_keys(NodeId id) {
    const Node& node = graph_.node(id);
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) return refuse(id, "reads rows of a cache, which only an attention may");
    BindError error;
    const auto bound = BoundNode::try_bind(graph_, node, op->schema, error);
    if (!bound) return refuse(id, "argument '" + error.argument + "': " + error.text);
    const KeyRule rule = key_rule(model_, *bound, *this);
    if (!rule.refusal.empty()) return refuse(id, rule.refusal);
    if (rule.result) keys_[node.outputs[0].value] = *rule.result;
    if (rule.needs_mask) unmasked_.insert(id.value);
  }

  void check_outputs() {
    std::set<std::string> states;
    for (const CachePair& pair : model_.caches().pairs) states.insert(pair.output);
    for (const TensorId output : graph_.graph_outputs()) {
      const TensorInfo& tensor = graph_.tensor(output);
      const auto unknown = unknown_.find(output.value);
      if (unknown != unknown_.end()) refuse_unknown(unknown->second, tensor.producer);
      if (states.contains(tensor.name) || keys(output) == nullptr) continue;
      diagnostics_.error(
          {.file = model_.model().file()},
          "output '" + short_text(tensor.name) + "' has rows of a cache and is no cache");
    }
  }

  // ---- Writing ----

  std::optional<Json> write() {
    Json document = model_.model().document();
    Json nodes = Json::array();
    const TensorId given = inputs_.positions;
    PastWriter writer(
        model_, capacity_, given.valid() ? graph_.tensor(given).name : free_input_name(),
        given.valid() ? model_.shape(given) : SizeShape{model_.caches().fresh}, nodes);
    writer_ = &writer;
    PlaceWriter placer(model_, *this, writer);
    placer_ = &placer;
    for (const Json& node : *member_list(model_.model().document(), "nodes")) {
      write_node(node, nodes);
      if (diagnostics_.has_errors()) return std::nullopt;
    }
    write_ends(document);
    document["nodes"] = std::move(nodes);
    write_sections(document);
    if (diagnostics_.has_errors()) return std::nullopt;
    prune_document(document);
    return document;
  }
  std::string free_input_name() const {
    std::string name = "cache_position";
    for (int i = 1; graph_.find_tensor(name).valid(); ++i) {
      name = "cache_position_" + std::to_string(i);
    }
    return name;
  }

  void write_node(const Json& json, Json& nodes) {
    const NodeId id = graph_.find_node(*member_text(json, "name"));
    const Node& node = graph_.node(id);
    switch (fates_[index_of(id.value)]) {
      case Fate::kFollowed:
      case Fate::kPlaced:
      case Fate::kUnknown:
        return;
      case Fate::kWrites:
        return write_rows(json, node, nodes);
      case Fate::kStays:
        break;
    }
    if (reads_cache(node)) {
      if (const auto attention = written_attention(model_, node, *this)) {
        return write_attention(json, *attention, nodes);
      }
      if (const auto masked = masked_scores(model_, node, *this)) {
        return write_masked(json, *masked, nodes);
      }
      if (unmasked_.contains(id.value)) {
        if (const auto scores = unmasked_scores(node)) {
          return write_behind_mask(json, node, *scores, nodes);
        }
        return refuse(id,
                      "attends to all rows of a cache without a mask, in a form that is not "
                      "known, or with dropout");
      }
    }
    Json copy = json;
    for (const char* list : {"inputs", "outputs"}) write_shapes(*find_member(copy, list));
    Json& inputs = *find_member(copy, "inputs");
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (auto mention = operand(id, node.inputs[i])) inputs[i] = *std::move(mention);
    }
    if (adds_rows(id)) {
      write_rows_operand(node, copy);
    } else if (Json* attrs = find_member(copy, "attrs")) {
      write_sizes(id, *attrs);
    }
    nodes.push_back(std::move(copy));
  }

  /// The number of rows that a node adds, as a tensor.
  void write_rows_operand(const Node& node, Json& copy) {
    const Formula rows = integer_formula(0, *model_.size_of(*rows_operand(node)));
    TensorInfo info;
    info.name = node.name + ".rows";
    info.dtype = graph_.tensor(node.outputs[0]).dtype;
    std::string reason;
    auto operand = writer_->tensor(info, rows, {}, {}, reason);
    if (!operand) return refuse(graph_.find_node(node.name), "reads a number which " + reason);
    find_member(copy, "inputs")->push_back(*std::move(operand));
    const std::string op = "aten." + std::string(functional_name(node.op_type)) + ".Tensor";
    set_member(copy, "op_type", op);
    find_member(copy, "attrs")->erase("other");
  }

  bool reads_cache(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](TensorId id) { return keys(id) != nullptr; });
  }

  void write_attention(const Json& json, const CacheAttention& attention, Json& nodes) {
    const Json mask = writer_->mask(attention.mask.causal, attention.mask.window);
    Json copy = attention_node(model_, attention, mask, json,
                               [&](TensorId tensor) { return mention_of(tensor); });
    write_shapes(*find_member(copy, "outputs"));
    nodes.push_back(std::move(copy));
  }

  /// Scores of an attention that stays written out, behind the mask that kernels know.
  void write_masked(const Json& json, const MaskedScores& masked, Json& nodes) {
    Json copy = json;
    Json scores = mention_of(masked.scores);
    set_member(copy, "op_type", "aten.where.ScalarOther");
    set_member(copy, "inputs",
               Json::array({writer_->mask(masked.mask.causal, masked.mask.window), scores}));
    set_member(copy, "attrs", {{"other", "-inf"}});
    write_shapes(*find_member(copy, "outputs"));
    nodes.push_back(std::move(copy));
  }

  /// The operand that a node without a mask takes scores, or what it adds to them, from.
  std::optional<std::size_t> unmasked_scores(const Node& node) const {
    if (functional_name(node.op_type) != "scaled_dot_product_attention") return 0;
    if (node.inputs.size() == 4 && placed(node.inputs[3]) != nullptr) return 3;
    return std::nullopt;
  }

  /// A node that takes all keys up to the last one into account.
  void write_behind_mask(const Json& json, const Node& node, std::size_t operand, Json& nodes) {
    const TensorId scores = node.inputs[operand];
    const SizeShape& shape = model_.shape(scores);
    const KeyAxis* axis = keys(scores);
    const std::size_t dim = axis != nullptr ? axis->dim : shape.size() - 1;
    SizeShape row(shape.size(), SizeExpression(1));
    row[dim] = shape[dim];
    const auto given = this->operand(graph_.find_node(node.name), scores);
    if (diagnostics_.has_errors()) return;
    const std::string name = graph_.tensor(scores).name + ".masked";
    const bool is_single = model_.caches().fresh == SizeExpression(1);
    const Json shown = writer_->spread(writer_->mask(is_single, -1), row, {dim}, name);
    Json copy = json;
    for (const char* list : {"inputs", "outputs"}) write_shapes(*find_member(copy, list));
    (*find_member(copy, "inputs"))[operand] = writer_->add(
        name, "aten.where.ScalarOther", Json::array({shown, given ? *given : mention_of(scores)}),
        {{"other", "-inf"}}, writer_->shape(shape), graph_.tensor(scores).dtype);
    nodes.push_back(std::move(copy));
  }

  /// The mention of an operand that is written anew; nothing for others.
  std::optional<Json> operand(NodeId id, TensorId input) {
    std::string reason;
    const TensorInfo& info = graph_.tensor(input);
    const bool is_placed =
        info.producer.valid() && fates_[index_of(info.producer.value)] == Fate::kPlaced;
    if (!is_placed && !follows_[input]) return std::nullopt;
    auto mention = is_placed ? placer_->tensor(input, reason)
                             : writer_->tensor(input, *formula(input), reason);
    if (!mention) refuse(id, "reads '" + short_text(info.name) + "', which " + reason);
    return mention;
  }

  Json mention_of(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return {{"name", tensor.name},
            {"shape", writer_->shape(model_.shape(id))},
            {"dtype", std::string(dtype_name(tensor.dtype))}};
  }

  void write_rows(const Json& json, const Node& node, Json& nodes) {
    const CachePair& pair = *model_.pair_of(node);
    Json copy = json;
    set_member(copy, "op_type", "aten.index_copy.default");
    const TensorId past = node.inputs[0];
    const TensorId fresh = node.inputs.back();
    set_member(copy, "inputs",
               Json::array({mention_of(past), writer_->positions(), mention_of(fresh)}));
    // The state has the capacity from its first step on.
    Json& state = (*find_member(copy, "inputs"))[0];
    state["shape"] = writer_->shape(model_.shape(node.outputs[0]));
    set_member(copy, "attrs", {{"dim", pair.axis}});
    write_shapes(*find_member(copy, "outputs"));
    nodes.push_back(std::move(copy));
  }

  /// Shapes of tensors that mentions name.
  void write_shapes(Json& mentions) const {
    for (Json& mention : mentions) {
      const TensorId id = graph_.find_tensor(*member_text(mention, "name"));
      if (id.valid()) set_member(mention, "shape", writer_->shape(model_.shape(id)));
    }
  }

  /// Attributes that are numbers of rows.
  void write_sizes(NodeId id, Json& value) {
    if (value.is_object()) {
      for (auto& [key, each] : value.get_ref<Json::object_t&>()) write_sizes(id, each);
    } else if (value.is_array()) {
      for (Json& each : value) write_sizes(id, each);
    } else if (value.is_string()) {
      const auto size = model_.size_of(value);
      if (!size || !model_.has_past(*size)) return;
      if (*size != model_.caches().total) {
        return refuse(id, "takes the size " + size->text() + ", which is not that of all rows");
      }
      value = writer_->size(*size);
    }
  }

  /// Inputs and outputs of the graph.
  void write_ends(Json& document) {
    Json inputs = Json::array();
    for (const Json& mention : *member_list(document, "graph_inputs")) {
      const TensorId id = graph_.find_tensor(*member_text(mention, "name"));
      Json copy = mention;
      const CachePair* pair = nullptr;
      for (const CachePair& each : model_.caches().pairs) {
        if (each.input == graph_.tensor(id).name) pair = &each;
      }
      if (pair != nullptr) {
        set_member(copy, "shape", writer_->shape(model_.shape(graph_.find_tensor(pair->output))));
      }
      if (id != inputs_.mask && id != inputs_.start) inputs.push_back(std::move(copy));
    }
    if (!inputs_.positions.valid()) inputs.push_back(writer_->position_input());
    set_member(document, "graph_inputs", std::move(inputs));
    Json& outputs = *find_member(document, "graph_outputs");
    write_shapes(outputs);
    for (Json& mention : outputs) {
      for (const CachePair& pair : model_.caches().pairs) {
        if (*member_text(mention, "name") != pair.output) continue;
        const Node& node = graph_.node(graph_.find_node(pair.node));
        mention = mention_of(node.outputs[0]);
      }
    }
    for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
      const TensorId id = graph_.graph_outputs()[i];
      const NodeId producer = graph_.tensor(id).producer;
      const bool is_placed = producer.valid() && fates_[index_of(producer.value)] == Fate::kPlaced;
      if (!follows_[id] && !is_placed) continue;
      diagnostics_.error({.file = model_.model().file()},
                         "output '" + short_text(graph_.tensor(id).name) +
                             "' is computed of the number of past rows alone");
    }
  }

  /// npu.states, npu.generate and npu.symbols.
  void write_sections(Json& document) {
    Json states = Json::array();
    for (const CachePair& pair : model_.caches().pairs) {
      const Node& node = graph_.node(graph_.find_node(pair.node));
      states.push_back({{"name", pair.input},
                        {"input", pair.input},
                        {"output", graph_.tensor(node.outputs[0]).name},
                        {"axis", pair.axis}});
    }
    Json& npu = *find_member(document, "npu");
    Json symbols = Json::object();
    for (const auto& [name, stated] : find_member(npu, "symbols")->get_ref<Json::object_t&>()) {
      if (name == model_.caches().past_symbol) continue;
      if (model_.caches().substitution.contains(name)) continue;
      Json symbol = stated;
      symbol.erase("of");
      if (SizeExpression::symbol(name) == model_.caches().fresh) {
        const auto most = member_integer(symbol, "max");
        set_member(symbol, "max", std::min(most.value_or(capacity_), capacity_));
      }
      set_member(symbols, name, std::move(symbol));
    }
    if (symbols.empty()) {
      npu.erase("symbols");
    } else {
      set_member(npu, "symbols", std::move(symbols));
    }
    set_member(npu, "states", std::move(states));
    append_states(document, others_);
    if (inputs_.tokens.valid() && inputs_.logits.valid()) {
      set_member(npu, "generate",
                 {{"tokens", graph_.tensor(inputs_.tokens).name},
                  {"positions", *member_text(writer_->position_input(), "name")},
                  {"logits", graph_.tensor(inputs_.logits).name}});
    }
  }

  const PastModel& model_;
  const Graph& graph_;
  const DecoderInputs& inputs_;
  std::int64_t capacity_;
  const std::vector<State>& others_;
  Diagnostics& diagnostics_;
  mutable PastFollower follower_;
  std::vector<Fate> fates_;
  IdVector<TensorId, char> follows_;
  std::map<std::int32_t, KeyAxis> keys_;
  std::map<std::int32_t, Placed> placed_;
  std::map<std::int32_t, NodeId> unknown_;  // tensors, and the first node that made them so
  std::set<std::int32_t> unmasked_;
  std::set<std::int32_t> refused_;  // tensors
  PastWriter* writer_ = nullptr;
  PlaceWriter* placer_ = nullptr;
};

}  // namespace

std::optional<Json> adopted_document(const PastModel& model, const DecoderInputs& inputs,
                                     std::int64_t capacity, const std::vector<State>& others,
                                     Diagnostics& diagnostics) {
  return Adopter(model, inputs, capacity, others, diagnostics).run();
}

}  // namespace npu::states

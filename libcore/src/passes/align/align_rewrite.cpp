// SPDX-License-Identifier: Apache-2.0
// Inserts channel_norms and writes modes.
//
// The row-major form of a tensor keeps the tensor's name, whichever of the two its producer makes;
// the aligned form gets a name of its own. So the names of graph outputs, of partitions' inputs and
// outputs and of transferred tensors never change. O(nodes + edges).
#include "passes/align/align_rewrite.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "passes/align/fusion_update.hpp"
#include "passes/align/plan_update.hpp"

namespace npu::align {
namespace {

// An operand at which a node reads a tensor.
struct Read {
  NodeId node;
  std::int32_t operand = 0;
};

// All reads of each tensor, in node and operand order. O(edges), so that a node of many operands is
// not searched for each of them.
class ReadIndex {
 public:
  explicit ReadIndex(const Graph& graph) : offsets_(graph.tensors().size() + 1, 0) {
    for (const Node& node : graph.nodes()) {
      for (const TensorId input : node.inputs) ++offsets_[index_of(input) + 1];
    }
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    reads_.resize(offsets_.back());
    std::vector<std::size_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
      const std::vector<TensorId>& inputs = graph.node(id).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        reads_[next[index_of(inputs[i])]++] = {id, static_cast<std::int32_t>(i)};
      }
    }
  }

  std::span<const Read> of(TensorId tensor, NodeId node) const {
    const auto begin = reads_.begin() + static_cast<std::ptrdiff_t>(offsets_[index_of(tensor)]);
    const auto end = reads_.begin() + static_cast<std::ptrdiff_t>(offsets_[index_of(tensor) + 1]);
    const auto before = [](const auto& a, const auto& b) { return a.node < b.node; };
    const auto [first, last] = std::equal_range(begin, end, Read{node, 0}, before);
    return {first, last};
  }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<Read> reads_;
};

class Inserter {
 public:
  Inserter(Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes,
           AlignResult& result)
      : graph_(graph),
        problem_(problem),
        modes_(modes),
        result_(result),
        reads_(graph),
        editor_(graph) {
    for (std::size_t f = 0; f < graph.folded().size(); ++f) {
      const std::vector<TensorId>& inputs = graph.folded()[f].node.inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        folded_readers_.emplace(inputs[i].value, std::pair{f, i});
      }
    }
  }

  void run(const std::vector<Conversion>& conversions) {
    PlanUpdate plans(graph_);
    split_groups();
    for (const Conversion& conversion : conversions) insert(conversion);
    for (std::size_t v = 0; v < problem_.values.size(); ++v) bypass(problem_.values[v]);
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      write_mode(id_at<NodeId>(n));
    }
    editor_.commit();
    if (!conversions.empty()) plans.finish(graph_, partition_of_new_);
    // The document already describes the groups that an earlier run has split.
    const auto first_new =
        result_.splits.end() - static_cast<std::ptrdiff_t>(problem_.splits.size());
    update_fusion(graph_, {first_new, result_.splits.end()});
  }

 private:
  AlignMode mode_of(NodeId id) const {
    const std::int32_t unit = problem_.unit_of[index_of(id)];
    return unit < 0 ? AlignMode::kUnknown : modes_[index_of(unit)];
  }

  // Runs of members with one mode, in list order, are convex if the whole group is.
  void split_groups() {
    if (problem_.splits.empty()) return;
    std::int64_t next = 0;
    std::unordered_map<std::int64_t, std::size_t> split_of;
    for (std::size_t s = 0; s < result_.splits.size(); ++s) {
      if (result_.splits[s].groups.empty()) split_of.emplace(result_.splits[s].group, s);
    }
    for (const Node& node : graph_.nodes()) {
      if (node.fusion_group) next = std::max(next, *node.fusion_group + 1);
    }
    std::unordered_map<std::int64_t, AlignMode> last;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      Node& node = graph_.nodes()[n];
      if (!node.fusion_group) continue;
      const auto where = split_of.find(*node.fusion_group);
      if (where == split_of.end()) continue;
      AlignSplit& split = result_.splits[where->second];
      const AlignMode mode = mode_of(id_at<NodeId>(n));
      if (split.groups.empty()) {
        split.groups.push_back(split.group);
      } else if (mode != last[split.group]) {
        split.groups.push_back(next++);
      }
      last[split.group] = mode;
      node.fusion_group = split.groups.back();
    }
  }

  void insert(const Conversion& conversion) {
    const Value& value = problem_.values[index_of(conversion.value)];
    const Region& region = problem_.regions[index_of(value.region)];
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    const std::string layout = aligned_layout_name(region.rules.layout);
    // What comes from outside a region is row-major, perhaps made so by a conversion there.
    const auto outside = row_major_source_.find(value.tensor.value);
    const TensorSource before = value.producer < 0 && outside != row_major_source_.end()
                                    ? outside->second
                                    : source_of(graph_, value.tensor);
    const std::string aligned = editor_.unique_name(tensor.name + "_aligned");
    const std::string name =
        conversion.to_nalign ? editor_.unique_name(tensor.name + "_unaligned") : aligned;
    const std::string& reads = conversion.to_nalign ? aligned : tensor.name;
    const std::string& makes = conversion.to_nalign ? tensor.name : aligned;
    Json output = tensor_mention(makes, tensor.shape, tensor.dtype);
    if (!conversion.to_nalign) output["layout"] = layout;
    Json node = {
        {"name", name},
        {"op_type", kChannelNorm},
        {"inputs", Json::array({tensor_mention(reads, tensor.shape, tensor.dtype, before)})},
        {"outputs", Json::array({std::move(output)})},
        {"attrs", {{"direction", conversion.to_nalign}, {"layout", layout}}}};
    const NodeId first = first_user(value, conversion);
    const NodeId beside = conversion.to_nalign ? tensor.producer : first;
    if (const auto& device = graph_.node(beside).device) node["device"] = *device;
    if (const auto& partition = graph_.node(beside).partition) node["partition"] = *partition;
    node["align_mode"] =
        align_mode_name(conversion.to_nalign ? AlignMode::kNalign : AlignMode::kAlign);
    if (region.partition >= 0) partition_of_new_.emplace(name, region.partition);
    connect(value, conversion, name, aligned);
    editor_.insert_before(first.valid() ? first : NodeId{tensor.producer.value + 1},
                          std::move(node));
    record(value, conversion, name, aligned);
  }

  // Users want the new form, or do not care and run in its mode.
  bool reads_copy(const Use& use, const Conversion& conversion) const {
    return (problem_.required(use, modes_) == AlignMode::kNalign) == conversion.to_nalign;
  }

  // The first node that needs the copy; where the copy takes over the tensor's name that is whoever
  // reads the tensor.
  NodeId first_user(const Value& value, const Conversion& conversion) const {
    NodeId first;
    const auto consider = [&](NodeId id) {
      if (!first.valid() || id < first) first = id;
    };
    for (const Use& use : value.uses) {
      if (reads_copy(use, conversion)) consider(use.node);
    }
    if (!conversion.to_nalign) return first;
    for (const NodeId consumer : graph_.tensor(value.tensor).consumers) {
      if (problem_.region_of[index_of(consumer)] != value.region || !only_wants(value, consumer)) {
        consider(consumer);
      }
    }
    return first;
  }

  // True if every operand at which the node reads the tensor wants it ALIGN.
  bool only_wants(const Value& value, NodeId node) const {
    const std::span<const Read> reads = reads_.of(value.tensor, node);
    return std::all_of(reads.begin(), reads.end(),
                       [&](const Read& read) { return stays_aligned(value, node, read.operand); });
  }

  // Whether an operand in the value's region goes on reading what an ALIGN producer makes.
  bool stays_aligned(const Value& value, NodeId node, std::int32_t operand) const {
    const auto use =
        std::lower_bound(value.uses.begin(), value.uses.end(), std::pair{node, operand},
                         [](const Use& a, const std::pair<NodeId, std::int32_t>& b) {
                           return std::pair{a.node, a.operand} < b;
                         });
    if (use != value.uses.end() && use->node == node && use->operand == operand) {
      return problem_.required(*use, modes_) == AlignMode::kAlign;
    }
    return mode_of(node) == AlignMode::kAlign;  // a broadcast operand, or inside a unit
  }

  void connect(const Value& value, const Conversion& conversion, const std::string& node,
               const std::string& aligned) {
    if (!conversion.to_nalign) {
      for (const Use& use : value.uses) {
        if (reads_copy(use, conversion))
          editor_.set_operand(use.node, use.operand, aligned, {node, 0});
      }
      return;
    }
    // The copy takes the name over; what stays aligned reads the producer under its new name.
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    const TensorSource producer = source_of(graph_, value.tensor);
    editor_.set_source(value.tensor, {node, 0});
    row_major_source_.emplace(value.tensor.value, TensorSource{node, 0});
    for (const NodeId consumer : tensor.consumers) {
      if (problem_.region_of[index_of(consumer)] != value.region) continue;
      for (const Read& read : reads_.of(value.tensor, consumer)) {
        if (stays_aligned(value, consumer, read.operand)) {
          editor_.set_operand(consumer, index_of(read.operand), aligned, producer);
        }
      }
    }
    // A folded node reads a shape, which both forms have, and may stand in front of the copy.
    const auto folded = folded_readers_.equal_range(value.tensor.value);
    for (auto reader = folded.first; reader != folded.second; ++reader) {
      const auto [node_index, operand] = reader->second;
      editor_.set_operand(graph_.folded()[node_index], operand, aligned, producer);
    }
    Json& outputs = editor_.json(tensor.producer)["outputs"];
    outputs[index_of(tensor.result)]["name"] = aligned;
  }

  // A reader of an existing channel_norm's result that wants the other form reads its operand.
  void bypass(const Value& value) {
    if (value.producer < 0 || !problem_.units[index_of(value.producer)].is_channel_norm) return;
    const Unit& unit = problem_.units[index_of(value.producer)];
    const AlignMode made = modes_[index_of(value.producer)];
    const TensorId input = graph_.node(unit.members.front()).inputs.front();
    for (const Use& use : value.uses) {
      if (problem_.required(use, modes_) == made) continue;
      const Edge edge = form_of(input, value.region,
                                made == AlignMode::kAlign ? AlignMode::kNalign : AlignMode::kAlign);
      editor_.set_operand(use.node, use.operand, edge.name, edge.source);
      result_.removed.push_back(
          {graph_.tensor(input).name, made == AlignMode::kAlign, "cancelled"});
    }
  }

  struct Edge {
    std::string name;
    TensorSource source;
  };
  // A tensor as it is called in one of its forms after insertion.
  Edge form_of(TensorId id, std::int32_t region, AlignMode form) const {
    const TensorInfo& tensor = graph_.tensor(id);
    const auto found = conversion_of_.find({id, problem_.regions[index_of(region)].partition});
    if (found != conversion_of_.end()) {
      const AlignConversion& conversion = result_.conversions[found->second];
      const bool copy = conversion.to_nalign == (form == AlignMode::kNalign);
      return {form == AlignMode::kNalign ? tensor.name : conversion.aligned,
              copy ? TensorSource{conversion.node, 0} : source_of(graph_, id)};
    }
    return {tensor.name, source_of(graph_, id)};
  }

  void record(const Value& value, const Conversion& conversion, const std::string& node,
              const std::string& aligned) {
    const Region& region = problem_.regions[index_of(value.region)];
    conversion_of_.emplace(std::pair{value.tensor, region.partition}, result_.conversions.size());
    result_.conversions.push_back(
        {.tensor = graph_.tensor(value.tensor).name,
         .aligned = aligned,
         .node = node,
         .to_nalign = conversion.to_nalign,
         .existed = false,
         .bytes = conversion.to_nalign ? value.plain_bytes : value.aligned_bytes,
         .predicted_us = conversion.to_nalign ? value.to_nalign_us : value.to_align_us,
         .device = region.device,
         .partition = region.partition,
         .users = {},
         .from = {},
         .from_rule = {},
         .to = {},
         .to_rule = {}});
  }

  // That of a result which differs from row-major; empty for others.
  std::string layout_of(NodeId id, AlignMode mode, TensorId result) const {
    if (mode != AlignMode::kAlign) return {};
    const AlignRules& rules = problem_.regions[index_of(problem_.region_of[index_of(id)])].rules;
    if (!same_in_both(graph_.tensor(result), rules).empty()) return {};
    return std::string(aligned_layout_name(rules.layout));
  }

  void write_mode(NodeId id) {
    Node& node = graph_.node(id);
    const AlignMode mode = mode_of(id);
    if (mode == AlignMode::kUnknown) {
      node.json.erase("align_mode");
    } else {
      node.json["align_mode"] = align_mode_name(mode);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string layout = layout_of(id, mode, node.outputs[i]);
      // A list that was read in the usual form has no layouts.
      if (layout.empty() && mention_form(*find_member(node.json, "outputs"))) continue;
      Json& output = editor_.json(id)["outputs"][i];
      output.erase("layout");
      if (!layout.empty()) output["layout"] = layout;
    }
  }

  Graph& graph_;
  const Problem& problem_;
  const std::vector<AlignMode>& modes_;
  AlignResult& result_;
  ReadIndex reads_;
  std::unordered_multimap<std::int32_t, std::pair<std::size_t, std::size_t>>
      folded_readers_;  // by tensor: the place of the folded node, and its operand
  GraphEditor editor_;
  std::map<std::pair<TensorId, std::int64_t>, std::size_t>
      conversion_of_;  // by tensor and partition: the first in result_
  std::unordered_map<std::int32_t, TensorSource>
      row_major_source_;  // by tensor, where it is converted
  std::unordered_map<std::string, std::int64_t> partition_of_new_;
};

}  // namespace

void rewrite_graph(Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes,
                   const std::vector<Conversion>& conversions, AlignResult& result) {
  Inserter(graph, problem, modes, result).run(conversions);
}

}  // namespace npu::align

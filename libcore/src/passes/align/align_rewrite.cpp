// SPDX-License-Identifier: Apache-2.0
// Takes channel_norms out of a document and puts others in.
//
// The row-major form of a tensor keeps the tensor's name, whichever of the two its producer makes;
// the aligned form gets a name of its own. So the names of graph outputs, of partitions' inputs and
// outputs and of transferred tensors never change. Mentions are edited in the JSON that was read,
// and the document is assembled again, which verifies it. O(nodes + edges).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "npu/cost/cost_model.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/support/checked.hpp"
#include "passes/align/align_problem.hpp"

namespace npu::align {
namespace {

std::size_t at(NodeId id) { return static_cast<std::size_t>(id.value); }
std::size_t at(TensorId id) { return static_cast<std::size_t>(id.value); }
std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Who produces a tensor, as a mention says it. A graph input names itself.
struct Source {
  std::string node;
  std::int32_t index = 0;
};

Source source_of(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  if (tensor.kind == TensorKind::kResult) return {graph.node(tensor.producer).name, tensor.result};
  return {tensor.name, 0};
}

/// Collects edits of a document and carries them out in one go.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph)
      : graph_(graph), tensors_(graph.tensors().size()), removed_(graph.nodes().size(), 0) {}

  void rename(TensorId id, std::string name) { tensors_[at(id)].name = std::move(name); }
  void set_source(TensorId id, Source source) { tensors_[at(id)].source = std::move(source); }
  /// One operand of one node reads another tensor.
  void set_operand(NodeId node, std::int32_t operand, std::string name, Source source) {
    operands_[{node.value, operand}] = {std::move(name), std::move(source)};
  }
  void remove(NodeId id) { removed_[at(id)] = 1; }
  void insert_before(std::int32_t position, Json node) {
    inserted_[position].push_back(std::move(node));
  }
  Json& json(NodeId id) { return graph_.node(id).json; }

  void finish() {
    Json nodes = Json::array();
    for (std::size_t n = 0; n <= graph_.nodes().size(); ++n) {
      if (const auto here = inserted_.find(static_cast<std::int32_t>(n)); here != inserted_.end()) {
        for (Json& node : here->second) nodes.push_back(std::move(node));
      }
      if (n == graph_.nodes().size() || removed_[n] != 0) continue;
      edit_node(NodeId{static_cast<std::int32_t>(n)});
      nodes.push_back(std::move(graph_.nodes()[n].json));
    }
    Json document = std::move(graph_.document());
    Json& outputs = document["graph_outputs"];
    for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
      edit_mention(outputs[i], tensors_[at(graph_.graph_outputs()[i])]);
    }
    document["nodes"] = std::move(nodes);
    Diagnostics diagnostics;
    Graph edited = assemble_graph(std::move(document), graph_.file, diagnostics);
    if (diagnostics.has_errors()) {
      throw std::logic_error("the aligned document is not valid: " +
                             format_diagnostic(diagnostics.entries().front()));
    }
    graph_ = std::move(edited);
  }

 private:
  struct Edit {
    std::optional<std::string> name;
    std::optional<Source> source;
  };

  // A mention that names no producer need not begin to; so what is undone leaves no trace.
  static void edit_mention(Json& mention, const Edit& edit) {
    if (edit.name) mention["name"] = *edit.name;
    if (!edit.source) return;
    if (Json* node = find_member(mention, "producer_node"); node != nullptr && !node->is_null()) {
      *node = edit.source->node;
    }
    if (Json* index = find_member(mention, "producer_output_idx");
        index != nullptr && !index->is_null()) {
      *index = edit.source->index;
    }
  }

  // Typed fields win over what was read; once they stand in the JSON the reader finds them there.
  static void store_fields(Node& node) {
    const auto store = [&](const char* key, const auto& value) {
      if (value) {
        node.json[key] = *value;
      } else if (const Json* old = find_member(node.json, key); old != nullptr && !old->is_null()) {
        node.json.erase(key);
      }
    };
    store("device", node.device);
    store("device_reason", node.device_reason);
    store("fusion_group", node.fusion_group);
    store("partition", node.partition);
  }

  void edit_node(NodeId id) {
    Node& node = graph_.node(id);
    store_fields(node);
    if (!node.inputs.empty()) {
      Json& inputs = node.json["inputs"];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const auto own = operands_.find({id.value, static_cast<std::int32_t>(i)});
        edit_mention(inputs[i],
                     own == operands_.end() ? tensors_[at(node.inputs[i])] : own->second);
      }
    }
    if (!node.outputs.empty()) {
      Json& outputs = node.json["outputs"];
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        // A result's producer is its node, whatever becomes of its readers.
        edit_mention(outputs[i], {tensors_[at(node.outputs[i])].name, std::nullopt});
      }
    }
  }

  Graph& graph_;
  std::vector<Edit> tensors_;
  std::vector<char> removed_;
  std::map<std::pair<std::int32_t, std::int32_t>, Edit> operands_;
  std::map<std::int32_t, std::vector<Json>> inserted_;
};

bool is_channel_norm(const Node& node) {
  return node.op_type == kChannelNorm && node.inputs.size() == 1 && node.outputs.size() == 1;
}

// True if something reads a tensor that does not run with the node: its name has to stay.
bool is_visible(const Graph& graph, TensorId id, const Node& beside) {
  const auto& outputs = graph.graph_outputs();
  if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return true;
  for (const NodeId consumer : graph.tensor(id).consumers) {
    const Node& node = graph.node(consumer);
    if (node.device != beside.device || node.partition != beside.partition) return true;
  }
  return false;
}

std::string row_major_name(const Json& conversion) {
  const Json* tensor = find_member(conversion, "tensor");
  return tensor != nullptr && tensor->is_string() ? tensor->get<std::string>() : std::string();
}

// ---- npu.partition and npu.fusion ----

double channel_norm_us(const Graph& graph, const Device& device, std::string_view only_device) {
  double total = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!is_channel_norm(node) || (!only_device.empty() && node.device != only_device)) continue;
    total += roofline_cost().node_us(graph, NodeId{static_cast<std::int32_t>(n)}, device);
  }
  return std::round(total * 1000);  // nanoseconds, so that taking it off again leaves nothing
}

void add_us(Json& metrics, const std::string& key, double nanoseconds) {
  Json* value = find_member(metrics, key);
  if (value == nullptr || !value->is_number() || nanoseconds == 0) return;
  *value = std::round(value->get<double>() * 1000 + nanoseconds) / 1000;
}

/// What plans say of channel_norms, to be taken off and added again around a change.
class PlanUpdater {
 public:
  explicit PlanUpdater(const Graph& graph) {
    if (graph.npu_member("target") != nullptr) target_ = graph_target(graph);
    account(graph, -1);
  }

  /// `joined`: new nodes and the partitions that they run in.
  void finish(Graph& graph, const std::unordered_map<std::string, std::int64_t>& joined) {
    account(graph, 1);
    const Json* known = graph.npu_member("partition");
    if (known == nullptr) return;
    Json plan = *known;
    update_partitions(graph, plan, joined);
    if (Json* metrics = find_member(plan, "metrics")) {
      for (const auto& [key, nanoseconds] : us_) add_us(*metrics, key, nanoseconds);
      for (const auto& [key, count] : nodes_) {
        Json* value = find_member(*metrics, key);
        if (value != nullptr && value->is_number_integer()) {
          *value = value->get<std::int64_t>() + count;
        }
      }
    }
    graph.set_npu_member("partition", std::move(plan));
  }

 private:
  void account(const Graph& graph, int sign) {
    for (const Node& node : graph.nodes()) {
      if (is_channel_norm(node) && node.device) nodes_["nodes_" + *node.device] += sign;
    }
    if (!target_) return;
    for (const Device& device : target_->devices) {
      us_["predicted_us"] += sign * channel_norm_us(graph, device, device.name);
    }
    const Device& last = target_->devices.back();
    us_["all_" + last.name + "_us"] += sign * channel_norm_us(graph, last, {});
  }

  static void update_partitions(const Graph& graph, Json& plan,
                                const std::unordered_map<std::string, std::int64_t>& joined) {
    Json* partitions = find_member(plan, "partitions");
    if (partitions == nullptr || !partitions->is_array()) return;
    std::vector<std::vector<NodeId>> members(partitions->size());
    std::unordered_map<std::string, std::size_t> partition_of;
    for (std::size_t p = 0; p < partitions->size(); ++p) {
      const Json* nodes = find_member((*partitions)[p], "nodes");
      if (nodes == nullptr || !nodes->is_array()) return;
      for (const Json& name : *nodes) {
        if (name.is_string()) partition_of.emplace(name.get<std::string>(), p);
      }
    }
    for (const auto& [name, p] : joined) partition_of.emplace(name, static_cast<std::size_t>(p));
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const auto where = partition_of.find(graph.nodes()[n].name);
      if (where != partition_of.end()) {
        members[where->second].push_back(NodeId{static_cast<std::int32_t>(n)});
      }
    }
    for (std::size_t p = 0; p < members.size(); ++p) {
      Json& partition = (*partitions)[p];
      const SubgraphBoundary boundary = find_boundary(graph, members[p]);
      const auto names = [&](const std::vector<TensorId>& tensors) {
        Json list = Json::array();
        for (const TensorId id : tensors) list.push_back(graph.tensor(id).name);
        return list;
      };
      Json nodes = Json::array();
      double flops = 0;
      double bytes = 0;
      for (const NodeId id : members[p]) {
        nodes.push_back(graph.node(id).name);
        flops += node_flops(graph, graph.node(id));
        bytes += node_bytes(graph, graph.node(id));
      }
      partition["nodes"] = std::move(nodes);
      partition["inputs"] = names(boundary.inputs);
      partition["outputs"] = names(boundary.outputs);
      partition["flops"] = saturating_integer(flops);
      partition["bytes"] = saturating_integer(bytes);
    }
  }

  std::optional<Target> target_;
  std::map<std::string, double> us_;           // metric, nanoseconds
  std::map<std::string, std::int64_t> nodes_;  // metric
};

// The names that groups list follow their members; a split group becomes several entries.
void update_fusion(Graph& graph, const std::vector<AlignSplit>& splits) {
  const Json* fusion = graph.npu_member("fusion");
  const Json* known = fusion == nullptr ? nullptr : find_member(*fusion, "groups");
  if (known == nullptr || !known->is_array()) return;
  std::unordered_map<std::int64_t, std::vector<NodeId>> members;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (const auto group = graph.nodes()[n].fusion_group) {
      members[*group].push_back(NodeId{static_cast<std::int32_t>(n)});
    }
  }
  const auto describe = [&](Json& entry, std::int64_t id) {
    const std::vector<NodeId>& nodes = members[id];
    const SubgraphBoundary boundary = find_boundary(graph, nodes);
    std::unordered_set<std::string_view> reads;
    std::unordered_set<std::string_view> makes;
    for (const NodeId node : nodes) {
      for (const TensorId input : graph.node(node).inputs) reads.insert(graph.tensor(input).name);
      for (const TensorId output : graph.node(node).outputs)
        makes.insert(graph.tensor(output).name);
    }
    for (const auto& [key, list, still] :
         {std::tuple("inputs", &boundary.inputs, &reads), {"outputs", &boundary.outputs, &makes}}) {
      Json* names = find_member(entry, key);
      if (names == nullptr || !names->is_array()) continue;
      std::vector<std::string> fresh;
      for (const TensorId tensor : *list) {
        const std::string& name = graph.tensor(tensor).name;
        if (std::find(names->begin(), names->end(), name) == names->end()) fresh.push_back(name);
      }
      Json updated = Json::array();
      auto next = fresh.begin();
      for (const Json& name : *names) {
        if (name.is_string() && still->contains(name.get_ref<const std::string&>())) {
          updated.push_back(name);
        } else if (next != fresh.end()) {
          updated.push_back(*next++);
        }
      }
      for (; next != fresh.end(); ++next) updated.push_back(*next);
      *names = std::move(updated);
    }
  };
  std::unordered_map<std::int64_t, const AlignSplit*> split_of;
  for (const AlignSplit& split : splits) split_of.emplace(split.group, &split);
  Json groups = Json::array();
  std::vector<Json> appended;
  for (const Json& old : *known) {
    const Json* id = find_member(old, "id");
    if (id == nullptr || !id->is_number_integer()) {
      groups.push_back(old);
      continue;
    }
    std::vector<std::int64_t> parts{id->get<std::int64_t>()};
    if (const auto split = split_of.find(parts.front()); split != split_of.end()) {
      parts = split->second->groups;
    }
    for (const std::int64_t part : parts) {
      Json entry = old;
      if (parts.size() > 1) {
        entry["id"] = part;
        Json nodes = Json::array();
        double flops = 0;
        double bytes = 0;
        for (const NodeId node : members[part]) {
          nodes.push_back(graph.node(node).name);
          flops += node_flops(graph, graph.node(node));
          bytes += node_bytes(graph, graph.node(node));
        }
        if (members[part].size() == 1) entry["pattern"] = "single";
        entry["nodes"] = std::move(nodes);
        if (find_member(entry, "flops") != nullptr) entry["flops"] = saturating_integer(flops);
        if (find_member(entry, "bytes") != nullptr) entry["bytes"] = saturating_integer(bytes);
        entry.erase("on_chip_bytes");
      }
      describe(entry, part);
      if (part == parts.front()) {
        groups.push_back(std::move(entry));
      } else {
        appended.push_back(std::move(entry));
      }
    }
  }
  // New ids are the places behind the old ones.
  std::stable_sort(appended.begin(), appended.end(),
                   [](const Json& a, const Json& b) { return a["id"] < b["id"]; });
  for (Json& entry : appended) groups.push_back(std::move(entry));
  Json updated = *fusion;
  updated["groups"] = std::move(groups);
  graph.set_npu_member("fusion", std::move(updated));
}

}  // namespace

// ---- removal ----

void remove_channel_norms(Graph& graph, const std::vector<Removal>& removals) {
  if (removals.empty()) return;
  PlanUpdater plans(graph);
  // Tensors that become one, with the name that this one gets.
  std::unordered_map<std::int32_t, TensorId> merged_into;
  std::unordered_map<std::int32_t, std::string> name_of;
  const auto root_of = [&](TensorId id) {
    for (auto next = merged_into.find(id.value); next != merged_into.end();
         next = merged_into.find(id.value)) {
      id = next->second;
    }
    return id;
  };
  Rewriter rewriter(graph);
  for (const Removal& removal : removals) {
    const Node& node = graph.node(removal.node);
    const TensorId result = node.outputs.front();
    const TensorId root = root_of(removal.by);
    merged_into[result.value] = root;
    const bool has_own_name =
        graph.tensor(root).kind == TensorKind::kResult && !is_visible(graph, root, node);
    const bool takes_name = removal.takes_name || is_visible(graph, result, node);
    if (has_own_name && takes_name) name_of[root.value] = graph.tensor(result).name;
    rewriter.remove(removal.node);
  }
  std::unordered_set<std::int32_t> touched;
  for (const auto& [from, to] : merged_into) {
    const TensorId root = root_of(to);
    if (name_of.contains(root.value)) touched.insert(root.value);
    const auto renamed = name_of.find(root.value);
    rewriter.rename(TensorId{from},
                    renamed == name_of.end() ? graph.tensor(root).name : renamed->second);
    rewriter.set_source(TensorId{from}, source_of(graph, root));
  }
  for (const std::int32_t root : touched) rewriter.rename(TensorId{root}, name_of.at(root));
  rewriter.finish();
  plans.finish(graph, {});
  update_fusion(graph, {});
}

std::vector<Removal> own_channel_norms(const Graph& graph) {
  std::vector<Removal> removals;
  const Json* layout = graph.npu_member("layout");
  const Json* conversions = layout == nullptr ? nullptr : find_member(*layout, "conversions");
  if (conversions == nullptr || !conversions->is_array()) return removals;
  for (const Json& conversion : *conversions) {
    const Json* existed = find_member(conversion, "existed");
    const Json* name = find_member(conversion, "node");
    if (name == nullptr || !name->is_string() || (existed != nullptr && *existed == true)) continue;
    const NodeId id = graph.find_node(name->get_ref<const std::string&>());
    if (!id.valid() || !is_channel_norm(graph.node(id))) continue;
    const Node& node = graph.node(id);
    const TensorId plain = converts_to_nalign(node) ? node.outputs.front() : node.inputs.front();
    if (graph.tensor(plain).name != row_major_name(conversion)) continue;
    removals.push_back({id, node.inputs.front(), converts_to_nalign(node)});
  }
  std::sort(removals.begin(), removals.end(),
            [](const Removal& a, const Removal& b) { return a.node < b.node; });
  return removals;
}

std::vector<Removal> idle_channel_norms(const Graph& graph, const Problem& problem,
                                        std::vector<AlignRemoval>& removed) {
  std::vector<Removal> removals;
  std::map<std::pair<std::int32_t, bool>, TensorId> first_of;  // by tensor and direction
  std::unordered_set<std::int32_t> gone;                       // results of removed nodes
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Node& node = graph.node(id);
    if (!is_channel_norm(node) || problem.region_of[n] < 0) continue;
    const TensorId input = node.inputs.front();
    const TensorId result = node.outputs.front();
    const TensorInfo& tensor = graph.tensor(input);
    const bool to_nalign = converts_to_nalign(node);
    const AlignRules& rules = problem.regions[at(problem.region_of[n])].rules;
    TensorId by;
    std::string cause;
    const auto twin = first_of.find({input.value, to_nalign});
    if (gone.contains(input.value)) continue;  // looked at again in the next round
    if (tensor.kind == TensorKind::kWeight) {
      by = input;
      cause = "constant";
    } else if (const std::string_view same = same_in_both(tensor, rules); !same.empty()) {
      by = input;
      cause = same;
    } else if (twin != first_of.end()) {
      by = twin->second;
      cause = "twice";
    } else if (graph.tensor(result).consumers.empty() && !is_visible(graph, result, node)) {
      by = input;
      cause = "unused";
    } else if (tensor.kind == TensorKind::kResult && is_channel_norm(graph.node(tensor.producer)) &&
               problem.region_of[at(tensor.producer)] == problem.region_of[n] &&
               converts_to_nalign(graph.node(tensor.producer)) != to_nalign) {
      by = graph.node(tensor.producer).inputs.front();
      cause = "cancelled";
    } else {
      first_of.emplace(std::pair{input.value, to_nalign}, result);
      continue;
    }
    // Both names are needed outside: the node is what makes them two tensors.
    const bool fixed = graph.tensor(by).kind != TensorKind::kResult || is_visible(graph, by, node);
    if (fixed && is_visible(graph, result, node)) continue;
    gone.insert(result.value);
    removals.push_back({id, by, false});
    removed.push_back({tensor.name, to_nalign, std::move(cause)});
  }
  return removals;
}

// ---- insertion ----

namespace {

class Inserter {
 public:
  Inserter(Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes,
           AlignResult& result)
      : graph_(graph), problem_(problem), modes_(modes), result_(result), rewriter_(graph) {}

  void run(const std::vector<Conversion>& conversions) {
    PlanUpdater plans(graph_);
    split_groups();
    for (const Conversion& conversion : conversions) insert(conversion);
    for (std::size_t v = 0; v < problem_.values.size(); ++v) bypass(problem_.values[v]);
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      write_mode(NodeId{static_cast<std::int32_t>(n)});
    }
    rewriter_.finish();
    if (!conversions.empty()) plans.finish(graph_, partition_of_new_);
    // Groups that an earlier run has split stand in the document as they are.
    const auto first_new =
        result_.splits.end() - static_cast<std::ptrdiff_t>(problem_.splits.size());
    update_fusion(graph_, {first_new, result_.splits.end()});
  }

 private:
  AlignMode mode_of(NodeId id) const {
    const std::int32_t unit = problem_.unit_of[at(id)];
    return unit < 0 ? AlignMode::kUnknown : modes_[at(unit)];
  }

  std::string unique_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; graph_.find_tensor(name).valid() || graph_.find_node(name).valid() ||
                    !taken_.insert(name).second;
         ++i) {
      name = wanted + "_" + std::to_string(i);
    }
    return name;
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
      const AlignMode mode = mode_of(NodeId{static_cast<std::int32_t>(n)});
      if (split.groups.empty()) {
        split.groups.push_back(split.group);
      } else if (mode != last[split.group]) {
        split.groups.push_back(next++);
      }
      last[split.group] = mode;
      node.fusion_group = split.groups.back();
    }
  }

  static Json mention(const TensorInfo& tensor, const std::string& name, const std::string& node,
                      std::int32_t index) {
    Json json = {{"name", name}, {"shape", tensor.shape}, {"dtype", dtype_name(tensor.dtype)}};
    if (!node.empty()) {
      json["producer_node"] = node;
      json["producer_output_idx"] = index;
    }
    return json;
  }

  void insert(const Conversion& conversion) {
    const Value& value = problem_.values[at(conversion.value)];
    const Region& region = problem_.regions[at(value.region)];
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    const std::string layout = aligned_layout_name(region.rules.layout);
    // From outside a region comes the row-major form, which a conversion there may make.
    const auto outside = row_major_source_.find(value.tensor.value);
    const Source before = value.producer < 0 && outside != row_major_source_.end()
                              ? outside->second
                              : source_of(graph_, value.tensor);
    const std::string aligned = unique_name(tensor.name + "_aligned");
    const std::string name =
        conversion.to_nalign ? unique_name(tensor.name + "_unaligned") : aligned;
    const std::string& reads = conversion.to_nalign ? aligned : tensor.name;
    const std::string& makes = conversion.to_nalign ? tensor.name : aligned;
    Json output = mention(tensor, makes, {}, 0);
    if (!conversion.to_nalign) output["layout"] = layout;
    Json node = {{"name", name},
                 {"op_type", kChannelNorm},
                 {"inputs", Json::array({mention(tensor, reads, before.node, before.index)})},
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
    rewriter_.insert_before(first.valid() ? first.value : tensor.producer.value + 1,
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
      if (problem_.region_of[at(consumer)] != value.region || !only_wants(value, consumer)) {
        consider(consumer);
      }
    }
    return first;
  }

  // True if every operand at which the node reads the tensor wants it ALIGN.
  bool only_wants(const Value& value, NodeId node) const {
    const auto& inputs = graph_.node(node).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == value.tensor && !stays_aligned(value, node, static_cast<std::int32_t>(i))) {
        return false;
      }
    }
    return true;
  }

  // Whether an operand in the value's region goes on reading what an ALIGN producer makes.
  bool stays_aligned(const Value& value, NodeId node, std::int32_t operand) const {
    for (const Use& use : value.uses) {
      if (use.node == node && use.operand == operand) {
        return problem_.required(use, modes_) == AlignMode::kAlign;
      }
    }
    return mode_of(node) == AlignMode::kAlign;  // a broadcast operand, or inside a unit
  }

  void connect(const Value& value, const Conversion& conversion, const std::string& node,
               const std::string& aligned) {
    if (!conversion.to_nalign) {
      for (const Use& use : value.uses) {
        if (reads_copy(use, conversion))
          rewriter_.set_operand(use.node, use.operand, aligned, {node, 0});
      }
      return;
    }
    // The copy takes the name over; what stays aligned reads the producer under its new name.
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    const Source producer = source_of(graph_, value.tensor);
    rewriter_.set_source(value.tensor, {node, 0});
    row_major_source_.emplace(value.tensor.value, Source{node, 0});
    for (const NodeId consumer : tensor.consumers) {
      if (problem_.region_of[at(consumer)] != value.region) continue;
      const auto& inputs = graph_.node(consumer).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto operand = static_cast<std::int32_t>(i);
        if (inputs[i] == value.tensor && stays_aligned(value, consumer, operand)) {
          rewriter_.set_operand(consumer, operand, aligned, producer);
        }
      }
    }
    Json& outputs = rewriter_.json(tensor.producer)["outputs"];
    outputs[at(tensor.result)]["name"] = aligned;
  }

  // A reader of an existing channel_norm's result that wants the other form reads its operand.
  void bypass(const Value& value) {
    if (value.producer < 0 || !problem_.units[at(value.producer)].is_channel_norm) return;
    const Unit& unit = problem_.units[at(value.producer)];
    const AlignMode made = modes_[at(value.producer)];
    const TensorId input = graph_.node(unit.members.front()).inputs.front();
    for (const Use& use : value.uses) {
      if (problem_.required(use, modes_) == made) continue;
      const Edge edge = form_of(input, value.region,
                                made == AlignMode::kAlign ? AlignMode::kNalign : AlignMode::kAlign);
      rewriter_.set_operand(use.node, use.operand, edge.name, edge.source);
      result_.removed.push_back(
          {graph_.tensor(input).name, made == AlignMode::kAlign, "cancelled"});
    }
  }

  struct Edge {
    std::string name;
    Source source;
  };
  // A tensor as it is called in one of its forms after insertion.
  Edge form_of(TensorId id, std::int32_t region, AlignMode form) const {
    const TensorInfo& tensor = graph_.tensor(id);
    for (const AlignConversion& conversion : result_.conversions) {
      if (conversion.tensor != tensor.name || conversion.existed ||
          conversion.partition != problem_.regions[at(region)].partition) {
        continue;
      }
      const bool copy = conversion.to_nalign == (form == AlignMode::kNalign);
      return {form == AlignMode::kNalign ? tensor.name : conversion.aligned,
              copy ? Source{conversion.node, 0} : source_of(graph_, id)};
    }
    return {tensor.name, source_of(graph_, id)};
  }

  void record(const Value& value, const Conversion& conversion, const std::string& node,
              const std::string& aligned) {
    const Region& region = problem_.regions[at(value.region)];
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

  void write_mode(NodeId id) {
    Json& json = rewriter_.json(id);
    const AlignMode mode = mode_of(id);
    if (mode == AlignMode::kUnknown) {
      json.erase("align_mode");
    } else {
      json["align_mode"] = align_mode_name(mode);
    }
    const Node& node = graph_.node(id);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(node.outputs[i]);
      Json& output = json["outputs"][i];
      output.erase("layout");
      if (mode != AlignMode::kAlign) continue;
      const AlignRules& rules = problem_.regions[at(problem_.region_of[at(id)])].rules;
      if (same_in_both(tensor, rules).empty()) output["layout"] = aligned_layout_name(rules.layout);
    }
  }

  Graph& graph_;
  const Problem& problem_;
  const std::vector<AlignMode>& modes_;
  AlignResult& result_;
  Rewriter rewriter_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::int32_t, Source> row_major_source_;  // by tensor, where it is converted
  std::unordered_map<std::string, std::int64_t> partition_of_new_;
};

}  // namespace

void rewrite_graph(Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes,
                   const std::vector<Conversion>& conversions, AlignResult& result) {
  Inserter(graph, problem, modes, result).run(conversions);
}

}  // namespace npu::align

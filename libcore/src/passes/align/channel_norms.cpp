// SPDX-License-Identifier: Apache-2.0
// Takes channel_norms out of a document: those of an earlier run, and those that do nothing.
//
// What read a removed node's result reads its operand, or whatever that one is merged into. Names
// that something outside the region reads stay. O(nodes + edges) for any number of nodes.
#include "passes/align/channel_norms.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph_editor.hpp"
#include "npu/support/ids.hpp"
#include "passes/align/align_section.hpp"
#include "passes/align/fusion_update.hpp"
#include "passes/align/plan_update.hpp"

namespace npu::align {
namespace {

// Which tensors have names that have to stay, since something reads them that does not run with
// them.
class Visibility {
 public:
  explicit Visibility(const Graph& graph) : graph_(graph), readers_(graph.tensors().size()) {
    for (const TensorId output : graph.graph_outputs()) readers_[output].apart = true;
  }

  bool is_visible(TensorId id, const Node& beside) {
    Readers& readers = readers_[id];
    if (!readers.known) find(id, readers);
    return readers.apart ||
           (readers.first.valid() && !together(graph_.node(readers.first), beside));
  }

 private:
  struct Readers {
    NodeId first;
    bool apart = false;  // do not all run together, or are outside the graph
    bool known = false;
  };

  static bool together(const Node& a, const Node& b) {
    return a.device == b.device && a.partition == b.partition;
  }

  void find(TensorId id, Readers& readers) {
    readers.known = true;
    for (const NodeId consumer : graph_.tensor(id).consumers) {
      if (!readers.first.valid()) readers.first = consumer;
      readers.apart = readers.apart || !together(graph_.node(readers.first), graph_.node(consumer));
    }
  }

  const Graph& graph_;
  IdVector<TensorId, Readers> readers_;
};

}  // namespace

bool is_channel_norm(const Node& node) {
  return node.op_type == kChannelNorm && node.inputs.size() == 1 && node.outputs.size() == 1;
}

void remove_channel_norms(Graph& graph, const std::vector<Removal>& removals) {
  if (removals.empty()) return;
  PlanUpdate plans(graph);
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
  GraphEditor editor(graph);
  Visibility names(graph);
  for (const Removal& removal : removals) {
    const Node& node = graph.node(removal.node);
    const TensorId result = node.outputs.front();
    const TensorId root = root_of(removal.by);
    merged_into[result.value] = root;
    const bool has_own_name =
        graph.tensor(root).kind == TensorKind::kResult && !names.is_visible(root, node);
    const bool takes_name = removal.takes_name || names.is_visible(result, node);
    if (has_own_name && takes_name) name_of[root.value] = graph.tensor(result).name;
    editor.remove(removal.node);
  }
  std::unordered_set<std::int32_t> touched;
  for (const auto& [from, to] : merged_into) {
    const TensorId root = root_of(to);
    if (name_of.contains(root.value)) touched.insert(root.value);
    const auto renamed = name_of.find(root.value);
    editor.rename(TensorId{from},
                  renamed == name_of.end() ? graph.tensor(root).name : renamed->second);
    editor.set_source(TensorId{from}, source_of(graph, root));
  }
  for (const std::int32_t root : touched) editor.rename(TensorId{root}, name_of.at(root));
  editor.commit();
  plans.finish(graph, {});
  update_fusion(graph, {});
}

std::vector<Removal> own_channel_norms(const Graph& graph) {
  std::vector<Removal> removals;
  const AlignLayout earlier = AlignLayout::from_json(graph.npu_member("layout"));
  for (const AlignConversion& conversion : earlier.conversions) {
    if (conversion.existed) continue;
    const NodeId id = graph.find_node(conversion.node);
    if (!id.valid() || !is_channel_norm(graph.node(id))) continue;
    const Node& node = graph.node(id);
    const TensorId plain = converts_to_nalign(node) ? node.outputs.front() : node.inputs.front();
    if (graph.tensor(plain).name != conversion.tensor) continue;
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
  Visibility names(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id = id_at<NodeId>(n);
    const Node& node = graph.node(id);
    if (!is_channel_norm(node) || problem.region_of[n] < 0) continue;
    const TensorId input = node.inputs.front();
    const TensorId result = node.outputs.front();
    const TensorInfo& tensor = graph.tensor(input);
    const bool to_nalign = converts_to_nalign(node);
    const AlignRules& rules = problem.regions[index_of(problem.region_of[n])].rules;
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
    } else if (graph.tensor(result).consumers.empty() && !names.is_visible(result, node)) {
      by = input;
      cause = "unused";
    } else if (tensor.kind == TensorKind::kResult && is_channel_norm(graph.node(tensor.producer)) &&
               problem.region_of[index_of(tensor.producer)] == problem.region_of[n] &&
               converts_to_nalign(graph.node(tensor.producer)) != to_nalign) {
      by = graph.node(tensor.producer).inputs.front();
      cause = "cancelled";
    } else {
      first_of.emplace(std::pair{input.value, to_nalign}, result);
      continue;
    }
    // Both names are needed outside: the node is what makes them two tensors.
    const bool fixed = graph.tensor(by).kind != TensorKind::kResult || names.is_visible(by, node);
    if (fixed && names.is_visible(result, node)) continue;
    gone.insert(result.value);
    removals.push_back({id, by, false});
    removed.push_back({tensor.name, to_nalign, std::move(cause)});
  }
  return removals;
}

}  // namespace npu::align

// SPDX-License-Identifier: Apache-2.0
// Brings npu.fusion up to date after conversions were inserted or removed.
//
// A group's inputs and outputs keep their order: a name that is no longer read or made gives its
// place to one that is new. O(members of groups + entries).
#include "passes/align/fusion_update.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "npu/ir/subgraph.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/support/checked.hpp"
#include "support/json_fields.hpp"

namespace npu::align {
namespace {

using Names = std::unordered_set<std::string_view>;

// Names in `now` that are not listed take the places of those that do not stand in `still`, then
// the end.
void update_names(const Graph& graph, const std::vector<TensorId>& now, const Names& still,
                  Json& names) {
  Names listed;
  for (const Json& name : names) {
    if (const std::string* text = json_text(&name)) listed.insert(*text);
  }
  std::vector<std::string> fresh;
  for (const TensorId tensor : now) {
    const std::string& name = graph.tensor(tensor).name;
    if (!listed.contains(name)) fresh.push_back(name);
  }
  Json updated = Json::array();
  auto next = fresh.begin();
  for (const Json& name : names) {
    const std::string* text = json_text(&name);
    if (text != nullptr && still.contains(*text)) {
      updated.push_back(name);
    } else if (next != fresh.end()) {
      updated.push_back(*next++);
    }
  }
  for (; next != fresh.end(); ++next) updated.push_back(*next);
  names = std::move(updated);
}

void update_borders(const Graph& graph, BoundaryFinder& boundaries,
                    const std::vector<NodeId>& members, Json& entry) {
  const SubgraphBoundary boundary = boundaries.find(members);
  Names reads;
  Names makes;
  for (const NodeId id : members) {
    for (const TensorId input : graph.node(id).inputs) reads.insert(graph.tensor(input).name);
    for (const TensorId output : graph.node(id).outputs) makes.insert(graph.tensor(output).name);
  }
  if (Json* names = find_member(entry, "inputs"); names != nullptr && names->is_array()) {
    update_names(graph, boundary.inputs, reads, *names);
  }
  if (Json* names = find_member(entry, "outputs"); names != nullptr && names->is_array()) {
    update_names(graph, boundary.outputs, makes, *names);
  }
}

// What a part of a split group no longer has in common with the whole.
void become_part(const Graph& graph, const std::vector<NodeId>& members, std::int64_t id,
                 Json& entry) {
  entry["id"] = id;
  Json nodes = Json::array();
  double flops = 0;
  double bytes = 0;
  for (const NodeId node : members) {
    nodes.push_back(graph.node(node).name);
    flops += node_flops(graph, graph.node(node));
    bytes += node_bytes(graph, graph.node(node));
  }
  if (members.size() == 1) entry["pattern"] = "single";
  entry["nodes"] = std::move(nodes);
  if (find_member(entry, "flops") != nullptr) entry["flops"] = saturating_integer(flops);
  if (find_member(entry, "bytes") != nullptr) entry["bytes"] = saturating_integer(bytes);
  entry.erase("on_chip_bytes");
}

}  // namespace

void update_fusion(Graph& graph, const std::vector<AlignSplit>& splits) {
  const Json* fusion = graph.npu_member("fusion");
  const Json* known = fusion == nullptr ? nullptr : member_list(*fusion, "groups");
  if (known == nullptr) return;
  std::unordered_map<std::int64_t, std::vector<NodeId>> members;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (const auto group = graph.node(id).fusion_group) members[*group].push_back(id);
  }
  std::unordered_map<std::int64_t, const AlignSplit*> split_of;
  for (const AlignSplit& split : splits) split_of.emplace(split.group, &split);
  BoundaryFinder boundaries(graph);
  Json groups = Json::array();
  std::vector<std::pair<std::int64_t, Json>> appended;
  for (const Json& old : *known) {
    const auto id = member_integer(old, "id");
    if (!id) {
      groups.push_back(old);
      continue;
    }
    const auto split = split_of.find(*id);
    const std::vector<std::int64_t> parts =
        split == split_of.end() ? std::vector{*id} : split->second->groups;
    for (const std::int64_t part : parts) {
      Json entry = old;
      if (parts.size() > 1) become_part(graph, members[part], part, entry);
      update_borders(graph, boundaries, members[part], entry);
      if (part == parts.front()) {
        groups.push_back(std::move(entry));
      } else {
        appended.emplace_back(part, std::move(entry));
      }
    }
  }
  // New ids are the places behind the old ones.
  std::stable_sort(appended.begin(), appended.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [id, entry] : appended) groups.push_back(std::move(entry));
  Json updated = *fusion;
  updated["groups"] = std::move(groups);
  graph.set_npu_member("fusion", std::move(updated));
}

}  // namespace npu::align

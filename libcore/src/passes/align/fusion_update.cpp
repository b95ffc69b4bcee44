// SPDX-License-Identifier: Apache-2.0
// Brings npu.fusion up to date after conversions were inserted or removed.
//
// A group's inputs and outputs keep their order: a name that is no longer read or produced gives
// its place to one that is new. O(members of groups + entries).
#include "passes/align/fusion_update.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/fusion_section.hpp"
#include "npu/ir/subgraph.hpp"
#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"

namespace npu::align {
namespace {

using Names = std::unordered_set<std::string_view>;

// Names in `now` that are not listed yet replace those that are not in `still`; the rest is
// appended.
void update_names(const Graph& graph, const std::vector<TensorId>& now, const Names& still,
                  std::vector<std::string>& names) {
  const Names listed(names.begin(), names.end());
  std::vector<std::string> fresh;
  for (const TensorId tensor : now) {
    const std::string& name = graph.tensor(tensor).name;
    if (!listed.contains(name)) fresh.push_back(name);
  }
  std::vector<std::string> updated;
  updated.reserve(now.size());
  auto next = fresh.begin();
  for (std::string& name : names) {
    if (still.contains(name)) {
      updated.push_back(std::move(name));
    } else if (next != fresh.end()) {
      updated.push_back(std::move(*next++));
    }
  }
  updated.insert(updated.end(), std::move_iterator(next), std::move_iterator(fresh.end()));
  names = std::move(updated);
}

bool are_named(const Graph& graph, const std::vector<TensorId>& tensors,
               const std::vector<std::string>& names) {
  return std::equal(
      tensors.begin(), tensors.end(), names.begin(), names.end(),
      [&](TensorId id, const std::string& name) { return graph.tensor(id).name == name; });
}

void update_borders(const Graph& graph, BoundaryFinder& boundaries,
                    const std::vector<NodeId>& members, FusionEntry& entry) {
  const SubgraphBoundary boundary = boundaries.find(members);
  if (entry.inputs && !are_named(graph, boundary.inputs, *entry.inputs)) {
    Names reads;
    for (const NodeId id : members) {
      for (const TensorId input : graph.node(id).inputs) reads.insert(graph.tensor(input).name);
    }
    update_names(graph, boundary.inputs, reads, *entry.inputs);
  }
  if (entry.outputs && !are_named(graph, boundary.outputs, *entry.outputs)) {
    Names makes;
    for (const NodeId id : members) {
      for (const TensorId output : graph.node(id).outputs) makes.insert(graph.tensor(output).name);
    }
    update_names(graph, boundary.outputs, makes, *entry.outputs);
  }
}

// Sets what differs between a part of a split group and the whole.
void become_part(const Graph& graph, const std::vector<NodeId>& members, std::int64_t id,
                 FusionEntry& entry) {
  entry.id = id;
  const NodeWork work = work_of(graph, members);
  std::vector<std::string>& nodes = entry.nodes.emplace();
  for (const NodeId node : members) nodes.push_back(graph.node(node).name);
  if (members.size() == 1) entry.pattern = "single";
  if (entry.flops) entry.flops = saturating_integer(work.flops);
  if (entry.bytes) entry.bytes = saturating_integer(work.bytes);
  entry.on_chip_bytes.reset();
}

}  // namespace

void update_fusion(Graph& graph, const std::vector<AlignSplit>& splits) {
  std::optional<FusionSection> fusion = FusionSection::take(graph);
  if (!fusion) return;
  std::unordered_map<std::int64_t, std::vector<NodeId>> members;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (const auto group = graph.node(id).fusion_group) members[*group].push_back(id);
  }
  std::unordered_map<std::int64_t, const AlignSplit*> split_of;
  for (const AlignSplit& split : splits) split_of.emplace(split.group, &split);
  BoundaryFinder boundaries(graph);
  std::vector<FusionEntry> appended;
  for (FusionEntry& entry : fusion->groups) {
    if (!entry.id) continue;
    const auto split = split_of.find(*entry.id);
    if (split != split_of.end() && split->second->groups.size() > 1) {
      const std::vector<std::int64_t>& parts = split->second->groups;
      for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
        FusionEntry& added = appended.emplace_back(entry);
        become_part(graph, members[*part], *part, added);
        update_borders(graph, boundaries, members[*part], added);
      }
      become_part(graph, members[parts.front()], parts.front(), entry);
    }
    update_borders(graph, boundaries, members[*entry.id], entry);
  }
  // New ids follow the old ones, and an id is a place in the list.
  std::stable_sort(appended.begin(), appended.end(),
                   [](const FusionEntry& a, const FusionEntry& b) { return a.id < b.id; });
  std::move(appended.begin(), appended.end(), std::back_inserter(fusion->groups));
  FusionSection::store(graph, std::move(*fusion));
}

}  // namespace npu::align

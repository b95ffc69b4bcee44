// SPDX-License-Identifier: Apache-2.0
// Brings npu.partition up to date around a change of channel_norms.
//
// Times are kept in whole nanoseconds, so that taking a conversion off again leaves nothing of it.
// O(nodes + edges).
#include "passes/align/plan_update.hpp"

#include <cmath>
#include <vector>

#include "ir/partition_section.hpp"
#include "npu/cost/cost_model.hpp"
#include "npu/ir/subgraph.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/align/channel_norms.hpp"
#include "support/checked.hpp"

namespace npu::align {
namespace {

double channel_norm_us(const Graph& graph, const Device& device, std::string_view only_device) {
  double total = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!is_channel_norm(node) || (!only_device.empty() && node.device != only_device)) continue;
    total += roofline_cost().node_us(graph, id_at<NodeId>(n), device);
  }
  return std::round(total * 1000);  // nanoseconds, so that taking it off again leaves nothing
}

/// The partition that every node is in, by name; nothing if a list of names is missing.
std::optional<std::unordered_map<std::string, std::size_t>> members_of(
    const PartitionSection& section) {
  std::unordered_map<std::string, std::size_t> partition_of;
  for (std::size_t p = 0; p < section.partitions.size(); ++p) {
    const auto& nodes = section.partitions[p].nodes;
    if (!nodes) return std::nullopt;
    for (const std::string& name : *nodes) partition_of.emplace(name, p);
  }
  return partition_of;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorId id : tensors) names.push_back(graph.tensor(id).name);
  return names;
}

void update_partition(const Graph& graph, BoundaryFinder& boundaries,
                      const std::vector<NodeId>& members, PartitionEntry& partition) {
  const SubgraphBoundary boundary = boundaries.find(members);
  const NodeWork work = work_of(graph, members);
  std::vector<std::string>& nodes = partition.nodes.emplace();
  nodes.reserve(members.size());
  for (const NodeId id : members) nodes.push_back(graph.node(id).name);
  partition.inputs = names_of(graph, boundary.inputs);
  partition.outputs = names_of(graph, boundary.outputs);
  partition.flops = saturating_integer(work.flops);
  partition.bytes = saturating_integer(work.bytes);
}

void update_partitions(const Graph& graph, PartitionSection& section,
                       const std::unordered_map<std::string, std::int64_t>& joined) {
  auto partition_of = members_of(section);
  if (!partition_of) return;
  for (const auto& [name, p] : joined) partition_of->emplace(name, index_of(p));
  std::vector<std::vector<NodeId>> members(section.partitions.size());
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const auto where = partition_of->find(graph.node(id).name);
    if (where != partition_of->end()) members[where->second].push_back(id);
  }
  BoundaryFinder boundaries(graph);
  for (std::size_t p = 0; p < members.size(); ++p) {
    update_partition(graph, boundaries, members[p], section.partitions[p]);
  }
}

}  // namespace

PlanUpdate::PlanUpdate(const Graph& graph) {
  if (graph.npu_member("target") != nullptr) target_ = graph_target(graph);
  account(graph, -1);
}

void PlanUpdate::finish(Graph& graph, const std::unordered_map<std::string, std::int64_t>& joined) {
  account(graph, 1);
  std::optional<PartitionSection> section = PartitionSection::take(graph);
  if (!section) return;
  update_partitions(graph, *section, joined);
  for (const auto& [metric, nanoseconds] : us_) section->add_ns_to_metric(metric, nanoseconds);
  for (const auto& [metric, count] : nodes_) section->add_to_metric(metric, count);
  PartitionSection::store(graph, *std::move(section));
}

void PlanUpdate::account(const Graph& graph, int sign) {
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

}  // namespace npu::align

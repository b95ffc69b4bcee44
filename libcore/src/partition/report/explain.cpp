// SPDX-License-Identifier: Apache-2.0
// Explains why each operator is where it is, and what supporting it elsewhere would save.
//
// What-if plans the whole graph again for each operator and reason, with the given strategy and
// limits: the cost of a missing operator is not its own time, but the partitions and copies around
// it. Rows are also tried together from the top, since operators that only help in combination
// (layer norm and gelu of a transformer) rank low by themselves. O(rows) plans.
#include "partition/report/explain.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "ir/device_reason.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

PlacementStatus status_of(const Graph& graph, NodeId id, const Target& target) {
  const Node& node = graph.node(id);
  const DeviceReason reason = DeviceReason::of(node);
  if (reason.is_by_hand()) return PlacementStatus::kForced;
  if (node.device == target.devices.front().name) return PlacementStatus::kPreferred;
  if (reason.kind() == DeviceReason::Kind::kCheaper || reason.is_by_limit()) {
    return PlacementStatus::kMoved;
  }
  // npu-compile records the backend's message.
  if (node.op_type != kGetitem && !reason.is_preference() &&
      check_tagged_support(graph, id, target.devices.front()).supported) {
    return PlacementStatus::kFailed;
  }
  return PlacementStatus::kUnsupported;
}

/// The kind of change to the target or the model that is needed; nothing if already supported.
std::optional<WhatIfRow::Kind> change_for(const Graph& graph, NodeId id, const Target& target) {
  switch (status_of(graph, id, target)) {
    case PlacementStatus::kForced:
      if (!check_tagged_support(graph, id, target.devices.front()).supported) return std::nullopt;
      return WhatIfRow::Kind::kRelease;
    case PlacementStatus::kFailed:
      return WhatIfRow::Kind::kFix;
    case PlacementStatus::kUnsupported: {
      const DeviceReason::Kind reason = DeviceReason::of(graph.node(id)).kind();
      const bool no_op =
          reason == DeviceReason::Kind::kUnsupportedOp || reason == DeviceReason::Kind::kNone;
      return no_op ? WhatIfRow::Kind::kSupport : WhatIfRow::Kind::kRewrite;
    }
    case PlacementStatus::kMoved:
    case PlacementStatus::kPreferred:
      break;
  }
  return std::nullopt;
}

using Tags = std::vector<std::pair<std::optional<std::string>, std::optional<std::string>>>;

Tags tags_of(const Graph& graph) {
  Tags tags;
  for (const Node& node : graph.nodes()) tags.emplace_back(node.device, node.device_reason);
  return tags;
}

void set_tags(Graph& graph, const Tags& tags) {
  for (std::size_t n = 0; n < tags.size(); ++n) {
    graph.nodes()[n].device = tags[n].first;
    graph.nodes()[n].device_reason = tags[n].second;
  }
}

void put_on_first(Graph& graph, const Target& target, const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    graph.node(id).device = target.devices.front().name;
    graph.node(id).device_reason.reset();
    for (const TensorId output : graph.node(id).outputs) {
      for (const NodeId consumer : graph.tensor(output).consumers) {
        Node& node = graph.node(consumer);
        if (node.op_type != kGetitem) continue;
        node.device = target.devices.front().name;
        node.device_reason.reset();
      }
    }
  }
}

struct Candidate {
  WhatIfRow row;
  std::vector<NodeId> nodes;
};

std::vector<Candidate> candidates_of(const Graph& graph, const Target& target) {
  std::map<std::pair<std::string, std::string>, Candidate> found;
  const Device& first = target.devices.front();
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Node& node = graph.node(id);
    if (node.device == first.name || node.op_type == kGetitem) continue;
    const std::optional<WhatIfRow::Kind> kind = change_for(graph, id, target);
    if (!kind) continue;
    std::string reason = node.device_reason.value_or("");
    Candidate& candidate = found[{node.op_type, reason}];
    candidate.row.op_type = node.op_type;
    candidate.row.reason = std::move(reason);
    candidate.row.kind = *kind;
    ++candidate.row.count;
    candidate.nodes.push_back(id);
  }
  std::vector<Candidate> result;
  for (auto& [key, candidate] : found) result.push_back(std::move(candidate));
  return result;
}

}  // namespace

std::vector<OperatorRow> explain_placement(const Graph& graph, const Target& target) {
  std::map<std::tuple<std::size_t, std::string, PlacementStatus, std::string>, OperatorRow> rows;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::size_t device = 0;
    while (device < target.devices.size() && target.devices[device].name != node.device) ++device;
    const PlacementStatus status = status_of(graph, NodeId{static_cast<std::int32_t>(n)}, target);
    OperatorRow& row = rows[{device, node.op_type, status, node.device_reason.value_or("")}];
    row.op_type = node.op_type;
    row.device = node.device.value_or("");
    row.status = status;
    row.reason = node.device_reason.value_or("");
    ++row.count;
    row.flops += node_flops(graph, node);
    row.bytes += node_bytes(graph, node);
  }
  std::vector<std::pair<std::size_t, OperatorRow>> sorted;
  for (auto& [key, row] : rows) sorted.emplace_back(std::get<0>(key), std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, -a.second.count) < std::pair(b.first, -b.second.count);
  });
  std::vector<OperatorRow> result;
  for (auto& [device, row] : sorted) result.push_back(std::move(row));
  return result;
}

std::vector<WhatIfRow> find_what_if(Graph& graph, const Target& target, const Planner& planner) {
  const Tags tags = tags_of(graph);
  std::vector<Candidate> candidates = candidates_of(graph, target);
  for (Candidate& candidate : candidates) {
    set_tags(graph, tags);
    put_on_first(graph, target, candidate.nodes);
    candidate.row.alone = planner(graph);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    const PlanMetrics& first = a.row.alone;
    const PlanMetrics& second = b.row.alone;
    return std::tuple(first.predicted_us, first.partitions, first.copied_bytes) <
           std::tuple(second.predicted_us, second.partitions, second.copied_bytes);
  });
  std::vector<NodeId> nodes;
  std::vector<WhatIfRow> rows;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    Candidate& candidate = candidates[c];
    nodes.insert(nodes.end(), candidate.nodes.begin(), candidate.nodes.end());
    if (c == 0) {
      candidate.row.together = candidate.row.alone;
    } else {
      set_tags(graph, tags);
      put_on_first(graph, target, nodes);
      candidate.row.together = planner(graph);
    }
    rows.push_back(std::move(candidate.row));
  }
  set_tags(graph, tags);
  return rows;
}

}  // namespace npu

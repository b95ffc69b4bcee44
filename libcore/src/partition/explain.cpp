// SPDX-License-Identifier: Apache-2.0
// Says why each operator is where it is, and what supporting it elsewhere would save.
//
// What-if plans the whole graph again for each operator and reason, with the strategy and the
// limits at hand: what a missing operator costs is not its own time, but the partitions and copies
// around it. Rows are also tried together from the top, since operators that only help in company
// (layer norm and gelu of a transformer) rank low alone. O(rows) plans.
#include "npu/partition/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "npu/ops/op_catalogue.hpp"
#include "npu/passes.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/text.hpp"
#include "npu/target/support_check.hpp"
#include "partition/placement_problem.hpp"

namespace npu {
namespace {

constexpr std::string_view kGetitem = "<built-in function getitem>";

std::string short_name(std::string_view op_type) {
  if (op_type.starts_with("aten.")) op_type.remove_prefix(5);
  if (op_type.ends_with(".default")) op_type.remove_suffix(8);
  return std::string(op_type);
}

std::string status_of(const Graph& graph, NodeId id, const Target& target) {
  const Node& node = graph.node(id);
  const std::string_view reason = node.device_reason ? *node.device_reason : std::string_view();
  if (reason == "forced" || reason == "kept") return "forced";
  if (node.device == target.devices.front().name) return "preferred";
  if (reason.starts_with("compile")) return "failed";
  if (reason.starts_with("cheaper on ")) return "moved";
  for (const std::string_view limit : {"min nodes", "min flops", "max partitions"}) {
    if (reason == limit) return "moved";
  }
  // npu-compile gives the backend's own words.
  if (node.op_type != kGetitem && has_foreign_reason(node) &&
      check_support(graph, id, target.devices.front()).supported) {
    return "failed";
  }
  return "unsupported";
}

std::string status_text(const OperatorRow& row, const Target& target) {
  if (row.status == "preferred") return "runs on " + row.device;
  if (row.status == "unsupported") return "not supported by " + target.devices.front().name;
  if (row.status == "failed") return "does not compile for " + target.devices.front().name;
  return row.status + " to " + row.device;
}

double rounded_us(double us) { return std::round(us * 1000) / 1000; }

Json plan_json(const PlanMetrics& metrics) {
  return {{"partitions", metrics.partitions},
          {"copied_tensors", metrics.copied_tensors},
          {"copied_bytes", metrics.copied_bytes},
          {"predicted_us", rounded_us(metrics.predicted_us)}};
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
    const std::string status = status_of(graph, id, target);
    std::string kind;
    std::string reason = node.device_reason.value_or("");
    if (status == "forced") {
      if (!check_support(graph, id, first).supported) continue;
      kind = "release";
    } else if (status == "failed") {
      kind = "fix";
    } else if (status == "unsupported") {
      kind = reason == "unsupported op" || reason.empty() ? "support" : "rewrite";
    } else {
      continue;  // it is supported already
    }
    Candidate& candidate = found[{node.op_type, reason}];
    candidate.row.op_type = node.op_type;
    candidate.row.reason = std::move(reason);
    candidate.row.kind = std::move(kind);
    ++candidate.row.count;
    candidate.nodes.push_back(id);
  }
  std::vector<Candidate> result;
  for (auto& [key, candidate] : found) result.push_back(std::move(candidate));
  return result;
}

}  // namespace

std::vector<OperatorRow> explain_placement(const Graph& graph, const Target& target) {
  std::map<std::tuple<std::size_t, std::string, std::string, std::string>, OperatorRow> rows;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    std::size_t device = 0;
    while (device < target.devices.size() && target.devices[device].name != node.device) ++device;
    const std::string status = status_of(graph, NodeId{static_cast<std::int32_t>(n)}, target);
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

Json operators_to_json(const std::vector<OperatorRow>& rows) {
  Json json = Json::array();
  for (const OperatorRow& row : rows) {
    json.push_back({{"op_type", row.op_type},
                    {"device", row.device},
                    {"status", row.status},
                    {"reason", row.reason},
                    {"count", row.count},
                    {"flops", saturating_integer(row.flops)},
                    {"bytes", saturating_integer(row.bytes)}});
  }
  return json;
}

std::string format_operators(const Graph& graph, const Target& target,
                             const std::vector<OperatorRow>& rows) {
  std::vector<std::vector<std::string>> table{
      {"operator", ">count", "status", ">flops", ">bytes", "reason"}};
  for (const OperatorRow& row : rows) {
    table.push_back({short_name(row.op_type), std::to_string(row.count), status_text(row, target),
                     flops_text(row.flops), bytes_text(row.bytes),
                     row.reason.empty() ? "-" : row.reason});
  }
  return table_text(table) + "\n" + format_coverage(tag_report(graph, target));
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

Json what_if_to_json(const PlanMetrics& now, const std::vector<WhatIfRow>& rows) {
  Json json = Json::array();
  for (const WhatIfRow& row : rows) {
    Json entry = {
        {"op_type", row.op_type}, {"kind", row.kind}, {"reason", row.reason}, {"count", row.count}};
    entry.update(plan_json(row.alone));
    entry["saved_partitions"] = now.partitions - row.alone.partitions;
    entry["saved_bytes"] = now.copied_bytes - row.alone.copied_bytes;
    entry["saved_us"] = rounded_us(now.predicted_us - row.alone.predicted_us);
    entry["with_rows_above"] = plan_json(row.together);
    json.push_back(std::move(entry));
  }
  return json;
}

std::string format_what_if(const Target& target, const PlanMetrics& now,
                           const std::vector<WhatIfRow>& rows) {
  if (rows.empty()) {
    return "what if: nothing keeps a node from " + target.devices.front().name + "\n";
  }
  std::vector<std::vector<std::string>> table{
      {"what if on " + target.devices.front().name + ": partitions", ">nodes", ">saved us",
       ">saved bytes", ">predicted us", ">with all above", "why not now"}};
  for (const WhatIfRow& row : rows) {
    table.push_back(
        {short_name(row.op_type) + ": " + std::to_string(now.partitions) + " -> " +
             std::to_string(row.alone.partitions),
         std::to_string(row.count), fixed_text(now.predicted_us - row.alone.predicted_us, 1),
         bytes_text(static_cast<double>(now.copied_bytes - row.alone.copied_bytes)),
         fixed_text(row.alone.predicted_us, 1),
         std::to_string(row.together.partitions) + ", " + fixed_text(row.together.predicted_us, 1),
         row.reason});
  }
  return table_text(table);
}

}  // namespace npu

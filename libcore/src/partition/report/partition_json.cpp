// SPDX-License-Identifier: Apache-2.0
// Writes a result as JSON: `npu.partition.metrics`, and the members of `npu.partition` that
// follow it (npu-ir(5)). Times are rounded to nanoseconds and shares to a
// millionth, so that documents do not differ in the last bits between compilers. O(size of the
// result).
#include "partition/report/partition_json.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "partition/placement/certificate_json.hpp"
#include "partition/report/report.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

/// What a bound, rounded down to a nanosecond, and a time, rounded to the nearest, may differ by
/// although they are equal.
constexpr double kRoundingUs = 1.5e-3;

double rounded_us(double us) { return std::round(us * 1e3) / 1e3; }
double rounded_share(double share) { return std::round(share * 1e6) / 1e6; }

// ---- Numbers of each strategy ----

struct MetricsOfStrategy {
  const PlanMetrics& plan;
  Json& json;

  void operator()(const std::monostate& /*nothing*/) const {}

  // Launches and the gap describe the final plan, which a limit may have changed.
  void operator()(const MinCutFacts& facts) const {
    const double total = plan.predicted_us;
    const double bound = std::min(facts.lower_bound_us, rounded_us(total));
    json["lower_bound_us"] = bound;
    json["gap"] =
        total > 0 && total - bound > kRoundingUs ? rounded_share((total - bound) / total) : 0.0;
    json["placed_us"] = rounded_us(total - plan.launch_us);
    json["launch_us"] = rounded_us(plan.launch_us);
    if (facts.cut_us) json["cut_us"] = rounded_us(*facts.cut_us);
    json["moved_nodes"] = facts.moved_nodes;
  }

  void operator()(const BlocksFacts& facts) const { json["blocks"] = facts.blocks.size(); }

  void operator()(const ResourcesFacts& facts) const {
    double largest = 0;
    for (const double bytes : facts.working_sets) largest = std::max(largest, bytes);
    json["boundary_bytes"] = saturating_integer(facts.split.boundary_bytes);
    json["working_set_bytes"] = saturating_integer(largest);
    json["oversize_units"] = facts.oversize.size();
    json["first_fit_partitions"] = static_cast<std::size_t>(facts.first_fit.partitions);
    json["first_fit_boundary_bytes"] = saturating_integer(facts.first_fit.boundary_bytes);
  }

  void operator()(const MetisFacts& facts) const {
    json["parts"] = facts.parts;
    json["cut_bytes"] = facts.split.cut_bytes;
    json["imbalance"] = rounded_share(facts.split.imbalance);
    json["metis_cut_bytes"] = facts.metis.cut_bytes;
    json["metis_imbalance"] = rounded_share(facts.metis.imbalance);
    json["metis_cyclic"] = facts.metis_cyclic ? 1 : 0;
    json["contiguous_cut_bytes"] = facts.contiguous.cut_bytes;
    json["contiguous_imbalance"] = rounded_share(facts.contiguous.imbalance);
  }
};

// ---- Members of each strategy ----

Json blocks_json(const BlocksFacts& facts) {
  Json json = Json::array();
  for (const BlocksFacts::Block& block : facts.blocks) {
    json.push_back({{"id", json.size()}, {"partitions", block.partitions}});
  }
  return json;
}

Json oversize_json(const Graph& graph, const ResourcesFacts& facts) {
  Json json = Json::array();
  for (const ResourcesFacts::Oversize& oversize : facts.oversize) {
    Json entry{{"nodes", Json::array()}, {"bytes", saturating_integer(oversize.bytes)}};
    for (const NodeId id : oversize.nodes) entry["nodes"].push_back(graph.node(id).name);
    if (oversize.breaks_memory) {
      const TilingAdvice& tiles = oversize.tiles;
      entry["tiles"] = tiles.fits ? Json{{"rows", tiles.row_tiles},
                                         {"channels", tiles.channel_tiles},
                                         {"bytes", saturating_integer(tiles.bytes)}}
                                  : Json(nullptr);
    }
    json.push_back(std::move(entry));
  }
  return json;
}

Json cost_json(const Graph& graph, const PartitionResult& result) {
  Json json = result.measured->provenance;
  Json estimated = Json::array();
  for (const NodeId id : result.measured->estimated) estimated.push_back(graph.node(id).name);
  json["estimated"] = std::move(estimated);
  Json& steps = json["steps_us"] = Json::array();
  for (const PlanStep& step : result.plan.steps) {
    const auto& times = step.kind == PlanStep::Kind::kPartition ? result.times.partition_us
                                                                : result.times.transfer_us;
    steps.push_back(rounded_us(times[static_cast<std::size_t>(step.index)]));
  }
  return json;
}

// ---- Operators and what-if ----

std::string_view status_name(PlacementStatus status) {
  switch (status) {
    case PlacementStatus::kFailed:
      return "failed";
    case PlacementStatus::kForced:
      return "forced";
    case PlacementStatus::kMoved:
      return "moved";
    case PlacementStatus::kPreferred:
      return "preferred";
    case PlacementStatus::kUnsupported:
      break;
  }
  return "unsupported";
}

std::string_view kind_name(WhatIfRow::Kind kind) {
  switch (kind) {
    case WhatIfRow::Kind::kSupport:
      return "support";
    case WhatIfRow::Kind::kRewrite:
      return "rewrite";
    case WhatIfRow::Kind::kRelease:
      return "release";
    case WhatIfRow::Kind::kFix:
      break;
  }
  return "fix";
}

Json operators_json(const std::vector<OperatorRow>& rows) {
  Json json = Json::array();
  for (const OperatorRow& row : rows) {
    json.push_back({{"op_type", row.op_type},
                    {"device", row.device},
                    {"status", status_name(row.status)},
                    {"reason", row.reason},
                    {"count", row.count},
                    {"flops", saturating_integer(row.flops)},
                    {"bytes", saturating_integer(row.bytes)}});
  }
  return json;
}

Json what_if_plan_json(const PlanMetrics& metrics) {
  return {{"partitions", metrics.partitions},
          {"copied_tensors", metrics.copied_tensors},
          {"copied_bytes", metrics.copied_bytes},
          {"predicted_us", rounded_us(metrics.predicted_us)}};
}

Json what_if_json(const PlanMetrics& now, const std::vector<WhatIfRow>& rows) {
  Json json = Json::array();
  for (const WhatIfRow& row : rows) {
    Json entry = {{"op_type", row.op_type},
                  {"kind", kind_name(row.kind)},
                  {"reason", row.reason},
                  {"count", row.count}};
    entry.update(what_if_plan_json(row.alone));
    entry["saved_partitions"] = now.partitions - row.alone.partitions;
    entry["saved_bytes"] = now.copied_bytes - row.alone.copied_bytes;
    entry["saved_us"] = rounded_us(now.predicted_us - row.alone.predicted_us);
    entry["with_rows_above"] = what_if_plan_json(row.together);
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

Json metrics_to_json(const PlanMetrics& metrics, const Target& target) {
  Json json = Json::object();
  json["partitions"] = metrics.partitions;
  for (const Device& device : target.devices) {
    json["partitions_" + device.name] = metrics.partitions_by_device.at(device.name);
  }
  for (const Device& device : target.devices) {
    json["nodes_" + device.name] = metrics.nodes_by_device.at(device.name);
  }
  json["transfers"] = metrics.transfers;
  json["transferred_tensors"] = metrics.transferred_tensors;
  json["transfer_bytes"] = metrics.transfer_bytes;
  json["copied_tensors"] = metrics.copied_tensors;
  json["copied_bytes"] = metrics.copied_bytes;
  json["predicted_us"] = rounded_us(metrics.predicted_us);
  json["all_" + target.devices.back().name + "_us"] = rounded_us(metrics.all_on_last_us);
  return json;
}

namespace {

void add_workload(const PartitionResult& result, Json& json) {
  const PlanMetrics& metrics = result.metrics;
  std::int64_t nodes = 0;
  for (const auto& [device, count] : metrics.nodes_by_device) nodes += count;
  const auto ratio = [](double part, double whole) {
    return whole > 0 ? rounded_share(part / whole) : 0.0;
  };
  json["nodes_per_partition"] =
      ratio(static_cast<double>(nodes), static_cast<double>(metrics.partitions));
  json["scheduling_us"] = rounded_us(metrics.scheduling_us);
  json["scheduling_share"] = ratio(metrics.scheduling_us, metrics.predicted_us);
  json["parallelism"] = rounded_share(result.workload.parallelism);
  json["least_parallelism"] = rounded_share(result.workload.least_parallelism);
  json["peak_bytes"] = result.workload.peak_bytes;
  json["recomputable_bytes"] = result.workload.recomputable_bytes;
  json["recompute_flops"] = saturating_integer(result.workload.recompute_flops);
}

}  // namespace

Json partition_metrics_json(const PartitionResult& result) {
  Json json = metrics_to_json(result.metrics, result.target);
  add_workload(result, json);
  std::visit(MetricsOfStrategy{result.metrics, json}, result.facts);
  for (const auto& [name, value] : tag_metrics(result.coverage)) {
    if (name.starts_with("coverage_")) json[name] = rounded_share(value);
  }
  if (result.measured) json["estimated_nodes"] = result.measured->estimated.size();
  return json;
}

Json partition_details_json(const Graph& graph, const PartitionResult& result) {
  Json json = Json::object();
  if (const auto* blocks = std::get_if<BlocksFacts>(&result.facts)) {
    json["blocks"] = blocks_json(*blocks);
  } else if (const auto* resources = std::get_if<ResourcesFacts>(&result.facts)) {
    Json& working_sets = json["working_sets"] = Json::array();
    for (const double bytes : resources->working_sets) {
      working_sets.push_back(saturating_integer(bytes));
    }
    json["oversize"] = oversize_json(graph, *resources);
  }
  if (result.measured) json["cost"] = cost_json(graph, result);
  if (const auto* min_cut = std::get_if<MinCutFacts>(&result.facts)) {
    json["certificate"] =
        certificate_to_json(graph, min_cut->proof->problem, min_cut->proof->placement);
  }
  json["operators"] = operators_json(result.operators);
  if (result.what_if) json["what_if"] = what_if_json(result.metrics, *result.what_if);
  return json;
}

std::map<std::string, double> partition_metrics(const PartitionResult& result) {
  const Json json = partition_metrics_json(result);
  std::map<std::string, double> metrics;
  for (const auto& [key, value] : json.items()) metrics[key] = value.get<double>();
  metrics["left_device"] = static_cast<double>(left_device(result.coverage));
  return metrics;
}

}  // namespace npu

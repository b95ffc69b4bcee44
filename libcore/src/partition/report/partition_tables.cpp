// SPDX-License-Identifier: Apache-2.0
// Formats a result for people: the tables of --report and --what-if. Every number is taken from the
// result; nothing is predicted here. O(size of the result).
#include <cmath>
#include <string>
#include <vector>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "partition/report/partition_json.hpp"
#include "partition/report/report.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

using Table = std::vector<std::vector<std::string>>;

std::string bytes_of(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string steps_table(const PartitionResult& result) {
  Table rows{{">step", "what", "device", ">nodes", ">tensors", ">bytes", ">predicted us"}};
  for (std::size_t s = 0; s < result.plan.steps.size(); ++s) {
    const PlanStep& step = result.plan.steps[s];
    const auto index = static_cast<std::size_t>(step.index);
    if (step.kind == PlanStep::Kind::kPartition) {
      const Partition& partition = result.plan.partitions[index];
      rows.push_back({std::to_string(s), "partition " + std::to_string(step.index),
                      partition.device, std::to_string(partition.nodes.size()), "", "",
                      fixed_text(result.times.partition_us[index], 1)});
    } else {
      const Transfer& transfer = result.plan.transfers[index];
      rows.push_back(
          {std::to_string(s),
           "transfer " + std::to_string(transfer.from) + " -> " + std::to_string(transfer.to),
           "to " + transfer.to_device, "", std::to_string(transfer.tensors.size()),
           bytes_of(transfer.bytes), fixed_text(result.times.transfer_us[index], 1)});
    }
  }
  return table_text(rows);
}

std::string metrics_table(const PartitionResult& result) {
  Table totals{{"total", ">"}};
  const Json metrics = partition_metrics_json(result);
  for (const auto& [key, value] : metrics.items()) {
    totals.push_back(
        {key, value.is_number_float() ? fixed_text(value.get<double>(), 1) : value.dump()});
  }
  return table_text(totals);
}

/// The tables of one strategy; each begins with an empty line.
struct StrategyTables {
  const Graph& graph;

  std::string operator()(const std::monostate& /*nothing*/) const { return {}; }
  std::string operator()(const MinCutFacts& /*facts*/) const { return {}; }

  std::string operator()(const BlocksFacts& facts) const {
    Table rows{{">block", "partitions", ">nodes", ">flops", "first node", "last node"}};
    for (const BlocksFacts::Block& block : facts.blocks) {
      std::string ids;
      for (const std::int32_t id : block.partitions) {
        ids += (ids.empty() ? "" : " ") + std::to_string(id);
      }
      double flops = 0;
      for (const NodeId id : block.nodes) flops += node_flops(graph, graph.node(id));
      rows.push_back({std::to_string(rows.size() - 1), ids, std::to_string(block.nodes.size()),
                      flops_text(flops), graph.node(block.nodes.front()).name,
                      graph.node(block.nodes.back()).name});
    }
    return "\n" + table_text(rows);
  }

  std::string operator()(const ResourcesFacts& facts) const {
    const auto row = [](const char* name, const ResourcesFacts::Split& split) {
      return std::vector<std::string>{name, std::to_string(split.partitions),
                                      bytes_text(split.boundary_bytes)};
    };
    std::string text = "\n" + table_text({{"split", ">partitions", ">boundary bytes"},
                                          row("resources", facts.split),
                                          row("first fit", facts.first_fit)});
    if (facts.oversize.empty()) return text;
    Table tiles{{"does not fit", "device", ">working set", ">on chip", ">row tiles",
                 ">channel tiles", ">per tile"}};
    for (const ResourcesFacts::Oversize& oversize : facts.oversize) {
      tiles.push_back(oversize_row(oversize));
    }
    return text + "\n" + table_text(tiles);
  }

  std::vector<std::string> oversize_row(const ResourcesFacts::Oversize& oversize) const {
    std::string name = graph.node(oversize.nodes.front()).name;
    if (oversize.nodes.size() > 1) name += " .. " + graph.node(oversize.nodes.back()).name;
    std::vector<std::string> row{name, oversize.device, bytes_text(oversize.bytes),
                                 std::isinf(oversize.limit) ? "-" : bytes_text(oversize.limit)};
    const TilingAdvice& tiles = oversize.tiles;
    if (oversize.breaks_memory && tiles.fits) {
      row.insert(row.end(), {std::to_string(tiles.row_tiles), std::to_string(tiles.channel_tiles),
                             bytes_text(tiles.bytes)});
    } else {
      row.insert(row.end(), {oversize.breaks_memory ? "none fits" : "FLOPs", "-", "-"});
    }
    return row;
  }

  std::string operator()(const MetisFacts& facts) const {
    const auto row = [&](const char* name, const MetisFacts::Split& split, bool cyclic) {
      return std::vector<std::string>{name, std::to_string(facts.parts), bytes_of(split.cut_bytes),
                                      fixed_text(split.imbalance, 3), cyclic ? "yes" : "no"};
    };
    return "\n" + table_text({{"split", ">parts", ">cut", ">imbalance", "cyclic"},
                              row("metis", facts.metis, facts.metis_cyclic),
                              row("repaired", facts.split, false),
                              row("contiguous by FLOPs", facts.contiguous, false)});
  }
};

std::string times_text(const Graph& graph, const PartitionResult& result) {
  if (!result.measured) return {};
  const std::vector<NodeId>& estimated = result.measured->estimated;
  if (estimated.empty()) return "\ntimes: measured, by the profile\n";
  std::string text = "\ntimes: measured, by the profile; by the target's rates for " +
                     std::to_string(estimated.size()) + " of " +
                     std::to_string(graph.nodes().size()) +
                     " nodes, which it does not have on their devices:";
  for (const NodeId id : estimated) text += " " + graph.node(id).name;
  return text + "\n";
}

std::string status_text(const OperatorRow& row, const Target& target) {
  switch (row.status) {
    case PlacementStatus::kPreferred:
      return "runs on " + row.device;
    case PlacementStatus::kUnsupported:
      return "not supported by " + target.devices.front().name;
    case PlacementStatus::kFailed:
      return "does not compile for " + target.devices.front().name;
    case PlacementStatus::kForced:
      return "forced to " + row.device;
    case PlacementStatus::kMoved:
      break;
  }
  return "moved to " + row.device;
}

std::string operators_table(const PartitionResult& result) {
  Table rows{{"operator", ">count", "status", ">flops", ">bytes", "reason"}};
  for (const OperatorRow& row : result.operators) {
    rows.push_back({std::string(short_name(row.op_type)), std::to_string(row.count),
                    status_text(row, result.target), flops_text(row.flops), bytes_text(row.bytes),
                    row.reason.empty() ? "-" : row.reason});
  }
  return table_text(rows);
}

}  // namespace

std::string format_partition_report(const Graph& graph, const PartitionResult& result) {
  return steps_table(result) + "\n" + metrics_table(result) +
         std::visit(StrategyTables{graph}, result.facts) + times_text(graph, result) + "\n" +
         operators_table(result) + "\n" + format_coverage(result.coverage);
}

std::string format_what_if(const PartitionResult& result) {
  if (!result.what_if) return {};
  const std::string& first = result.target.devices.front().name;
  if (result.what_if->empty()) return "what if: nothing keeps a node from " + first + "\n";
  const PlanMetrics& now = result.metrics;
  Table table{{"what if on " + first + ": partitions", ">nodes", ">saved us", ">saved bytes",
               ">predicted us", ">with all above", "why not now"}};
  for (const WhatIfRow& row : *result.what_if) {
    table.push_back(
        {std::string(short_name(row.op_type)) + ": " + std::to_string(now.partitions) + " -> " +
             std::to_string(row.alone.partitions),
         std::to_string(row.count), fixed_text(now.predicted_us - row.alone.predicted_us, 1),
         bytes_of(now.copied_bytes - row.alone.copied_bytes), fixed_text(row.alone.predicted_us, 1),
         std::to_string(row.together.partitions) + ", " + fixed_text(row.together.predicted_us, 1),
         row.reason});
  }
  return table_text(table);
}

}  // namespace npu

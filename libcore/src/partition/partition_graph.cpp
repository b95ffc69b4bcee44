// SPDX-License-Identifier: Apache-2.0
// The verb behind npu-partition, and the table of strategies.
#include "npu/partition/partition_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "npu/cost/measured_cost.hpp"
#include "npu/partition/explain.hpp"
#include "npu/partition/min_nodes.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes.hpp"
#include "partition/limits.hpp"

namespace npu {
namespace {

// A strategy that looks at the tags alone.
template <PartitionPlan (*kPartition)(const Graph&)>
StrategyOutcome by_tags(Graph& graph, const Target&, const PartitionOptions&, Diagnostics&) {
  return {.plan = kPartition(graph)};
}

constexpr std::array kStrategies{
    StrategyInfo{"contiguous", "maximal runs of one device in list order",
                 &by_tags<partition_contiguous>},
    StrategyInfo{"convex", "fewest partitions by dependence", &by_tags<partition_convex>},
    StrategyInfo{"mincut", "least predicted time, also by moving nodes to other devices",
                 &partition_min_cut},
    StrategyInfo{"blocks", "the parts that a model is built of, by structure", &partition_blocks},
    StrategyInfo{"resources", "within on-chip memory, with the least traffic between partitions",
                 &partition_resources},
    StrategyInfo{"metis", "parts of equal work with little between them, in number",
                 &partition_metis},
};

const StrategyInfo& strategy_named(std::string_view name) {
  std::string names;
  for (const StrategyInfo& strategy : kStrategies) {
    if (strategy.name == name) return strategy;
    names += (names.empty() ? "" : ", ") + std::string(strategy.name);
  }
  throw Error(ErrorCode::kUsage, "--strategy " + std::string(name) + ": expected one of " + names);
}

void check_devices(const Graph& graph, const Target& target) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (!node.device || target.find_device(*node.device) != nullptr) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "node '" + node.name + "' has the device '" + *node.device + "', which target '" +
                    target.name + "' does not have; run npu-tag again",
                graph.location(NodeId{static_cast<std::int32_t>(n)}, "/device"));
  }
}

}  // namespace

std::span<const StrategyInfo> partition_strategies() { return kStrategies; }

namespace {

/// Runs the strategy within the limits. The outcome's own plan has moved into the result.
PartitionPlan plan_within_limits(Graph& graph, const Target& target, const StrategyInfo& strategy,
                                 const PartitionOptions& options, Diagnostics& diagnostics,
                                 StrategyOutcome& outcome) {
  const PartitionStrategy run = [&](Graph& tagged) {
    outcome = strategy.partition(tagged, target, options, diagnostics);
    return std::move(outcome.plan);
  };
  PartitionPlan plan = partition_with_max_partitions(
      graph, target, *options.cost, options.max_partitions, [&](Graph& tagged) {
        return partition_with_min_nodes(tagged, target, options.min_nodes, run, options.min_flops);
      });
  const std::size_t partitions = plan.partitions.size();
  plan = split_by_memory(graph, std::move(plan), options.memory_limit);
  if (options.max_partitions > 0 && plan.partitions.size() > partitions &&
      plan.partitions.size() > static_cast<std::size_t>(options.max_partitions)) {
    throw Error(ErrorCode::kInfeasible, "--memory-limit " + std::to_string(options.memory_limit) +
                                            " needs " + std::to_string(plan.partitions.size()) +
                                            " partitions, more than " + "--max-partitions " +
                                            std::to_string(options.max_partitions));
  }
  return plan;
}

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

/// Nodes whose time is an estimate though the others' were measured: how many, and which.
Json estimated_nodes(const Graph& graph, const Target& target, const CostModel& cost) {
  Json names = Json::array();
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Device& device = *target.find_device(*graph.node(id).device);
    if (!cost.is_measured(graph, id, device)) names.push_back(graph.node(id).name);
  }
  return names;
}

/// What the document and the report say of where times come from; nothing for the target's rates.
void describe_cost(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const CostModel& cost, StrategyOutcome& outcome, Json& metrics) {
  Json provenance = cost.provenance();
  if (provenance.is_null()) return;
  Json estimated = estimated_nodes(graph, target, cost);
  metrics["estimated_nodes"] = estimated.size();
  outcome.report += "\n";
  if (estimated.empty()) {
    outcome.report += "times: measured, by the profile\n";
  } else {
    outcome.report += "times: measured, by the profile; by the target's rates for " +
                      std::to_string(estimated.size()) + " of " +
                      std::to_string(graph.nodes().size()) +
                      " nodes, which it does not have on their devices:";
    for (const Json& name : estimated) outcome.report += " " + name.get<std::string>();
    outcome.report += "\n";
  }
  provenance["estimated"] = std::move(estimated);
  Json& steps = provenance["steps_us"] = Json::array();
  for (const PlanStep& step : plan.steps) {
    const auto index = static_cast<std::size_t>(step.index);
    const double us = step.kind == PlanStep::Kind::kPartition
                          ? partition_us(graph, plan.partitions[index], target, cost)
                          : plan_transfer_us(graph, plan, plan.transfers[index], target, cost);
    steps.push_back(rounded(us, 1e3));
  }
  outcome.details["cost"] = std::move(provenance);
}

/// Numbers of a strategy that a limit may have changed after it.
void correct_metrics(const PartitionResult& result, const CostModel& cost, Json& metrics) {
  if (!metrics.contains("launch_us")) return;
  double launch = 0;
  for (const Partition& partition : result.plan.partitions) {
    launch += cost.launch_us(*result.target.find_device(partition.device));
  }
  const double total = result.metrics.predicted_us;
  metrics["launch_us"] = rounded(launch, 1e3);
  metrics["placed_us"] = rounded(total - launch, 1e3);
  if (!metrics.contains("lower_bound_us")) return;
  const double bound = std::min(metrics["lower_bound_us"].get<double>(), rounded(total, 1e3));
  metrics["lower_bound_us"] = bound;
  metrics["gap"] = total > 0 && total - bound > 1e-3 ? rounded((total - bound) / total, 1e6) : 0.0;
}

}  // namespace

std::shared_ptr<const CostModel> partition_cost(const Graph& graph, const std::string& profile) {
  // Not owned: the roofline's model lives as long as the program.
  if (profile.empty()) return {&roofline_cost(), [](const CostModel*) {}};
  return std::make_shared<MeasuredCost>(read_node_table(profile), graph, graph_target(graph));
}

PartitionResult partition_graph(Graph& graph, const PartitionOptions& options,
                                Diagnostics& diagnostics) {
  const StrategyInfo& strategy = strategy_named(options.strategy);
  PartitionResult result;
  result.target = graph_target(graph);
  check_devices(graph, result.target);
  Graph tagged;
  if (options.what_if) tagged = graph;
  StrategyOutcome outcome;
  result.plan = plan_within_limits(graph, result.target, strategy, options, diagnostics, outcome);
  result.metrics = plan_metrics(graph, result.plan, result.target, *options.cost);
  correct_metrics(result, *options.cost, outcome.metrics);
  result.metrics_json = metrics_to_json(result.metrics, result.target);
  result.metrics_json.update(outcome.metrics);
  for (const auto& [name, value] : tag_metrics(tag_report(graph, result.target))) {
    if (name.starts_with("coverage_")) result.metrics_json[name] = rounded(value, 1e6);
  }
  describe_cost(graph, result.plan, result.target, *options.cost, outcome, result.metrics_json);
  const std::vector<OperatorRow> operators = explain_placement(graph, result.target);
  if (options.report) {
    result.report =
        format_plan_report(graph, result.plan, result.metrics_json, result.target, *options.cost) +
        outcome.report + "\n" + format_operators(graph, result.target, operators);
  }
  if (outcome.more_details) outcome.more_details(graph, outcome.details);
  outcome.details["operators"] = operators_to_json(operators);
  if (options.what_if) {
    const std::vector<WhatIfRow> rows = find_what_if(tagged, result.target, [&](Graph& changed) {
      Diagnostics ignored;
      StrategyOutcome unused;
      return plan_metrics(
          changed, plan_within_limits(changed, result.target, strategy, options, ignored, unused),
          result.target, *options.cost);
    });
    result.what_if = format_what_if(result.target, result.metrics, rows);
    outcome.details["what_if"] = what_if_to_json(result.metrics, rows);
  }
  write_partition_plan(graph, result.plan, result.metrics_json, outcome.details);
  return result;
}

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-partition: reads the tagged document, solves (a strategy within the
// limits), explains (metrics, reasons, what-if), and writes `npu.partition`. No text is made here;
// callers make tables with partition/report/. Cost: the strategy's; what-if plans once more for
// each of its rows.
#include "npu/partition/partition_graph.hpp"

#include "cost/measured_cost.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/log.hpp"
#include "partition/limits/limits.hpp"
#include "partition/limits/min_nodes.hpp"
#include "partition/report/explain.hpp"
#include "partition/report/moved_groups.hpp"
#include "partition/report/partition_json.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

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

/// Runs the strategy until its plan meets the limits.
StrategyOutcome solve(Graph& graph, const Target& target, const PartitionOptions& options,
                      Diagnostics& diagnostics) {
  const StrategyInfo& strategy = partition_strategies()[static_cast<std::size_t>(options.strategy)];
  StrategyOutcome outcome;
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
  outcome.plan = std::move(plan);
  return outcome;
}

/// Nothing for the target's rates.
std::optional<MeasuredTimes> measured_times(const Graph& graph, const Target& target,
                                            const CostModel& cost) {
  Json provenance = cost.provenance();
  if (provenance.is_null()) return std::nullopt;
  MeasuredTimes times{.provenance = std::move(provenance), .estimated = {}};
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const Device& device = *target.find_device(*graph.node(id).device);
    if (!cost.is_measured(graph, id, device)) times.estimated.push_back(id);
  }
  return times;
}

}  // namespace

std::shared_ptr<const CostModel> partition_cost(const Graph& graph, const std::string& profile) {
  // Not owned: the roofline's model lives as long as the program.
  if (profile.empty()) return {&roofline_cost(), [](const CostModel*) {}};
  return std::make_shared<MeasuredCost>(read_node_table(profile), graph, graph_target(graph));
}

namespace {

/// Logs what a strategy made of the graph, what it proved, and, for -vv, why ops are where they
/// are.
void log_plan(const PartitionResult& result, const Json& metrics, const LogTimer& timer) {
  timer.done([&] {
    return "partition by " + result.plan.strategy + ": partitions " +
           std::to_string(result.metrics.partitions) + ", transfers " +
           std::to_string(result.metrics.transfers) + ", predicted " +
           fixed_text(result.metrics.predicted_us, 1) + " us";
  });
  if (const Json* bound = find_member(metrics, "lower_bound_us")) {
    log(LogModule::kSolve, LogLevel::kInfo, [&] {
      const Json* gap = find_member(metrics, "gap");
      return result.plan.strategy + ": no plan takes less than " + bound->dump() + " us" +
             (gap == nullptr ? "" : ", gap " + gap->dump());
    });
  }
  if (!log_wants(LogModule::kPass, LogLevel::kDebug)) return;
  for (const OperatorRow& row : result.operators) {
    log(LogModule::kPass, LogLevel::kDebug, [&] {
      return "partition: " + std::to_string(row.count) + " x " + printable_text(row.op_type) +
             " on " + row.device + ": " +
             (row.reason.empty() ? "the preferred device" : printable_text(row.reason));
    });
  }
}

}  // namespace

PartitionResult partition_graph(Graph& graph, const PartitionOptions& options,
                                Diagnostics& diagnostics) {
  const LogTimer timer(LogModule::kPass);
  const CostModel& cost = *options.cost;
  PartitionResult result;
  result.target = graph_target(graph);
  check_devices(graph, result.target);
  Graph tagged;
  if (options.what_if) tagged = graph;

  StrategyOutcome outcome = solve(graph, result.target, options, diagnostics);
  result.plan = std::move(outcome.plan);
  result.facts = std::move(outcome.facts);

  result.times = plan_times(graph, result.plan, result.target, cost);
  result.metrics = plan_metrics(graph, result.plan, result.target, cost, result.times);
  result.workload = plan_workload(graph, result.plan, result.target, cost);
  result.coverage = tag_report(graph, result.target);
  result.measured = measured_times(graph, result.target, cost);
  result.operators = explain_placement(graph, result.target);
  if (options.what_if) {
    result.what_if = find_what_if(tagged, result.target, [&](Graph& changed) {
      Diagnostics ignored;
      const StrategyOutcome again = solve(changed, result.target, options, ignored);
      return plan_metrics(changed, again.plan, result.target, cost);
    });
  }
  const Json metrics = partition_metrics_json(result);
  write_partition_plan(graph, result.plan, metrics, partition_details_json(graph, result));
  log_plan(result, metrics, timer);
  if (std::string note = moved_groups_note(graph, result.target); !note.empty()) {
    diagnostics.note({.file = graph.file}, std::move(note));
  }
  return result;
}

}  // namespace npu

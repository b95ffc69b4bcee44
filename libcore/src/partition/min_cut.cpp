// SPDX-License-Identifier: Apache-2.0
// The mincut strategy: every node on the device where the whole takes the least time.
//
// Reads the tags as wishes: a node may go to each device that supports it, unless it was put where
// it is by hand or by a limit (see placement_problem.cpp). What is minimised is `predicted_us` of
// the plan: computing, each tensor once per destination, and a launch per partition; how, and what
// is exact about it, stands in placement_solver.cpp. Moved nodes say so in device_reason. The
// document gets the proof of the lower bound, which check_certificate.cpp reads.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "npu/partition/partition_graph.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/support/text.hpp"
#include "partition/certificate_json.hpp"
#include "partition/placement_solver.hpp"
#include "partition/waves.hpp"

namespace npu {
namespace {

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

/// Devices and reasons of the nodes; returns how many nodes moved.
std::int64_t move_nodes(Graph& graph, const Target& target, const PlacementProblem& problem,
                        const Placement& placement) {
  std::int64_t moved = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.nodes()[n];
    const std::int32_t item = problem.item_of[index_of(problem.units.unit_of[n])];
    const auto device = index_of(placement.assignment[index_of(item)]);
    const std::string& name = target.devices[device].name;
    if (node.device != name) {
      node.device = name;
      ++moved;
    }
    if (is_placed_for_good(node)) continue;
    if (device == 0) {
      node.device_reason.reset();
    } else if ((problem.node_devices[n] & 1U) != 0) {
      node.device_reason = "cheaper on " + name;
    }
  }
  return moved;
}

/// Down to a nanosecond, so that a bound stays one.
double floor_us(double us) { return std::floor(us * 1000) / 1000; }
double rounded_us(double us) { return std::round(us * 1000) / 1000; }

}  // namespace

StrategyOutcome partition_min_cut(Graph& graph, const Target& target,
                                  const PartitionOptions& options, Diagnostics& /*diagnostics*/) {
  const auto shared = std::make_shared<std::pair<PlacementProblem, Placement>>();
  auto& [problem, placement] = *shared;
  problem = build_placement_problem(graph, target, *options.cost);
  placement = solve_placement(problem);
  StrategyOutcome outcome;
  const std::int64_t moved = move_nodes(graph, target, problem, placement);
  outcome.plan = plan_of_waves(graph, problem.units, placement.waves, "mincut");
  const double total = problem.microseconds(placement.total());
  const double bound = problem.microseconds(placement.bound_ticks);
  outcome.metrics["lower_bound_us"] = std::min(floor_us(bound), rounded_us(total));
  outcome.metrics["gap"] = total > 0 ? std::round(1e6 * (total - bound) / total) / 1e6 : 0.0;
  outcome.metrics["placed_us"] = rounded_us(problem.microseconds(placement.placed_ticks));
  outcome.metrics["launch_us"] = rounded_us(problem.microseconds(placement.launch_ticks));
  if (problem.devices == 2) {
    outcome.metrics["cut_us"] = rounded_us(problem.microseconds(placement.cut.value));
  }
  outcome.metrics["moved_nodes"] = moved;
  outcome.more_details = [shared](const Graph& final_graph, Json& details) {
    details["certificate"] = certificate_to_json(final_graph, shared->first, shared->second);
  };
  return outcome;
}

}  // namespace npu

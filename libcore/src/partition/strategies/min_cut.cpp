// SPDX-License-Identifier: Apache-2.0
// The mincut strategy: places every node so that the whole model takes the least time.
//
// Treats tags as preferences: a node may go to any device that supports it, unless it was placed by
// hand or by a limit (see placement_problem.cpp). Minimises `predicted_us` of the plan: computing,
// copying each tensor once per destination, and one launch per partition; placement_solver.cpp
// explains how, and which parts are exact. The device_reason of moved nodes says so. The document
// gets the proof of the lower bound, which check_certificate.cpp reads. (The algorithm for one
// minimum cut is in flow/min_cut.cpp.)
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "ir/device_reason.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/support/ids.hpp"
#include "partition/device_runs.hpp"
#include "partition/placement/certificate_json.hpp"
#include "partition/placement/placement_solver.hpp"

namespace npu {
namespace {

/// Sets devices and reasons of the nodes; returns how many nodes moved.
std::int64_t move_nodes(Graph& graph, const Target& target, const PlacementProblem& problem,
                        const Placement& placement) {
  std::int64_t moved = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    Node& node = graph.nodes()[n];
    const std::int32_t item = problem.item_of[index_of(problem.fused.fused_node_of[n])];
    const auto device = index_of(placement.assignment[index_of(item)]);
    const std::string& name = target.devices[device].name;
    if (node.device != name) {
      node.device = name;
      ++moved;
    }
    if (DeviceReason::of(node).is_fixed()) continue;
    if (device == 0) {
      node.device_reason.reset();
    } else if ((problem.node_devices[n] & 1U) != 0) {
      DeviceReason(DeviceReason::Kind::kCheaper, name).store(node);
    }
  }
  return moved;
}

/// Rounds down to a nanosecond, so that a lower bound stays one.
double floor_us(double us) { return std::floor(us * 1000) / 1000; }
double rounded_us(double us) { return std::round(us * 1000) / 1000; }

}  // namespace

StrategyOutcome partition_min_cut(Graph& graph, const Target& target,
                                  const PartitionOptions& options, Diagnostics& /*diagnostics*/) {
  const auto proof = std::make_shared<PlacementProof>();
  auto& [problem, placement] = *proof;
  problem = build_placement_problem(graph, target, *options.cost);
  placement = solve_placement(problem);
  MinCutFacts facts;
  facts.moved_nodes = move_nodes(graph, target, problem, placement);
  facts.lower_bound_us = std::min(floor_us(problem.microseconds(placement.bound_ticks)),
                                  rounded_us(problem.microseconds(placement.total())));
  if (problem.devices == 2) facts.cut_us = problem.microseconds(placement.cut.value);
  facts.proof = proof;
  return {.plan = plan_of_runs(graph, problem.fused, placement.runs, "mincut"),
          .facts = std::move(facts)};
}

}  // namespace npu

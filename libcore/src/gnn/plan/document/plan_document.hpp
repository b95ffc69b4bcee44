// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gnn/exchange/device_exchange.hpp"
#include "gnn/exchange/rank_plan.hpp"
#include "gnn/plan/document/plan_sections.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// What runs, where and in which order.
struct PlanChoice {
  std::int32_t k = 1;  ///< number of subgraphs
  std::optional<PlanPartition> partition;
  std::int64_t pad = 1000;  ///< multiple that static shapes are padded to
  std::vector<PlanSubgraph> subgraphs;
  std::vector<PlannedStages> device_plans;
  std::vector<PlanCluster> clusters;  ///< in order of execution, layer by layer
  std::vector<PlanAssignment> assignments;
  std::optional<RankPlan> ranks;           ///< nothing: one process computes all parts
  std::optional<DeviceExchange> exchange;  ///< nothing: features alone cross between devices
  bool operator==(const PlanChoice&) const = default;
};

/// What that is predicted to take.
struct PlanPrediction {
  DeviceTimes loads_ms;
  double max_load_ms = 0;
  double makespan_ms = 0;
  std::optional<SingleDevice> best_single_device;
  double speedup = 0;  ///< over the best single device, if there is one
  std::int32_t plan_switches = 0;
  double switching_ms = 0;             ///< the time of all switches
  double ungrouped_ms = 0;             ///< the makespan if every subgraph was a cluster of its own
  std::int64_t extrapolated = 0;       ///< assignments outside the measured range
  std::int64_t disturbed = 0;          ///< assignments based on disturbed times
  std::vector<std::string> uncertain;  ///< why predictions may be far off; empty: no reason
  std::int64_t program_count = 0;
  double compile_ms = 0;
  std::vector<std::string> programs;  ///< of static devices
  bool operator==(const PlanPrediction&) const = default;
};

/// How far that is from the best.
struct PlanProof {
  double load_bound_ms = 0;
  double load_gap = 0;
  double least_load_ms = 0;
  double least_load_gap = 0;
  double lower_bound_ms = 0;
  double gap = 0;
  std::vector<LayerProof> layers;
  bool operator==(const PlanProof&) const = default;
};

/// What else was tried.
struct PlanSearch {
  std::vector<SweepRow> sweep;
  std::vector<RejectedPlan> rejected;
  std::int64_t legal_classes = 0;
  bool operator==(const PlanSearch&) const = default;
};

/// A document of kind "plan"; npu-gnn(5) describes its keys. Times are in milliseconds, rounded to
/// nanoseconds.
struct GnnPlan {
  PlanFiles files;
  PlanSettings settings;
  std::vector<PlanDevice> devices;
  PlanChoice choice;
  PlanPrediction predicted;
  PlanProof proof;
  PlanSearch search;
  /// Whether going over to another cluster takes any device time.
  bool switches_cost() const;
  bool operator==(const GnnPlan&) const = default;
};

/// True for a document whose kind is "plan".
bool is_plan(const Json& document);

Json to_json(const GnnPlan& plan);
/// Throws Error kParse with the place of the first fault. Checks types and ranges only; verify_plan
/// checks whether the plan holds.
GnnPlan plan_from_json(const Json& document, const std::string& file);
/// Reads a plan from a file.
GnnPlan read_plan(const std::string& path);

}  // namespace npu::gnn

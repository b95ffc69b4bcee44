// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "npu/cost/cost_model.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Why a node is, or is not, on the target's first device.
enum class PlacementStatus : std::uint8_t {
  kFailed,       ///< did not compile there
  kForced,       ///< placed by hand
  kMoved,        ///< moved away by a strategy or a limit, although supported
  kPreferred,    ///< it is there
  kUnsupported,  ///< not supported there
};

/// Nodes of one operator on one device, and why they are there.
struct OperatorRow {
  std::string op_type;
  std::string device;
  PlacementStatus status = PlacementStatus::kPreferred;
  std::string reason;  ///< as in device_reason; empty on the first device
  std::int64_t count = 0;
  double flops = 0;
  double bytes = 0;
};

/// What one change to the target or the model would gain.
struct WhatIfRow {
  enum class Kind : std::uint8_t {
    kSupport,  ///< a missing operator
    kRewrite,  ///< nodes whose arguments or dtypes are refused
    kRelease,  ///< nodes placed by hand
    kFix,      ///< nodes that failed to compile
  };
  std::string op_type;
  std::string reason;  ///< what keeps the nodes from the first device
  Kind kind = Kind::kSupport;
  std::int64_t count = 0;
  PlanMetrics alone;     ///< with this change
  PlanMetrics together;  ///< with this change and all rows above
};

/// The source of times that do not come from the target's rates.
struct MeasuredTimes {
  Json provenance;                ///< CostModel::provenance
  std::vector<NodeId> estimated;  ///< nodes that were not measured on their device
};

struct PartitionResult {
  PartitionPlan plan;
  PlanMetrics metrics;
  PlanTimes times;
  PlanWorkload workload;
  StrategyFacts facts;
  TagReport coverage;
  std::vector<OperatorRow> operators;  ///< by device in the target's order, then most nodes first
  std::optional<std::vector<WhatIfRow>> what_if;  ///< most time saved first; only on request
  std::optional<MeasuredTimes> measured;
  Target target;
};

/// Partitions a tagged document by the target in it and writes `npu.partition` and every node's
/// `partition`. Throws Error kInvalidGraph if it is not tagged, kInfeasible if no plan meets the
/// limits. partition/report/report.hpp turns the result into tables.
PartitionResult partition_graph(Graph& graph, const PartitionOptions& options,
                                Diagnostics& diagnostics);

/// The cost model for a tagged document: the table in the file `profile`, or the target's rates if
/// `profile` is empty. Throws Error as read_node_table and MeasuredCost do.
std::shared_ptr<const CostModel> partition_cost(const Graph& graph, const std::string& profile);

/// As above, for callers that ignore warnings.
inline PartitionResult partition_graph(Graph& graph, const PartitionOptions& options) {
  Diagnostics dropped;
  return partition_graph(graph, options, dropped);
}

}  // namespace npu

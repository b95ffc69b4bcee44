// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Why nodes of one operator are where they are.
struct OperatorRow {
  std::string op_type;
  std::string device;
  /// "preferred" on the target's first device, "forced" by hand, "unsupported" there, "moved" by a
  /// strategy or a limit although supported, "failed" to compile there.
  std::string status;
  std::string reason;  ///< as in device_reason; empty on the first device
  std::int64_t count = 0;
  double flops = 0;
  double bytes = 0;
};

/// By device in the target's order, then most nodes first, then name.
std::vector<OperatorRow> explain_placement(const Graph& graph, const Target& target);
Json operators_to_json(const std::vector<OperatorRow>& rows);
/// Operator, count, status, reason; then each device's share of nodes, FLOPs and bytes.
std::string format_operators(const Graph& graph, const Target& target,
                             const std::vector<OperatorRow>& rows);

/// What one change of the target or the model would give.
struct WhatIfRow {
  std::string op_type;
  std::string reason;  ///< what keeps the nodes from the first device
  /// "support" a missing operator, "rewrite" nodes whose arguments or dtypes are refused, "release"
  /// nodes placed by hand, "fix" nodes that failed to compile.
  std::string kind;
  std::int64_t count = 0;
  PlanMetrics alone;     ///< with this change
  PlanMetrics together;  ///< with this and all rows above
};

/// Puts a tagged graph's nodes into partitions and says what that costs.
using Planner = std::function<PlanMetrics(Graph&)>;

/// Tries every operator and reason that keeps nodes from the target's first device, plans anew with
/// those nodes there, and ranks by the time saved. `graph` has the tags to start from, and has them
/// again afterwards.
std::vector<WhatIfRow> find_what_if(Graph& graph, const Target& target, const Planner& planner);
Json what_if_to_json(const PlanMetrics& now, const std::vector<WhatIfRow>& rows);
std::string format_what_if(const Target& target, const PlanMetrics& now,
                           const std::vector<WhatIfRow>& rows);

}  // namespace npu

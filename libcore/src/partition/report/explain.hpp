// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// By device in the target's order, then most nodes first, then name.
std::vector<OperatorRow> explain_placement(const Graph& graph, const Target& target);

/// Partitions a tagged graph and returns what that costs.
using Planner = std::function<PlanMetrics(Graph&)>;

/// For every operator and reason that keeps nodes off the target's first device, plans anew with
/// those nodes there, and ranks by the time saved. `graph` has the tags to start from, which are
/// restored afterwards.
std::vector<WhatIfRow> find_what_if(Graph& graph, const Target& target, const Planner& planner);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/partition/partition_graph.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// The members of `npu.partition.metrics` that every plan has.
Json metrics_to_json(const PlanMetrics& metrics, const Target& target);

/// All of `npu.partition.metrics`: those, the strategy's, coverage and the share that was measured.
Json partition_metrics_json(const PartitionResult& result);

/// The members of `npu.partition` besides the plan and its metrics.
Json partition_details_json(const Graph& graph, const PartitionResult& result);

}  // namespace npu

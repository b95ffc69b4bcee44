// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "npu/partition/partition_graph.hpp"

namespace npu {

/// Every number of `npu.partition.metrics`: those of all plans, then the strategy's.
std::map<std::string, double> partition_metrics(const PartitionResult& result);

/// Aligned tables for people: steps and metrics, what the strategy found, where times come from,
/// and operators with the reason for their device.
std::string format_partition_report(const Graph& graph, const PartitionResult& result);

/// What keeps nodes from the target's first device, ranked by the time that it costs. Empty if
/// that was not asked for.
std::string format_what_if(const PartitionResult& result);

/// What a box of a drawing stands for: a node, a fusion group (where nothing is fused, a block of
/// the model), or a partition.
enum class DotLevel : std::uint8_t { kNode, kGroup, kPartition };

/// The finest level of at most 40 boxes, or kPartition: so that a person can read the drawing.
DotLevel readable_dot_level(const Graph& graph, const PartitionPlan& plan);

/// Graphviz text from left to right. `times` are what boxes of partitions say they take; they may
/// be empty.
std::string plan_to_dot(const Graph& graph, const PartitionPlan& plan, DotLevel level,
                        const PlanTimes& times = {});

}  // namespace npu

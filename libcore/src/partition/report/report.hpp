// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "npu/partition/partition_graph.hpp"

namespace npu {

/// Every number of `npu.partition.metrics`: first those of every plan, then the strategy's own.
std::map<std::string, double> partition_metrics(const PartitionResult& result);

/// Aligned tables for people: steps and metrics, what the strategy found, the source of the times,
/// and operators with the reason for their device.
std::string format_partition_report(const Graph& graph, const PartitionResult& result);

/// What keeps nodes off the target's first device, ranked by the time that it costs. Empty if
/// PartitionOptions::what_if was not set.
std::string format_what_if(const PartitionResult& result);

/// What a box of a drawing stands for: a node, a fusion group (a block of the model if the document
/// has no groups), or a partition.
enum class DotLevel : std::uint8_t { kNode, kGroup, kPartition };

/// The finest level with at most 40 boxes, which a person can still read; else kPartition.
DotLevel readable_dot_level(const Graph& graph, const PartitionPlan& plan);

/// Graphviz text, drawn from left to right. `times` label the boxes of
/// partitions; they may be empty.
std::string plan_to_dot(const Graph& graph, const PartitionPlan& plan, DotLevel level,
                        const PlanTimes& times = {});

}  // namespace npu

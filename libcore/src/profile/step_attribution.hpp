// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// How the time of one run of a partition was spent, in microseconds.
/// The parts add up to the whole.
struct PartitionTimes {
  std::vector<double> node_us;           ///< by position in the partition's nodes
  std::map<TensorId, double> reads_us;   ///< converting the layout of a tensor from another device
  std::map<TensorId, double> writes_us;  ///< converting one to the layout that another device reads
  double rest_us = 0;                    ///< of no node: starting the program, results
};

/// Charges each kernel's time to its nodes. `report` is the backend's compile report and `step_ns`
/// the time of each of its steps; if the two do not match, `node_ns`, by node of the partition, is
/// used instead, and if that is missing as well, the whole time is divided. The time of a kernel of
/// several nodes is divided in proportion to their FLOPs, or to their bytes if none has FLOPs.
PartitionTimes attribute_times(const Graph& graph, const Partition& partition, const Json& report,
                               std::span<const std::uint64_t> step_ns,
                               std::span<const std::uint64_t> node_ns, double whole_us);

/// For each node of the partition the first node of the kernel that computes it; the node itself if
/// a kernel computes only that.
std::vector<NodeId> kernels_of_nodes(const Graph& graph, const Partition& partition,
                                     const Json& report);

}  // namespace npu

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

/// What one run of a partition took, in microseconds, by what it was spent on. The parts add up to
/// the whole.
struct PartitionTimes {
  std::vector<double> node_us;           ///< by position in the partition's nodes
  std::map<TensorId, double> reads_us;   ///< bringing a tensor of another device into a layout
  std::map<TensorId, double> writes_us;  ///< bringing one into the layout that another device reads
  double rest_us = 0;                    ///< on no node: the start of the program, results
};

/// Which node each kernel's time is for. `report` is the backend's compile report and `step_ns` the
/// time of each of its steps; where the two do not fit each other, `node_ns`, by node of the
/// partition, is used, and where that is missing, too, the whole is shared. What a kernel of
/// several nodes takes is shared by their FLOPs, or by their bytes where none has any.
PartitionTimes attribute_times(const Graph& graph, const Partition& partition, const Json& report,
                               std::span<const std::uint64_t> step_ns,
                               std::span<const std::uint64_t> node_ns, double whole_us);

/// For each node of the partition the first one of the kernel that computes it; itself, where a
/// kernel computes it alone.
std::vector<NodeId> kernels_of_nodes(const Graph& graph, const Partition& partition,
                                     const Json& report);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/node_table.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"

namespace npu {

/// A tensor and the device that it goes to.
using Crossing = std::pair<TensorId, std::string>;

/// One run of a plan, split into parts; microseconds. The parts add up to the whole if no two steps
/// ran at the same time.
struct RunSample {
  double whole_us = 0;
  std::vector<double> node_us;  ///< by node; an input's upload is charged to its first reader
  std::map<Crossing, double> border_us;
  std::map<std::string, double> start_us;  ///< by device, of one partition
};

/// `graph` and `partitions` are those that the run was compiled from.
RunSample take_apart(const Graph& graph, const PartitionPlan& plan,
                     const std::vector<CompiledPartition>& partitions, const RunRecord& record);

/// Many runs of a plan. Means are taken over the runs whose total time ranks between 1/8 and 3/8 of
/// all; over at least one.
struct RunSummary {
  MeasuredTime whole;
  std::vector<MeasuredTime> nodes;
  std::map<Crossing, MeasuredTime> borders;
  std::map<std::string, double> start_us;
};

/// `samples` are of one plan, and not empty.
RunSummary summarize(const std::vector<RunSample>& samples);

}  // namespace npu

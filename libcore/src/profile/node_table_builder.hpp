// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cost/node_table.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"
#include "profile/run_samples.hpp"

namespace npu {

/// A placement of the model that was run.
struct MeasuredPlacement {
  std::string name;
  const Graph* graph = nullptr;  ///< with its devices
  const PartitionPlan* plan = nullptr;
  const std::vector<CompiledPartition>* partitions = nullptr;
  std::string base_of;  ///< the device that has all nodes it can run; empty: none
  RunSummary summary;
};

/// The time of plain copies of so many bytes.
struct CopySample {
  std::string from;
  std::string to;
  double bytes = 0;
  double us = 0;
};

/// A line through points of very different sizes, with neither a negative latency nor a negative
/// rate.
LinkFit fitted(std::string from, std::string to, const std::vector<CopySample>& samples);

/// Fills in the devices' overheads, nodes, borders, links and placements of `table`, which has its
/// devices already. The first placement in which a tensor crosses fixes its time.
void build_node_table(const std::vector<MeasuredPlacement>& placements,
                      const std::vector<CopySample>& copies, const Target& target,
                      NodeTable& table);

}  // namespace npu

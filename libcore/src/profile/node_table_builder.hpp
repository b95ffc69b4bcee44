// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/cost/node_table.hpp"
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
  std::string base_of;  ///< the device that has all that it runs here; empty: none
  RunSummary summary;
};

/// How long copies of so many bytes take, without a model.
struct CopySample {
  std::string from;
  std::string to;
  double bytes = 0;
  double us = 0;
};

/// Fills devices' start costs, nodes, borders, links and placements of `table`, whose devices are
/// there. What a tensor takes to cross is settled by the first placement in which it does.
void build_node_table(const std::vector<MeasuredPlacement>& placements,
                      const std::vector<CopySample>& copies, const Target& target,
                      NodeTable& table);

}  // namespace npu

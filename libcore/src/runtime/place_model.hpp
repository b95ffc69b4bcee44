// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/error.hpp"
#include "npu/target/select_devices.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Where the nodes of a document run.
struct PlacedModel {
  Target target;
  PartitionPlan plan;
  std::string note = {};  ///< how it was placed, if the document said nothing; else empty

  bool by_cost() const noexcept { return !note.empty(); }
};

/// The target and the plan that a document states. Collects faults of the plan.
PlacedModel read_placed(const Graph& graph, Diagnostics& diagnostics);

/// Warns of options that what a document states leaves without effect, and of a backend that is
/// another one than npu-tag --ask has asked.
void warn_of_stated(const Graph& graph, const PlacedModel& placed, const DeviceChoice& where,
                    Diagnostics& diagnostics);

/// Places a document that says nothing, for the devices that `where` names: tags it, and partitions
/// it by the strategy mincut, or puts it on a single device if that is predicted to take less time;
/// `note` says what came of it. `graph` is left with the plan. Collects faults.
PlacedModel place_by_cost(Graph& graph, const DeviceChoice& where,
                          const std::vector<std::string>& load_ops, Diagnostics& diagnostics);

/// Which of these a document needs: one that is tagged only is partitioned as it is tagged.
PlacedModel place_model(Graph& graph, const DeviceChoice& where,
                        const std::vector<std::string>& load_ops, Diagnostics& diagnostics);

/// A warning for each partition that a backend refused.
void warn_of_refusals(const Graph& graph, const CompiledModel& model, Diagnostics& diagnostics);

}  // namespace npu

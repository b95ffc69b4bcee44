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

/// The plan of the document, if it has one. A document that is tagged only is partitioned as it is
/// tagged. One that is neither is placed by cost for the devices that `where` names: tagged, and
/// partitioned by the strategy mincut, or put on a single device if that is predicted to take less
/// time; `note` says what came of it. `graph` is left with the plan. Options of `where` that do not
/// go with what the document says cause a warning. Collects faults in `diagnostics`.
PlacedModel place_model(Graph& graph, const DeviceChoice& where,
                        const std::vector<std::string>& load_ops, Diagnostics& diagnostics);

/// A warning for each partition that a backend refused.
void warn_of_refusals(const Graph& graph, const CompiledModel& model, Diagnostics& diagnostics);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"

namespace npu {

/// A run in the Chrome Trace Event format (chrome://tracing, Perfetto): one track per device, a
/// slice per partition with its nodes below it if the backend measured them (when they ran, if the
/// device's clock is known, or else one after another), a slice per transfer on the track of its
/// destination, and a flow arrow from the partition that produced the tensors.
std::string write_trace(const Graph& graph, const PartitionPlan& plan, const RunRecord& record);

}  // namespace npu

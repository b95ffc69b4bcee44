// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/target/target.hpp"
#include "runtime/predicted_steps.hpp"

namespace npu {

/// The steps of a run, measured and predicted.
std::vector<RunStep> summarize_steps(const PartitionPlan& plan, const PredictedSteps& predicted,
                                     const RunRecord& record);

/// The share of each device of the target in a run.
std::vector<DevicePlacement> summarize_placement(const PlanMetrics& metrics, const Target& target,
                                                 const RunRecord& record);

/// The distribution of runs that took `times` milliseconds, at least one, and `seconds` together.
BenchSummary summarize_bench(std::vector<double> times, double seconds);

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
// Turns the record of a run into the rows of its report. O(steps + devices), plus sorting the times
// of repeated runs.
#include "runtime/run_summary.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "npu/support/progress.hpp"
#include "support/statistics.hpp"

namespace npu {
std::vector<RunStep> summarize_steps(const PartitionPlan& plan, const PredictedSteps& predicted,
                                     const RunRecord& record) {
  std::vector<RunStep> steps;
  for (const StepRecord& from : record.steps) {
    RunStep step{.kind = from.kind, .id = from.index, .device = from.device};
    step.tensors = from.tensors;
    step.bytes = from.bytes;
    step.copied_bytes = from.copied_bytes;
    step.path = path_text(from);
    step.ms = (from.end_us - from.start_us) / 1000;
    if (from.kind == StepRecord::Kind::kPartition) {
      const Partition& partition = plan.partitions[static_cast<std::size_t>(from.index)];
      step.nodes = static_cast<std::int64_t>(partition.nodes.size());
      step.predicted_ms = predicted.partition_ms(from.index);
    } else if (from.kind == StepRecord::Kind::kTransfer) {
      const Transfer& transfer = plan.transfers[static_cast<std::size_t>(from.index)];
      step.from = transfer.from;
      step.to = transfer.to;
      step.listed_tensors = static_cast<std::int64_t>(transfer.tensors.size());
      step.predicted_ms = predicted.transfer_ms(from.index);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<DevicePlacement> summarize_placement(const PlanMetrics& metrics, const Target& target,
                                                 const RunRecord& record) {
  std::map<std::string, double> ms;
  for (const StepRecord& step : record.steps) {
    if (step.kind == StepRecord::Kind::kPartition) {
      ms[step.device] += (step.end_us - step.start_us) / 1000;
    }
  }
  std::vector<DevicePlacement> placement;
  for (const Device& device : target.devices) {
    placement.push_back({.device = device.name,
                         .backend = device.backend,
                         .nodes = metrics.nodes_by_device.at(device.name),
                         .partitions = metrics.partitions_by_device.at(device.name),
                         .ms = ms[device.name]});
  }
  return placement;
}

BenchSummary summarize_bench(std::vector<double> times, double seconds) {
  std::sort(times.begin(), times.end());
  return {.runs = static_cast<std::int64_t>(times.size()),
          .median_ms = median(times),
          .min_ms = times.front(),
          .p90_ms = nearest_rank(times, 0.9),
          .p99_ms = nearest_rank(times, 0.99),
          .runs_per_second = seconds > 0 ? static_cast<double>(times.size()) / seconds : 0,
          .peak_rss_bytes = peak_rss_bytes()};
}

}  // namespace npu

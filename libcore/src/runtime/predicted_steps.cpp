// SPDX-License-Identifier: Apache-2.0
// Predicted times of a plan's steps, which the report of a run shows beside the measured ones. A
// document whose plan was made with a profile states them in `npu.partition.cost`; times that it
// does not state are the target's roofline. O(steps) to read, O(nodes) for each estimate.
#include "runtime/predicted_steps.hpp"

#include <cstddef>

#include "npu/partition/metrics.hpp"

namespace npu {

PredictedSteps::PredictedSteps(const Graph& graph, const PartitionPlan& plan, const Target& target)
    : graph_(graph), plan_(plan), target_(target) {
  const Json* partition = graph.npu_member("partition");
  const Json* cost = partition == nullptr ? nullptr : find_member(*partition, "cost");
  const Json* stated = cost == nullptr ? nullptr : find_member(*cost, "steps_us");
  if (stated == nullptr || !stated->is_array() || stated->size() != plan.steps.size()) return;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (!(*stated)[s].is_number()) continue;
    const bool is_partition = plan.steps[s].kind == PlanStep::Kind::kPartition;
    (is_partition ? partition_us_ : transfer_us_)
        .emplace(plan.steps[s].index, (*stated)[s].get<double>());
  }
}

double PredictedSteps::partition_ms(std::int32_t index) const {
  const auto stated = partition_us_.find(index);
  if (stated != partition_us_.end()) return stated->second / 1000;
  return partition_us(graph_, plan_.partitions[static_cast<std::size_t>(index)], target_) / 1000;
}

double PredictedSteps::transfer_ms(std::int32_t index) const {
  const auto stated = transfer_us_.find(index);
  if (stated != transfer_us_.end()) return stated->second / 1000;
  const Transfer& transfer = plan_.transfers[static_cast<std::size_t>(index)];
  return plan_transfer_us(graph_, plan_, transfer, target_) / 1000;
}

double PredictedSteps::total_ms(double by_rates_us) const {
  const Json* partition = graph_.npu_member("partition");
  const Json* metrics = partition == nullptr ? nullptr : find_member(*partition, "metrics");
  const Json* us = metrics == nullptr ? nullptr : find_member(*metrics, "predicted_us");
  const bool measured = partition != nullptr && find_member(*partition, "cost") != nullptr;
  return (measured && us != nullptr && us->is_number() ? us->get<double>() : by_rates_us) / 1000;
}

}  // namespace npu

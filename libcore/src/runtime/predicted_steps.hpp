// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Predicted times of a plan and its steps: from the document, if its plan was made with measured
/// times, else from the target's rates. Keeps references to the constructor's arguments.
class PredictedSteps {
 public:
  PredictedSteps(const Graph& graph, const PartitionPlan& plan, const Target& target);

  double partition_ms(std::int32_t index) const;
  double transfer_ms(std::int32_t index) const;
  /// Time of the whole plan; `by_rates_us` is the time by the target's rates.
  double total_ms(double by_rates_us) const;

 private:
  const Graph& graph_;
  const PartitionPlan& plan_;
  const Target& target_;
  std::unordered_map<std::int32_t, double> partition_us_;  // as the document states them
  std::unordered_map<std::int32_t, double> transfer_us_;
};

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What a plan and its steps take by the document, if that was made by measured times, else by the
/// target's rates. Keeps references to what it is made from.
class PredictedSteps {
 public:
  PredictedSteps(const Graph& graph, const PartitionPlan& plan, const Target& target);

  double partition_ms(std::int32_t index) const;
  double transfer_ms(std::int32_t index) const;
  /// The whole plan; `by_rates_us` is what the target's rates say.
  double total_ms(double by_rates_us) const;

 private:
  const Graph& graph_;
  const PartitionPlan& plan_;
  const Target& target_;
  std::unordered_map<std::int32_t, double> partition_us_;  // what the document states
  std::unordered_map<std::int32_t, double> transfer_us_;
};

}  // namespace npu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cost/node_table.hpp"
#include "npu/cost/cost_model.hpp"
#include "npu/target/target.hpp"
#include "passes/quantize/precision_problem.hpp"

namespace npu::quantize {

/// Predicted microseconds of units and conversions.
struct PrecisionTimes {
  std::vector<double> float_us;     ///< by unit
  std::vector<double> int8_us;      ///< by unit
  std::vector<double> to_int8_us;   ///< by value
  std::vector<double> to_float_us;  ///< by value
};

/// Float times are those of `cost`, each node on its device or, without one, on the first that runs
/// it. Times of units in int8 and of conversions are those that `measured` has; null: none. Without
/// one, integers divide the float time, without the overhead of a node, by the device's rate for
/// int8 over that for float32, or by 4 if it states none and for ops that are no products, whose
/// integers are a quarter of the bytes, and a conversion takes what its bytes do.
PrecisionTimes predict_times(const Graph& graph, const PrecisionProblem& problem,
                             const Target& target, const CostModel& cost,
                             const NodeTable* measured);

}  // namespace npu::quantize

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/cost/cost_model.hpp"
#include "npu/target/target.hpp"
#include "passes/quantize/precision_problem.hpp"

namespace npu::quantize {

/// Predicted microseconds of units and conversions.
struct PrecisionTimes {
  std::vector<double> float_us;       ///< by unit
  std::vector<double> int8_us;        ///< by unit
  std::vector<double> conversion_us;  ///< by value, in either direction
};

/// Float times are those of `cost`, each node on its device or, without one, on the first that runs
/// it. Integers divide them, without the overhead of a node, by the device's rate for int8 over
/// that for float32, or by 4 if it states none and for ops that are no products, whose integers are
/// a quarter of the bytes.
PrecisionTimes predict_times(const Graph& graph, const PrecisionProblem& problem,
                             const Target& target, const CostModel& cost);

}  // namespace npu::quantize

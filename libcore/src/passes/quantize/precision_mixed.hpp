// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cost/node_table.hpp"
#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"
#include "passes/quantize/precision_budget.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu::quantize {

/// The choice of the least predicted time within an error.
struct MixedChoice {
  PrecisionCosts costs;             ///< in ticks
  std::vector<std::int64_t> error;  ///< by unit, in parts of the budget
  std::int64_t budget = 0;
  BudgetSolution solution;
  double tick_us = 0;
  double error_step = 0;  ///< what an error of 1 stands for
  double float_us = 0;    ///< of everything in float
};

/// Lets every unit that can be int8 be either, unless its error was not measured or exceeds
/// `max_error` by itself, and chooses. `measured`: times of int8; null: none. Units get a reason.
/// Errors are taken to add up.
MixedChoice choose_mixed(const Graph& graph, PrecisionProblem& problem, const TensorRanges& ranges,
                         const Target& target, const CostModel& cost, const NodeTable* measured,
                         double max_error);

}  // namespace npu::quantize

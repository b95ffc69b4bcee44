// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "passes/quantize/precision_solve.hpp"

namespace npu::quantize {

/// A choice of precisions whose errors may add up to a budget. Costs of all kinds, and errors, add
/// up to at most 2^28 each.
struct BudgetProblem {
  const PrecisionProblem* problem = nullptr;
  const PrecisionCosts* costs = nullptr;
  std::vector<std::int64_t> error;  ///< by unit, if it is int8
  std::int64_t budget = 0;
};

struct BudgetSolution {
  std::vector<char> int8;  ///< by unit; empty: no choice is within the budget
  std::int64_t cost = 0;
  std::int64_t error = 0;
  std::int64_t lower_bound = 0;  ///< that no choice beats: `cost`, if the search ended
  // The certificate of the first relaxation: with errors at price / divisor each, the cheapest
  // choice costs root_bound or more, the budget's share taken off.
  std::int64_t price = 0;
  std::int64_t divisor = 1;
  std::int64_t root_bound = 0;
  std::int64_t relaxations = 0;
};

/// The cheapest choice within the budget. Exact unless more than `max_relaxations` are needed;
/// `lower_bound` is below `cost` then.
BudgetSolution solve_budget(const BudgetProblem& budget, std::int64_t max_relaxations);

/// The bound that a price of errors proves: the least of cost + price / divisor * error over all
/// choices, less price / divisor * budget, rounded up. One minimum cut.
std::int64_t dual_bound(const BudgetProblem& budget, std::int64_t price, std::int64_t divisor);

}  // namespace npu::quantize

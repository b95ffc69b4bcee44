// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "flow/min_cut.hpp"
#include "passes/quantize/precision_problem.hpp"

namespace npu::quantize {

/// What a choice costs, in any unit of measure.
struct PrecisionCosts {
  std::vector<std::int64_t> float_cost;  ///< by unit
  std::vector<std::int64_t> int8_cost;   ///< by unit
  std::vector<std::int64_t> to_int8;     ///< by value, once for all readers
  std::vector<std::int64_t> to_float;    ///< by value, once for all readers
};
/// Every conversion costs 1, ops nothing.
PrecisionCosts conversion_counts(const PrecisionProblem& problem);

/// The network whose cuts are choices: units on the source's side are float, the others int8.
CutNetwork precision_network(const PrecisionProblem& problem, const PrecisionCosts& costs);

/// Which units are int8 in a cut.
std::vector<char> int8_units(const PrecisionProblem& problem, const MinCut& cut);

/// Whether a value changes its form for some reader.
struct Changes {
  bool to_int8 = false;
  bool to_float = false;
};
Changes changes_of(const Value& value, const std::vector<char>& int8);

/// What a choice costs, by definition. It must be one that `allowed` permits.
std::int64_t cost_of(const PrecisionProblem& problem, const PrecisionCosts& costs,
                     const std::vector<char>& int8);

}  // namespace npu::quantize

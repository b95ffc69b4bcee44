// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/passes/quantize.hpp"
#include "passes/quantize/precision_problem.hpp"
#include "target/quantization_rules.hpp"

namespace npu::quantize {

/// Which values have integers: those that an int8 unit reads, and those that one of kind kSameScale
/// makes.
std::vector<char> integer_values(const PrecisionProblem& problem, const std::vector<char>& int8);

/// Scale and zero point of each value that has integers, by value: one for all that a unit of kind
/// kSameScale connects, for the range that covers theirs.
std::vector<QuantParams> choose_params(const Graph& graph, const PrecisionProblem& problem,
                                       const std::vector<char>& int8, const TensorRanges& ranges,
                                       const CalibrationMethod& calibration,
                                       const QuantizationRules& rules);

/// Inserts the pairs of quantize and dequantize nodes, and the scales of weights as constants of
/// the document. Ids change.
void insert_conversions(Graph& graph, const PrecisionProblem& problem,
                        const std::vector<char>& int8, const std::vector<QuantParams>& params,
                        const TensorRanges& ranges, const QuantizationRules& rules);

}  // namespace npu::quantize

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "passes/quantize/precision_problem.hpp"
#include "passes/quantize/quantize.hpp"
#include "passes/quantize/smoothing.hpp"
#include "target/quantization_rules.hpp"

namespace npu::quantize {

/// Which values have integers: those that an int8 unit reads, those that one which
/// gives_integers makes, and those that leave the device as integers.
std::vector<char> integer_values(const PrecisionProblem& problem, const std::vector<char>& int8);

/// A choice of precisions with all that its document needs.
struct PrecisionChoice {
  std::vector<char> int8;  ///< by unit
  Smoothing smoothing;
  bool corrects_biases = true;
};

/// Scale and zero point of each value that has integers, by value: one for all that a unit of kind
/// kSameScale connects, for the range that covers theirs. The range of a value that is smoothed is
/// that of its channels' extremes, whatever the method.
std::vector<QuantParams> choose_params(const Graph& graph, const PrecisionProblem& problem,
                                       const PrecisionChoice& choice, const TensorRanges& ranges,
                                       const CalibrationMethod& calibration,
                                       const QuantizationRules& rules);

/// Inserts the pairs of quantize and dequantize nodes, multiplications by factors, and the scales
/// of weights and corrections of biases as constants of the document. Returns the names of the
/// products whose bias was corrected. Ids change.
std::vector<std::string> insert_conversions(Graph& graph, const PrecisionProblem& problem,
                                            const PrecisionChoice& choice,
                                            const std::vector<QuantParams>& params,
                                            const TensorRanges& ranges,
                                            const QuantizationRules& rules);

}  // namespace npu::quantize
